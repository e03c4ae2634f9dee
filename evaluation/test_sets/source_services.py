"""Make the platform's own set versions: of closed rounds, releases and control sets."""

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from annotation.models import Example
from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from evaluation.contract import SetRow
from evaluation.dataset_releases.reading import read_split_rows
from evaluation.dataset_releases.rows import Freezer
from evaluation.dataset_releases.splits import HELD_SPLIT, TEST
from evaluation.models import Dataset, DatasetItem, EvaluationSet, EvaluationSetVersion
from evaluation.test_sets.control import has_control_set, read_control_rows
from evaluation.test_sets.harmless import add_harmless_questions, count_rows_per_example
from evaluation.test_sets.parsing import RowMaker
from evaluation.test_sets.services import CONTROL_NAME, make_version
from tasks.line_files import BadRow
from tasks.models import Round, Task
from validation.judging.queue import count_judged_examples, count_waiting_examples
from validation.statistics.samples import count_left_out

logger = logging.getLogger(__name__)

Access = EvaluationSet.Access
Source = EvaluationSet.Source
CONTROL_ACCESS = {"may_leave": True, "answers_public": True}  # seeds are in the repository


def make_release_version(dataset: Dataset) -> EvaluationSetVersion | None:
    """Make a version of the round's set from the test split of a release; None if it is empty.

    Withdrawn rows are left out. The inputs are public from the first release on, so the set's
    inputs may be downloaded from then on. Locks as `make_version`.
    """
    if not _select_items(dataset, TEST).exists():
        return None
    round_set = _find_round_set(dataset.round)
    is_first = not round_set.versions.filter(dataset__isnull=False).exists()
    rows = _read_released_rows(dataset, TEST)
    version = make_version(round_set, rows, dataset.requested_by, dataset)
    _note_left_out(version, dataset.round)
    if is_first:
        # Only the first release opens the set, because its owners may have closed it again.
        EvaluationSet.objects.filter(pk=round_set.pk).update(may_leave=True)
    return version


def make_held_version(dataset: Dataset) -> EvaluationSetVersion | None:
    """Make a version of a sealed set from a release's held-back rows; None if there are none.

    The set is separate from the round's other set. Locks as `make_version`.
    """
    if not _select_items(dataset, HELD_SPLIT).exists():
        return None
    round = dataset.round
    held_set, _ = EvaluationSet.objects.get_or_create(
        task=round.task,
        name=f"round-{round.number}-held",
        defaults={"source": Source.HELD, "held_of": round, "access": Access.STANDARD},
    )
    held_rows = _read_released_rows(dataset, HELD_SPLIT)
    version = make_version(held_set, held_rows, dataset.requested_by)
    _note_left_out(version, round)
    return version


def _note_left_out(version: EvaluationSetVersion, round: Round) -> None:
    """Store on a released version about how many examples of the round people weren't asked."""
    version.left_out = count_left_out(round) or None
    version.save(update_fields=["left_out"])


def _read_released_rows(dataset: Dataset, split: str) -> Iterator[SetRow]:
    """Yield the set's rows for one split of a release, read from the release's stored lines."""
    config = dataset.round.task.config
    return add_harmless_questions(config, _make_released_rows(RowMaker(config), dataset, split))


def _make_released_rows(maker: RowMaker, dataset: Dataset, split: str) -> Iterator[SetRow]:
    for row in read_split_rows(dataset, split):
        set_row = _make_row(maker, row, {**row["context"], **row["input_json"]})
        if set_row is not None:
            yield set_row


def make_requested_round_version(
    *, round: Round, actor: User, reason: str
) -> EvaluationSetVersion | None:
    """Make the next version of a closed round's set at its owner's request; None without rows.

    Requires a reason while examples still wait to be judged, and logs it. Locks as `make_version`.
    Raises Refused.
    """
    waiting_count = count_waiting_examples([round])[round.pk]
    # The log tells later readers why numbers changed once the votes were complete.
    if waiting_count and not reason.strip():
        log_text = gettext(
            "Examples still to be judged: %(waiting)d. Explain why the set should not "
            "wait for them."
        )
        raise Refused(log_text % {"waiting": waiting_count})
    version = make_round_version(round, actor)
    if version:
        log(actor, "evaluation_set.taken", version, waiting=waiting_count, reason=reason)
    return version


