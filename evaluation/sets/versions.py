"""Evaluation sets and their versions: made whole or not at all, read as a stream."""

import gzip
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import orjson
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from annotation.models import Example
from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Refused
from dynabench.lib.scratch import scratch
from evaluation.contract import SetRow
from evaluation.models import Dataset, DatasetItem, EvaluationSet, EvaluationSetVersion
from evaluation.releases.reading import split_rows
from evaluation.releases.splits import TEST
from evaluation.seeds import has_seeds, held_out, seed_rows
from evaluation.sets.parsing import RowMaker
from evaluation.sets.writing import Written, write_set
from evaluation.task_shape import shape_of
from tasks.line_files import BadRow
from tasks.models import Round, Task
from validation.judging.queue import waiting_examples

logger = logging.getLogger(__name__)

Access = EvaluationSet.Access
Source = EvaluationSet.Source
CONTROL = "control"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,60}", re.ASCII)
RESERVED = re.compile(rf"{CONTROL}|new|round-\d+")
CONTROL_IS_PUBLIC = {"may_leave": True, "answers_public": True}  # seeds are in the repository
OVER = (Round.State.CLOSED, Round.State.RELEASED)


class About(TypedDict):
    """Who may know what of a set."""

    access: str
    may_leave: bool
    answers_public: bool


ABOUT = ("access", "may_leave", "answers_public", "description")
"""What the owners of a set may change."""


def create_set(
    *,
    task: Task,
    name: str,
    actor: User | None,
    access: str = Access.SCORING,
    description: str = "",
    may_leave: bool = False,
    answers_public: bool = False,
) -> EvaluationSet:
    """A set of the task's owners, without versions yet. No lock: its name is unique.

    Raises Refused.
    """
    if not NAME.fullmatch(name):
        raise Refused(
            gettext("A name has up to 60 letters a-z, digits, hyphens and underscores."), status=422
        )
    if RESERVED.fullmatch(name):
        raise Refused(
            gettext("The name %(name)s is kept for the platform; choose another.") % {"name": name},
            status=422,
        )
    about = {"access": access, "may_leave": may_leave, "answers_public": answers_public}
    try:
        with transaction.atomic():
            made = EvaluationSet.objects.create(
                task=task, name=name, description=description, **about
            )
            log(actor, "evaluation_set.created", made, **about)
    except IntegrityError:
        raise Refused(
            gettext(
                "This task has a set %(name)s already. Choose another name, or add a version to it."
            )
            % {"name": name},
            status=422,
        ) from None
    return made


@transaction.atomic
def change_set(
    *, evaluation_set: EvaluationSet, actor: User, description: str, **about: Unpack[About]
) -> None:
    """Who sees a set and what is said of it; its versions stay. No lock: the last one holds."""
    changed = EvaluationSet.objects.filter(pk=evaluation_set.pk)
    changed.update(description=description, **about)
    log(actor, "evaluation_set.changed", evaluation_set, **about)


def create_set_of(rows: Iterable[SetRow], **about: Any) -> EvaluationSetVersion:
    """A new set with its first version, or neither; `about` as of `create_set`."""
    with scratch() as folder:
        written = _written(rows, folder)
        with transaction.atomic():
            return _keep(create_set(**about), written, folder, about["actor"], None)


def make_version(
    evaluation_set: EvaluationSet,
    rows: Iterable[SetRow],
    actor: User | None,
    dataset: Dataset | None = None,
) -> EvaluationSetVersion:
    """The next version, of these examples; the last one again where it holds the same.

    All or nothing: whatever `rows` raises leaves no trace. Both files are stored first, so the
    lock on the set is short. Raises Refused when there is no example.
    """
    with scratch() as folder:
        written = _written(rows, folder)
        return _keep(evaluation_set, written, folder, actor, dataset)


def _written(rows: Iterable[SetRow], folder: Path) -> Written:
    written = write_set(rows, folder)
    if not written.size:
        raise Refused(gettext("There is no example in it."), status=422)
    return written


