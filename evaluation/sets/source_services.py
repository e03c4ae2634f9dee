"""Versions that the platform makes itself: of closed rounds, of releases and of seeds."""

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
from evaluation.models import Dataset, DatasetItem, EvaluationSet, EvaluationSetVersion
from evaluation.releases.reading import decoded, split_rows
from evaluation.releases.rows import Freezer
from evaluation.releases.splits import HELD, TEST
from evaluation.sets.control import control_rows, has_control
from evaluation.sets.harmless import times, with_harmless
from evaluation.sets.parsing import RowMaker
from evaluation.sets.services import CONTROL, make_version
from tasks.line_files import BadRow
from tasks.models import Round, Task
from validation.judging.queue import judged_examples, waiting_examples

logger = logging.getLogger(__name__)

Access = EvaluationSet.Access
Source = EvaluationSet.Source
CONTROL_IS_PUBLIC = {"may_leave": True, "answers_public": True}  # seeds are in the repository
OVER = (Round.State.CLOSED, Round.State.RELEASED)


def version_of_release(dataset: Dataset) -> EvaluationSetVersion | None:
    """The test split of a released dataset as a version of the round's set; None: it is empty.

    What was withdrawn is left out. The inputs are public from the first release on, so the set
    may leave from then on. Lock: `make_version`.
    """
    if not _items(dataset, TEST).exists():
        return None
    one = _round_set(dataset.round)
    is_first = not one.versions.filter(dataset__isnull=False).exists()
    rows = _rows_of(dataset, TEST)
    version = make_version(one, rows, dataset.requested_by, dataset)
    if is_first:
        EvaluationSet.objects.filter(pk=one.pk).update(may_leave=True)
    return version


def version_of_held(dataset: Dataset) -> EvaluationSetVersion | None:
    """What a release holds back, as a version of a sealed set of its own; None: it is nothing.

    Lock: `make_version`.
    """
    if not _items(dataset, HELD).exists():
        return None
    round = dataset.round
    one, _ = EvaluationSet.objects.get_or_create(
        task=round.task,
        name=f"round-{round.number}-held",
        defaults={"source": Source.HELD, "held_of": round, "access": Access.STANDARD},
    )
    return make_version(one, _rows_of(dataset, HELD), dataset.requested_by)


def _rows_of(dataset: Dataset, split: str) -> Iterator[SetRow]:
    maker = RowMaker(dataset.round.task.config)
    rows = filter(None, (_made(maker, row) for row in split_rows(dataset, split)))
    return with_harmless(dataset.round.task.config, rows)


def take_round(*, round: Round, actor: User, reason: str) -> EvaluationSetVersion | None:
    """An owner takes a closed round as it stands, as the next version of its set, or None.

    While examples wait to be judged that takes a reason, which is logged. Lock: `make_version`.
    Raises Refused.
    """
    waiting = waiting_examples([round])[round.pk]
    if waiting and not reason.strip():
        words = gettext(
            "Examples that wait to be judged: %(waiting)d. Say why the set shall not wait for them."
        )
        raise Refused(words % {"waiting": waiting})
    version = version_of_closed_round(round, actor)
    if version:
        log(actor, "evaluation_set.taken", version, waiting=waiting, reason=reason)
    return version


def version_of_closed_round(round: Round, actor: User | None = None) -> EvaluationSetVersion | None:
    """What people wrote in a closed round and others verified, as a version of its set, or None.

    It is settled when nothing waits to be judged; until then it is provisional. Lock:
    `make_version`. Raises Refused while the round is not over.
    """
    if round.state not in OVER or round.is_being_written:
        raise Refused(gettext("%(round)s is not over. Close it first.") % {"round": round})
    examples = _verified(round)
    if not examples.exists():
        return None
    maker = RowMaker(round.task.config)
    chunks = Freezer(round).chunks(examples)
    made = (_made(maker, decoded(frozen.row)) for chunk in chunks for frozen in chunk)
    rows = filter(None, made)
    judged, to_judge = judged_examples(round)  # before the rows are read
    if (first := next(rows, None)) is None:  # nobody knows what is right in any of them
        return None
    whole = with_harmless(round.task.config, chain([first], rows))
    version = make_version(_round_set(round), whole, actor)
    version.judged, version.to_judge = judged, to_judge
    if judged == to_judge:
        version.settled_at = timezone.now()
    version.save(update_fields=["judged", "to_judge", "settled_at"])
    return version


def _made(maker: RowMaker, row: Mapping[str, Any]) -> SetRow | None:
    """An example that people wrote; None where it fits the configuration no more.

    row: as `split_rows` gives it. Releases from before there were challenges or corrections have
    none.
    """
    fields = {**row["context"], **row["input_json"]}
    try:
        return maker.released(row, fields)
    except BadRow as error:
        logger.warning("%s is in no evaluation set: %s", row["uid"], error)
        return None


def _round_set(round: Round) -> EvaluationSet:
    return EvaluationSet.objects.get_or_create(
        task=round.task,
        name=f"round-{round.number}",
        defaults={"source": Source.ROUND, "round": round},
    )[0]


def control_version(task: Task) -> EvaluationSetVersion | None:
    """What comes with an official task, as a set of its own; None: nothing does.

    Nobody wrote it to fool a model, so it shows what adversarial data hides. Lock: `make_version`.
    """
    if not task.is_official or not has_control(task.code):
        return None
    one, _ = EvaluationSet.objects.get_or_create(
        task=task,
        name=CONTROL,
        defaults={"source": Source.CONTROL, "access": Access.STANDARD, **CONTROL_IS_PUBLIC},
    )
    return make_version(one, control_rows(task), None)