def make_round_version(round: Round, actor: User | None = None) -> EvaluationSetVersion | None:
    """Make a version of a closed round's set from its verified examples; None if there are none.

    The version is settled if no examples wait to be judged, otherwise provisional. Locks as
    `make_version`. Raises Refused if the round is not over.
    """
    if round.state not in Round.FINISHED_STATES or round.is_being_written:
        raise Refused(gettext("%(round)s is still running. Close it first.") % {"round": round})
    examples = _select_verified_examples(round)
    if not examples.exists():
        return None
    config = round.task.config
    rows = _make_frozen_rows(RowMaker(config), Freezer(round), examples)
    # Counted before the rows are read: an example decided meanwhile then counts as not
    # judged, and the version stays provisional until the next one.
    judged_count, to_judge = count_judged_examples(round)
    first_row = next(rows, None)
    if first_row is None:  # none of them has a known right answer
        return None
    set_rows = add_harmless_questions(config, chain([first_row], rows))
    version = make_version(_find_round_set(round), set_rows, actor)
    version.judged, version.to_judge = judged_count, to_judge
    version.left_out = count_left_out(round) or None
    # Nothing was waiting when the rows were read.
    if judged_count == to_judge:
        version.settled_at = timezone.now()
    version.save(update_fields=["judged", "to_judge", "left_out", "settled_at"])
    return version


def _make_frozen_rows(
    maker: RowMaker, freezer: Freezer, examples: QuerySet[Example]
) -> Iterator[SetRow]:
    for chunk in freezer.iterate_chunks(examples):
        for frozen in chunk:
            set_row = _make_row(maker, frozen.row, frozen.fields)
            if set_row is not None:
                yield set_row


def _make_row(maker: RowMaker, row: Mapping[str, Any], fields: Mapping[str, Any]) -> SetRow | None:
    """Return an example that a person wrote; None if it no longer fits the configuration.

    row: in the format of a release. Old releases have no challenges or corrections. fields: the
    fields of the context and the author, by name.
    """
    try:
        return maker.make_released_row(row, fields)
    except BadRow as error:
        logger.warning("%s is in no evaluation set: %s", row["uid"], error)
        return None


def _find_round_set(round: Round) -> EvaluationSet:
    """Return the set of a round. Creates it if necessary."""
    return EvaluationSet.objects.get_or_create(
        task=round.task,
        name=f"round-{round.number}",
        defaults={"source": Source.ROUND, "round": round},
    )[0]


def make_control_version(task: Task) -> EvaluationSetVersion | None:
    """Make a version of an official task's control set; None if the task has none.

    Its examples were not written to fool a model, so it shows what adversarial data hides. Locks as
    `make_version`.
    """
    if not task.is_official or not has_control_set(task.code):
        return None
    control_set, _ = EvaluationSet.objects.get_or_create(
        task=task,
        name=CONTROL_NAME,
        defaults={"source": Source.CONTROL, "access": Access.STANDARD, **CONTROL_ACCESS},
    )
    return make_version(control_set, read_control_rows(task), None)


def make_missing_versions() -> list[EvaluationSetVersion]:
    """Make all missing versions, of closed rounds, releases and control sets; return them.

    A failure is logged and retried at the next sweep. Also opens the sets whose rows have all been
    published. Runs only a few queries if nothing is missing.
    """
    _open_published_sets()
    # All missing sets are found first, so that versions created here do not affect later
    # queries.
    jobs: list[partial[EvaluationSetVersion | None]] = []
    jobs += [partial(make_round_version, round) for round in _find_rounds_without_version()]
    jobs += [partial(make_release_version, dataset) for dataset in _find_releases_without_version()]
    jobs += [
        partial(make_held_version, dataset) for dataset in _find_held_releases_without_version()
    ]
    jobs += [partial(make_control_version, task) for task in _find_official_tasks_without_control()]
    versions = []
    for make in jobs:
        try:
            version = make()
        except Exception:
            # One broken round must not keep all others from getting their sets.
            logger.exception("No evaluation set can be made of %s", make.args[0])
        else:
            if version:
                versions.append(version)
    return versions


def _open_published_sets() -> None:
    """Open the sets whose rows have all been published, because their answers are no longer secret.

    These are sets of rounds that were released completely into train and dev. Sets of held-back
    rows that have been released are included.
    """
    # 1. Held back rows whose day has come: `held_until` is empty once they are published.
    holding_releases = list(
        Dataset.objects.filter(state=Dataset.State.DONE, options__hold_back=True)
    )
    published_rounds = [dataset.round_id for dataset in holding_releases if not dataset.held_until]
    held_sets = EvaluationSet.objects.filter(held_of__in=published_rounds, answers_public=False)
    held_sets.update(may_leave=True, answers_public=True)

    # 2. Rounds without a test set, whose verified examples are all in train or dev.
    still_held = [dataset.pk for dataset in holding_releases if dataset.held_until]
    is_secret_item = Q(split=TEST) | Q(split=HELD_SPLIT, dataset__in=still_held)
    public_items = DatasetItem.objects.filter(
        example=OuterRef("pk"), dataset__state=Dataset.State.DONE
    ).exclude(is_secret_item)
    secret_examples = _select_verified_examples(OuterRef("round")).filter(~Exists(public_items))
    released_versions = EvaluationSetVersion.objects.filter(
        evaluation_set=OuterRef("pk"), dataset__isnull=False
    )
    sealed = EvaluationSet.objects.filter(round__state=Round.State.RELEASED, answers_public=False)
    published = sealed.filter(~Exists(released_versions), ~Exists(secret_examples))
    published.update(may_leave=True, answers_public=True)


