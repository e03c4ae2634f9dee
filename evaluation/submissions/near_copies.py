"""Near-copies, limited to what their readers may know.

On a sealed set only the task's editors see them. The number of answers that two models share would
reveal more to a submitter about the right answers than the shown scores do.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from evaluation.models import EvaluationRun, NearCopy
from evaluation.submissions.selectors import build_public_condition, select_submissions
from evaluation.submissions.visibility import Viewer, find_shown_name
from tasks.models import Task


@dataclass(frozen=True)
class ShownNearCopy:
    """A pair of similar models, with the names that the reader may see."""

    pair: NearCopy
    model_name: str
    other_name: str


def find_model_near_copies(runs: Iterable[EvaluationRun], viewer: Viewer) -> list[ShownNearCopy]:
    """Return the near-copies of one model among published models; empty for outsiders. One query.

    runs: the runs of the model.
    """
    if not viewer.is_inside:
        return []
    visible_ids = [run.pk for run in runs if viewer.is_task_owner or not run.version.is_sealed]
    return _add_names(NearCopy.objects.filter(run__in=visible_ids), viewer.is_task_owner)


def find_task_near_copies(task: Task) -> list[ShownNearCopy]:
    """Return the near-copies in a task for its editors to review, newest first; one query."""
    pairs = NearCopy.objects.filter(run__submission__task=task, run__submission__withdrawn_at=None)
    return _add_names(pairs.order_by("-run__finished_at", "pk"), is_editor=True)


def _add_names(pairs: QuerySet[NearCopy], is_editor: bool) -> list[ShownNearCopy]:
    """Return the pairs whose other model is public, with the names that the reader may see."""
    public_ids = select_submissions().filter(build_public_condition()).values("pk")
    pairs = pairs.filter(other__submission__in=public_ids).select_related(
        "run__submission", "run__version__evaluation_set", "other__submission"
    )
    outsider = Viewer(is_owner=False, is_task_owner=is_editor)
    shown_pairs = []
    for pair in pairs:
        other_name = find_shown_name(pair.other.submission, outsider)  # it may be anonymous
        shown_pairs.append(ShownNearCopy(pair, pair.run.submission.name, other_name))
    return shown_pairs
