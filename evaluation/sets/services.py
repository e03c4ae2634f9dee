"""Making and changing evaluation sets; a version is made whole or not at all."""

import re
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypedDict, Unpack

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.files.storage.disk import scratch
from evaluation.contract import SetRow
from evaluation.models import Dataset, EvaluationSet, EvaluationSetVersion
from evaluation.releases.undo_services import note_download
from evaluation.sets.selectors import latest_version, open_versions
from evaluation.sets.writing import Written, write_set
from tasks.models import Task

Access = EvaluationSet.Access
CONTROL = "control"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,60}", re.ASCII)
RESERVED = re.compile(rf"{CONTROL}|new|round-\d+(-held)?")
ABOUT = ("access", "may_leave", "answers_public", "description")
"""What the owners of a set may change."""


class About(TypedDict):
    """Who may know what of a set."""

    access: str
    may_leave: bool
    answers_public: bool


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


def note_exposed(version: EvaluationSetVersion, actor: User | None = None) -> None:
    """Note that the inputs of a sealed version leave for somebody else's machine, the first time.

    Their owner has agreed to it, which the log has. No lock: one conditional update.
    """
    if version.exposed_at is None and version.is_sealed:
        first = EvaluationSetVersion.objects.filter(pk=version.pk, exposed_at=None)
        if first.update(exposed_at=timezone.now()):
            log(actor, "evaluation_set.exposed", version)


def note_taken(version: EvaluationSetVersion, actor: User | None = None) -> bool:
    """Note that somebody takes inputs of a version, and so a part of the release that it is of.

    False where that release was undone since the version was read.
    """
    note_exposed(version, actor)
    return version.dataset is None or note_download(version.dataset)


def note_shown(task: Task, count: int) -> None:
    """Note that so many of the first examples that may leave did: see `note_exposed`."""
    for version in open_versions(task):
        if count <= 0:
            return
        note_taken(version)
        count -= version.size


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