def _keep(
    evaluation_set: EvaluationSet,
    written: Written,
    folder: Path,
    actor: User | None,
    dataset: Dataset | None,
) -> EvaluationSetVersion:
    made = EvaluationSetVersion(
        evaluation_set=evaluation_set,
        version=_next(evaluation_set),
        sha256=written.sha256,
        size=written.size,
        slices=written.slices,
        dataset=dataset,
        made_by=actor,
    )
    with ExitStack() as undo:  # files that no row names are taken away again
        for name in ("inputs", "gold"):
            with (folder / name).open("rb") as file:
                getattr(made, name).save(f"{name}.jsonl.gz", File(file), save=False)
            undo.callback(default_storage.delete, getattr(made, name).name)
        version = _stored(made)
        if version is made:
            undo.pop_all()
    return version


@transaction.atomic
def _stored(made: EvaluationSetVersion) -> EvaluationSetVersion:
    """The version with a row of its own, or the last one if it is the same. Locks the set."""
    one = EvaluationSet.objects.select_for_update(of=("self",)).get(pk=made.evaluation_set_id)
    last = latest_version(one)
    if last and last.sha256 == made.sha256 and (last.dataset_id or not made.dataset_id):
        return last
    made.version = last.version + 1 if last else 1
    made.save(force_insert=True)
    log(made.made_by, "evaluation_set.version", made, size=made.size, sha256=made.sha256)
    return made


def _next(evaluation_set: EvaluationSet) -> int:
    last = latest_version(evaluation_set)
    return last.version + 1 if last else 1


def latest_version(evaluation_set: EvaluationSet) -> EvaluationSetVersion | None:
    """The newest version, if there is one."""
    return evaluation_set.versions.order_by("-version").first()


def newest_versions(task: Task) -> QuerySet[EvaluationSetVersion]:
    """The last version of each of a task's evaluation sets."""
    later = EvaluationSetVersion.objects.filter(
        evaluation_set=OuterRef("evaluation_set"), version__gt=OuterRef("version")
    )
    versions = EvaluationSetVersion.objects.filter(~Exists(later), evaluation_set__task=task)
    return versions.select_related("evaluation_set")


def open_versions(task: Task) -> QuerySet[EvaluationSetVersion]:
    """The newest version of each set whose inputs anybody who sees the task may have."""
    versions = newest_versions(task).filter(evaluation_set__may_leave=True)
    return versions.exclude(evaluation_set__access=EvaluationSet.Access.HIDDEN)


def input_rows(version: EvaluationSetVersion) -> Iterator[Mapping[str, Any]]:
    """`{"uid": …, "inputs": {field: value}}` of each example in order; never opens the answers."""
    with version.inputs.open("rb") as file, gzip.GzipFile(fileobj=file) as lines:
        yield from map(orjson.loads, lines)


def input_lines(version: EvaluationSetVersion) -> Iterator[bytes]:
    """The inputs as JSON lines `{"id": uid, "inputs": {field: value}}`, as they are downloaded."""
    for row in input_rows(version):
        yield orjson.dumps({"id": row["uid"], "inputs": row["inputs"]}) + b"\n"


def set_rows(version: EvaluationSetVersion) -> Iterator[SetRow]:
    """The examples of a version in order, with right answers and slices. Streams."""
    with version.gold.open("rb") as file, gzip.GzipFile(fileobj=file) as lines:
        for told, kept in zip(input_rows(version), map(orjson.loads, lines), strict=True):
            if told["uid"] != kept["uid"]:
                raise ValueError(f"{version}: the files differ at {told['uid']}.")
            slices = {name: tuple(values) for name, values in kept["slices"].items()}
            yield SetRow(told["uid"], told["inputs"], tuple(kept["gold"]), slices)