def sweep_rounds() -> list[EvaluationSetVersion]:
    """Make each version that is missing: of rounds that are over, of releases, of seeds.

    A few queries when nothing is missing. What fails is logged and tried at the next sweep.
    Sets whose rows have all been published are opened.
    """
    _open_published()
    wanted = [
        *(partial(version_of_closed_round, round) for round in _closed_without()),
        *(partial(version_of_release, dataset) for dataset in _releases_without()),
        *(partial(version_of_held, dataset) for dataset in _held_without()),
        *(partial(control_version, task) for task in _official_without()),
    ]
    made = []
    for make in wanted:
        try:
            version = make()
        except Exception:
            logger.exception("No evaluation set can be made of %s", make.args[0])
        else:
            made += [version] if version else []
    return made


def _open_published() -> None:
    """Sets of rounds that were released whole into train and dev are no secret any more.

    Nor are those that were held back and are published now.
    """
    holding = list(Dataset.objects.filter(state=Dataset.State.DONE, options__hold_back=True))
    shown = [one.round_id for one in holding if not one.held_until]
    EvaluationSet.objects.filter(held_of__in=shown, answers_public=False).update(
        may_leave=True, answers_public=True
    )
    hidden = Q(split=HELD, dataset__in=[one.pk for one in holding if one.held_until])
    published = DatasetItem.objects.filter(
        example=OuterRef("pk"), dataset__state=Dataset.State.DONE
    )
    public = published.exclude(Q(split=TEST) | hidden)
    secret = _verified(OuterRef("round")).filter(~Exists(public))
    released = EvaluationSetVersion.objects.filter(
        evaluation_set=OuterRef("pk"), dataset__isnull=False
    )
    sealed = EvaluationSet.objects.filter(round__state=Round.State.RELEASED, answers_public=False)
    sealed.filter(~Exists(released), ~Exists(secret)).update(may_leave=True, answers_public=True)


def _verified(round: Any) -> QuerySet[Example]:
    return Example.objects.filter(
        round=round,
        consensus__is_verified=True,
        retracted_at__isnull=True,
        by_program=False,
    )


def _items(dataset: Any, split: str) -> QuerySet[DatasetItem]:
    return DatasetItem.objects.filter(dataset=dataset, split=split, is_withdrawn=False)


def _closed_without() -> list[Round]:
    """Closed rounds with verified examples, in which nothing waits, without a settled version.

    One that was opened and closed again needs another. A round that is still judged gets its set,
    so that its owners can take it as it is.
    """
    closed_at = "evaluation_set__round__closed_at"  # imported rounds have none
    since = Q(settled_at__gte=F(closed_at)) | Q(**{closed_at: None, "settled_at__isnull": False})
    versions = EvaluationSetVersion.objects.filter(since, evaluation_set__round=OuterRef("pk"))
    rounds = Round.objects.filter(
        ~Exists(versions), Exists(_verified(OuterRef("pk"))), state=Round.State.CLOSED
    )
    over = [round for round in rounds.select_related("task") if not round.is_being_written]
    waiting = waiting_examples(over)
    for round in over:
        _round_set(round)
    return [round for round in over if not waiting[round.pk]]


def _releases_without() -> list[Dataset]:
    """The newest release of each round whose test split no version holds."""
    held = EvaluationSetVersion.objects.filter(dataset=OuterRef("pk"))
    missing = _newest_with(TEST).filter(~Exists(held))
    return _with_other_rows(missing, TEST, "dataset__round")


def _held_without() -> list[Dataset]:
    """The newest release of each round that holds rows back of which there is no set yet."""
    made = EvaluationSetVersion.objects.filter(
        evaluation_set__held_of=OuterRef("round"), made_at__gte=OuterRef("finished_at")
    )
    missing = _newest_with(HELD).filter(~Exists(made), options__hold_back=True)
    return _with_other_rows(missing, HELD, "evaluation_set__held_of")


def _newest_with(split: str) -> QuerySet[Dataset]:
    """The newest release of each round, where this split has rows."""
    done = Dataset.objects.filter(state=Dataset.State.DONE)
    newer = done.filter(round=OuterRef("round"), version__gt=OuterRef("version"))
    return done.filter(~Exists(newer), Exists(_items(OuterRef("pk"), split)))


def _with_other_rows(releases: QuerySet[Dataset], split: str, of_round: str) -> list[Dataset]:
    """Those whose split is not what the last version holds; of_round: what versions know it by.

    Later releases only take rows away: with as many left, the split is still the same.
    """
    found = []
    for dataset in releases.select_related("round__task", "requested_by"):
        versions = EvaluationSetVersion.objects.filter(**{of_round: dataset.round})
        last = versions.order_by("-version").first()
        size = times(dataset.round.task.config) * _items(dataset, split).count()
        if last is None or last.size != size:
            found.append(dataset)
    return found


def _official_without() -> list[Task]:
    """Official tasks without a control set."""
    versions = EvaluationSetVersion.objects.filter(
        evaluation_set__task=OuterRef("pk"), evaluation_set__source=Source.CONTROL
    )
    return list(Task.objects.filter(~Exists(versions), is_official=True))
