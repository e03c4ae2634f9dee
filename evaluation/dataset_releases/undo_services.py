"""Undo a release that nobody has used yet, and note its first use."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from annotation.models import Example
from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from evaluation.kinds import TARGET_KIND, list_kind_names
from evaluation.models import (
    Dataset,
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    Publication,
    RulerAnchor,
    Submission,
    TrainingRun,
)
from tasks.models import Round, Task
from tasks.rounds.states import reopen_released_round

State = Dataset.State
FINAL_REASONS = {
    "version": gettext_noop("A later version exists, which replaces withdrawn examples."),
    "downloaded": gettext_noop("Someone has viewed or downloaded rows of this release."),
    "trained": gettext_noop(
        "A model was trained on this release, or includes its rows in a prompt."
    ),
    "evaluated": gettext_noop("A submitted model was evaluated on this release."),
    "opened": gettext_noop("A later round has been opened."),
    "anchors": gettext_noop("Its held-back rows are anchors of a ruler."),
}
"""The reasons that make a release final, as texts."""


class UndoRefused(Refused):
    """Raised when a release is final. The message says why it cannot be undone."""

    code = "final"


def note_download(dataset: Dataset) -> bool:
    """Record that part of a release is being downloaded.

    Return False if the release was undone after it was read. Call this before the first byte is
    sent. Takes no lock: the update waits for `undo_release` and then finds no row.
    """
    return dataset.downloaded_at is not None or _note_use(dataset.pk)


def note_shown_examples(examples: Iterable[Example]) -> list[Example]:
    """Record that these rows of releases are being shown with their answers.

    Return the examples, except those whose release was undone after they were read. Readers of a
    row could otherwise judge it again, or find it in a test split, after an undo.

    examples: annotated by `reading.mark_unused_releases`. No query if the use of their releases is
    already recorded. Takes no lock, like `note_download`.
    """
    examples_with_release = [(example, _get_unused_release_id(example)) for example in examples]
    release_ids = {
        release_id for _example, release_id in examples_with_release if release_id is not None
    }
    # One by one, so that two requests for the same releases cannot deadlock.
    undone_ids = {release_id for release_id in sorted(release_ids) if not _note_use(release_id)}
    return [
        example for example, release_id in examples_with_release if release_id not in undone_ids
    ]


def is_any_release_unused(examples: Iterable[Example]) -> bool:
    """Return whether showing these examples would make a release final. No query."""
    return any(_get_unused_release_id(example) is not None for example in examples)


def _get_unused_release_id(example: Example) -> int | None:
    release_id: int | None = vars(example)["unused_release"]
    return release_id


def _note_use(release_id: int) -> bool:
    """Record the first use of the release with this id. Return False if it was undone."""
    releases = Dataset.objects.filter(pk=release_id, state=State.DONE)
    # Conditional, so that the first date stays if another request has just set it.
    updated_count = releases.filter(downloaded_at=None).update(downloaded_at=timezone.now())
    return bool(updated_count) or releases.exists()


def find_final_reasons(dataset: Dataset) -> list[str]:
    """Return the reasons why the release of this version is final, as keys of FINAL_REASONS.

    Empty if the release can be undone. At most eight queries.
    """
    return list(_iterate_final_reasons(dataset))


def _iterate_final_reasons(dataset: Dataset) -> Iterator[str]:
    round, released_at = dataset.round, dataset.finished_at
    # A later version that failed does not prevent it.
    failed_states = (State.FAILED, State.LOST, State.CANCELLED)
    if round.datasets.exclude(pk=dataset.pk).exclude(state__in=failed_states).exists():
        yield "version"
    if dataset.downloaded_at is not None:
        yield "downloaded"
    if _is_trained_on(dataset) or _is_submitted(dataset, released_at):
        yield "trained"
    if _is_evaluated(dataset):
        yield "evaluated"
    # Its writers may have read the released examples.
    later_rounds = Round.objects.filter(task=round.task_id, number__gt=round.number)
    if later_rounds.filter(opened_at__gte=released_at).exists():
        yield "opened"
    # Of a retired ruler, too: an anchor names its row for good.
    if RulerAnchor.objects.filter(version__evaluation_set__held_of=round).exists():
        yield "anchors"


def _is_trained_on(dataset: Dataset) -> bool:
    active_states = (State.QUEUED, State.RUNNING, State.DONE)
    runs = TrainingRun.objects.filter(task=dataset.round.task_id, state__in=active_states)
    all_options = runs.values_list("options", flat=True)
    return any(dataset.pk in options.get("datasets", ()) for options in all_options)


def _is_submitted(dataset: Dataset, released_at: datetime | None) -> bool:
    """Return whether anyone submitted rows of the release, or a prompt that contains some."""
    # Earlier submissions cannot contain rows of this release.
    later_submissions = Submission.objects.filter(
        task=dataset.round.task_id, queued_at__gte=released_at
    )
    if later_submissions.filter(kind__in=list_kind_names(lambda kind: kind.learns_here)).exists():
        return True
    chat_settings = later_submissions.exclude(chat={}).values_list("chat", flat=True)
    shot_item_ids: list[int] = []
    for chat in chat_settings:
        shot_item_ids += chat.get("shot_items", ())
    return dataset.items.filter(pk__in=shot_item_ids).exists()


def _find_set_versions(dataset: Dataset) -> QuerySet[EvaluationSetVersion]:
    """Return the set versions made from the dataset's test split and from its held-back rows."""
    is_from_held_rows = Q(evaluation_set__held_of=dataset.round_id)
    return EvaluationSetVersion.objects.filter(Q(dataset=dataset) | is_from_held_rows)