def version_of_release(dataset: Dataset) -> EvaluationSetVersion | None:
    """The test split of a released dataset as a version of the round's set; None: it is empty.

    What was withdrawn is left out. The inputs are public from the first release on, so the set
    may leave from then on. Lock: `make_version`.
    """
    if not _test_items(dataset).exists():
        return None
    one = _round_set(dataset.round)
    is_first = not one.versions.filter(dataset__isnull=False).exists()
    maker = RowMaker(dataset.round.task.config)
    rows = (
        _made(maker, row["uid"], {**row["context"], **row["input_json"]}, row["label"], row)
        for row in split_rows(dataset, TEST)
    )
    version = make_version(one, filter(None, rows), dataset.requested_by, dataset)
    if is_first:
        EvaluationSet.objects.filter(pk=one.pk).update(may_leave=True)
    return version


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
    columns = ("uuid", "uid", "inputs", "context__fields", "consensus__label")
    beside = ("context__tag", "challenge")
    found = examples.order_by("pk").values_list(*columns, *beside).iterator(chunk_size=2000)
    answer = round.task.config.answer_field
    rows = (
        _made(
            maker,
            uid or str(uuid),
            {**fields, **inputs},
            label or inputs.get(answer),
            {"tag": tag, "challenge": challenge},
        )
        for uuid, uid, inputs, fields, label, tag, challenge in found
    )
    judged = not waiting_examples([round])[round.pk]  # before the rows are read
    version = make_version(_round_set(round), filter(None, rows), actor)
    if judged:
        version.settled_at = timezone.now()
        version.save(update_fields=["settled_at"])
    return version


def _made(
    maker: RowMaker, uid: str, fields: Mapping[str, Any], label: Any, beside: Mapping[str, Any]
) -> SetRow | None:
    """An example that people wrote; None where it fits the configuration no more.

    beside: its tag and challenge; releases from before there were challenges have none.
    """
    tag, challenge = beside["tag"], beside.get("challenge")
    try:
        return maker.released(uid, fields, label, tag=tag, challenge=challenge)
    except BadRow as error:
        logger.warning("%s is in no evaluation set: %s", uid, error)
        return None


def _round_set(round: Round) -> EvaluationSet:
    return EvaluationSet.objects.get_or_create(
        task=round.task,
        name=f"round-{round.number}",
        defaults={"source": Source.ROUND, "round": round},
    )[0]


def control_version(task: Task) -> EvaluationSetVersion | None:
    """The tenth of an official task's seeds that no starter is trained on; None: it has none.

    Nobody wrote them to fool a model, so they show what adversarial data hides. Lock:
    `make_version`.
    """
    if not task.is_official or not has_seeds(task.code):
        return None
    shape, maker = shape_of(task.config), RowMaker(task.config)
    answer = "label" if shape.labels else "answer"
    _, held = held_out(seed_rows(task.code))
    rows = [maker.make(shape.inputs(row), answer=row[answer]) for row in held]
    one, _ = EvaluationSet.objects.get_or_create(
        task=task,
        name=CONTROL,
        defaults={"source": Source.CONTROL, "access": Access.STANDARD, **CONTROL_IS_PUBLIC},
    )
    return make_version(one, rows, None)


def sweep_rounds() -> list[EvaluationSetVersion]:
    """Make each version that is missing: of rounds that are over, of releases, of seeds.

    A few queries when nothing is missing. What fails is logged and tried at the next sweep.
    """
    wanted = [
        *(partial(version_of_closed_round, round) for round in _closed_without()),
        *(partial(version_of_release, dataset) for dataset in _releases_without()),
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


def _verified(round: Any) -> QuerySet[Example]:
    return Example.objects.filter(
        round=round,
        consensus__is_verified=True,
        retracted_at__isnull=True,
        by_program=False,
    )


def _test_items(dataset: Any) -> QuerySet[DatasetItem]:
    return DatasetItem.objects.filter(dataset=dataset, split=TEST, is_withdrawn=False)


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
    """The newest release of each round whose test split no version holds.

    Later releases only take rows away: with as many left, the test split is still the same.
    """
    done = Dataset.objects.filter(state=Dataset.State.DONE)
    newer = done.filter(round=OuterRef("round"), version__gt=OuterRef("version"))
    held = EvaluationSetVersion.objects.filter(dataset=OuterRef("pk"))
    missing = done.filter(~Exists(newer), ~Exists(held), Exists(_test_items(OuterRef("pk"))))
    found = []
    for dataset in missing.select_related("round__task", "requested_by"):
        versions = EvaluationSetVersion.objects.filter(dataset__round=dataset.round)
        last = versions.order_by("-version").first()
        if last is None or last.size != _test_items(dataset).count():
            found.append(dataset)
    return found


def _official_without() -> list[Task]:
    """Official tasks without a control set."""
    versions = EvaluationSetVersion.objects.filter(
        evaluation_set__task=OuterRef("pk"), evaluation_set__source=Source.CONTROL
    )
    return list(Task.objects.filter(~Exists(versions), is_official=True))