def _select_verified_examples(round: Any) -> QuerySet[Example]:
    return Example.objects.filter(
        round=round,
        consensus__is_verified=True,
        retracted_at__isnull=True,
        by_program=False,
    )


def _select_items(dataset: Any, split: str) -> QuerySet[DatasetItem]:
    return DatasetItem.objects.filter(dataset=dataset, split=split, is_withdrawn=False)


def _find_rounds_without_version() -> list[Round]:
    """Return closed rounds that need a settled version: verified examples, and none to judge.

    A round that was reopened and closed again needs another version. Also creates the empty set of
    a round that is still being judged. With it, the owners can take the round early.
    """
    closed_at = "evaluation_set__round__closed_at"  # imported rounds have none
    was_imported = Q(**{closed_at: None})
    is_settled = Q(settled_at__gte=F(closed_at)) | (was_imported & Q(settled_at__isnull=False))
    versions = EvaluationSetVersion.objects.filter(is_settled, evaluation_set__round=OuterRef("pk"))
    rounds = Round.objects.filter(
        ~Exists(versions),
        Exists(_select_verified_examples(OuterRef("pk"))),
        state=Round.State.CLOSED,
    )
    # A closed round may still have writers who are finishing an attempt.
    ended_rounds = []
    for round in rounds.select_related("task"):
        if not round.is_being_written:
            ended_rounds.append(round)
    waiting_counts = count_waiting_examples(ended_rounds)
    # Its owners see the empty set, and may build it before all votes are given.
    for round in ended_rounds:
        _find_round_set(round)
    return [round for round in ended_rounds if not waiting_counts[round.pk]]


def _find_releases_without_version() -> list[Dataset]:
    """Return each round's newest release if no version contains its test split yet."""
    versions = EvaluationSetVersion.objects.filter(dataset=OuterRef("pk"))
    releases = _select_newest_releases(TEST).filter(~Exists(versions))
    return _filter_changed_releases(releases, TEST, "dataset__round")


def _find_held_releases_without_version() -> list[Dataset]:
    """Return each round's newest release if it has held-back rows that no version contains yet."""
    versions = EvaluationSetVersion.objects.filter(
        evaluation_set__held_of=OuterRef("round"), made_at__gte=OuterRef("finished_at")
    )
    releases = _select_newest_releases(HELD_SPLIT).filter(
        ~Exists(versions), options__hold_back=True
    )
    return _filter_changed_releases(releases, HELD_SPLIT, "evaluation_set__held_of")


def _select_newest_releases(split: str) -> QuerySet[Dataset]:
    """Select the newest release of each round, if this split has rows."""
    done_releases = Dataset.objects.filter(state=Dataset.State.DONE)
    # Only the newest release, because earlier ones contain withdrawn rows.
    newer = done_releases.filter(round=OuterRef("round"), version__gt=OuterRef("version"))
    return done_releases.filter(~Exists(newer), Exists(_select_items(OuterRef("pk"), split)))


def _filter_changed_releases(
    releases: QuerySet[Dataset], split: str, round_lookup: str
) -> list[Dataset]:
    """Return the releases whose split has a different number of rows from the last set version.

    Later releases only remove rows, so with an equal number the split is unchanged. round_lookup:
    the lookup from a version to its round.
    """
    changed_releases = []
    for dataset in releases.select_related("round__task", "requested_by"):
        versions = EvaluationSetVersion.objects.filter(**{round_lookup: dataset.round})
        last_version = versions.order_by("-version").first()
        # Harmless questions double the rows of a set, but not of a release.
        size = (
            count_rows_per_example(dataset.round.task.config)
            * _select_items(dataset, split).count()
        )
        if last_version is None or last_version.size != size:
            changed_releases.append(dataset)
    return changed_releases


def _find_official_tasks_without_control() -> list[Task]:
    """Return official tasks without a control set."""
    versions = EvaluationSetVersion.objects.filter(
        evaluation_set__task=OuterRef("pk"), evaluation_set__source=Source.CONTROL
    )
    return list(Task.objects.filter(~Exists(versions), is_official=True))