def _is_evaluated(dataset: Dataset) -> bool:
    """Return whether a submitted model was evaluated on the release, or answers were submitted.

    The site's own runs of targets, and runs that have not started, do not count because they can be
    deleted.
    """
    versions = _find_set_versions(dataset).values("pk")
    started_runs = EvaluationRun.objects.filter(version__in=versions).exclude(state=State.QUEUED)
    submitted_model_runs = started_runs.exclude(submission__kind=TARGET_KIND)
    answers = Submission.objects.filter(evaluation_set__in=versions)
    return submitted_model_runs.exists() or answers.exists()


@transaction.atomic
def undo_release(*, round: Round, actor: User | None) -> Round:
    """Undo the release of a round that nobody has used. The round becomes closed again.

    1. Lock the task, so that no training starts. Lock its rounds, so that none opens. Lock the
       dataset, so that nobody downloads it.
    2. Check that nothing makes the release final.
    3. Delete the sets made from it and its rows, and publications that failed before a file left
       the site. Delete its files after the commit.
    4. Close the round again.

    Raises UndoRefused, which lists all reasons why the release is final.
    """
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=round.task_id)
    rounds = Round.objects.filter(task=round.task_id).order_by("pk")
    # All rounds of the task, in a fixed order, so that none of them is opened now.
    locked_rounds = {row.pk: row for row in rounds.select_for_update(of=("self",))}
    locked_round = locked_rounds[round.pk]
    versions = locked_round.datasets.order_by("version").select_related("round__task")
    dataset = versions.select_for_update(of=("self",)).filter(state=State.DONE).first()
    if dataset is None:
        raise UndoRefused(gettext("This round has no release to undo."))
    reasons = find_final_reasons(dataset)
    if reasons:
        reason_texts = " ".join(gettext(FINAL_REASONS[reason]) for reason in reasons)
        raise UndoRefused(gettext("This release is final. %(reasons)s") % {"reasons": reason_texts})
    file_names = [str(file.file.name) for file in dataset.files.all()] + _delete_sets(dataset)
    log(actor, "dataset.undone", dataset, rows=dataset.numbers.get("rows"))
    # They are protected, because those that have sent files must stay known.
    Publication.objects.filter(dataset__round=locked_round).delete()
    locked_round.datasets.all().delete()
    # A rollback would restore the rows, but not the files.
    transaction.on_commit(partial(_delete_files, file_names))
    return reopen_released_round(round=locked_round, actor=actor)


def _delete_sets(dataset: Dataset) -> list[str]:
    """Delete the set versions and the site's own runs on them; return the names of their files.

    The round's set becomes secret again.
    """
    versions = list(_find_set_versions(dataset))
    # `find_final_reasons` has found that no submitted model has started a run.
    EvaluationRun.objects.filter(version__in=versions).delete()
    names = []
    for version in versions:
        names += [str(version.inputs.name), str(version.gold.name)]
    EvaluationSetVersion.objects.filter(pk__in=[version.pk for version in versions]).delete()
    EvaluationSet.objects.filter(held_of=dataset.round_id).delete()
    EvaluationSet.objects.filter(round=dataset.round_id).update(
        may_leave=False, answers_public=False
    )
    return names


def _delete_files(names: list[str]) -> None:
    for name in names:
        default_storage.delete(name)
