"""Near-copies, as their readers may know them.

On a sealed set only the task's editors read them: the number of answers that two models share
would tell a submitter of right answers, besides what is shown of scores.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from evaluation.models import EvaluationRun, NearCopy
from evaluation.submissions.selectors import all_submissions, seen_by_all
from evaluation.submissions.visibility import Viewer, shown_name
from tasks.models import Task


@dataclass(frozen=True)
class Shown:
    """A pair of models with the names that its reader may know."""

    found: NearCopy
    model: str
    other: str


def near_copies_of(runs: Iterable[EvaluationRun], viewer: Viewer) -> list[Shown]:
    """Return what these runs of one model share with published models, for viewers inside.

    One query.
    """
    if not viewer.is_inside:
        return []
    known = [run.pk for run in runs if viewer.is_task_owner or not run.version.is_sealed]
    return _shown(NearCopy.objects.filter(run__in=known), viewer.is_task_owner)


def near_copies_in(task: Task) -> list[Shown]:
    """Return all near-copies that a task's editors should look at, newest first; one query."""
    found = NearCopy.objects.filter(run__submission__task=task, run__submission__withdrawn_at=None)
    return _shown(found.order_by("-run__finished_at", "pk"), is_editor=True)


def _shown(pairs: QuerySet[NearCopy], is_editor: bool) -> list[Shown]:
    public = all_submissions().filter(seen_by_all()).values("pk")
    pairs = pairs.filter(other__submission__in=public).select_related(
        "run__submission", "run__version__evaluation_set", "other__submission"
    )
    outsider = Viewer(is_owner=False, is_task_owner=is_editor)
    return [
        Shown(one, one.run.submission.name, shown_name(one.other.submission, outsider))
        for one in pairs
    ]
