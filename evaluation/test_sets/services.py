"""Create and change evaluation sets; a version is stored whole or not at all."""

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
from core.files.storage.disk import open_scratch_folder
from evaluation.contract import SetRow
from evaluation.dataset_releases.anchors import has_serving_anchors
from evaluation.dataset_releases.undo_services import note_download
from evaluation.models import Dataset, EvaluationSet, EvaluationSetVersion
from evaluation.test_sets.selectors import find_latest_version, select_open_versions
from evaluation.test_sets.writing import WrittenSet, write_set
from tasks.models import Task

Access = EvaluationSet.Access
CONTROL_NAME = "control"
NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,60}", re.ASCII)
RESERVED_NAMES = re.compile(rf"{CONTROL_NAME}|new|round-\d+(-held)?")
EDITABLE_FIELDS = ("access", "may_leave", "answers_public", "description")
"""The fields of a set that its owners may change."""


class AccessSettings(TypedDict):
    """The access settings of a set."""

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
    """Create a task's set without versions. Takes no lock, because set names are unique.

    access: who may see the set. may_leave: whether its inputs may leave the site. answers_public:
    whether its right answers are public. Raises Refused for a name that is malformed, reserved or
    taken.
    """
    if not NAME_PATTERN.fullmatch(name):
        raise Refused(
            gettext("Use up to 60 characters: letters a-z, numbers, hyphens and underscores."),
            status=422,
        )
    if RESERVED_NAMES.fullmatch(name):
        raise Refused(
            gettext("The name %(name)s is reserved. Choose another.") % {"name": name},
            status=422,
        )
    access_settings = {"access": access, "may_leave": may_leave, "answers_public": answers_public}
    try:
        with transaction.atomic():
            evaluation_set = EvaluationSet.objects.create(
                task=task, name=name, description=description, **access_settings
            )
            log(actor, "evaluation_set.created", evaluation_set, **access_settings)
    # The unique name decides, even if two people create a set at once.
    except IntegrityError:
        raise Refused(
            gettext(
                "This task already has a test set %(name)s. Choose another name, or add a "
                "version to it."
            )
            % {"name": name},
            status=422,
        ) from None
    return evaluation_set


@transaction.atomic
def change_set(
    *,
    evaluation_set: EvaluationSet,
    actor: User,
    description: str,
    **access_settings: Unpack[AccessSettings],
) -> None:
    """Change a set's access settings and description. Its versions stay.

    Locks the set, so that no ruler chooses its anchors meanwhile. Raises Refused if rows that are
    secret would become public while they are anchors.
    """
    set_rows = EvaluationSet.objects.filter(pk=evaluation_set.pk)
    former = set_rows.select_for_update(of=("self",)).get()
    wanted = {
        "may_leave": access_settings.get("may_leave"),
        "answers_public": access_settings.get("answers_public"),
    }
    opened = [name for name, is_open in wanted.items() if is_open and not getattr(former, name)]
    # Closing a set, or changing its description, harms no anchor.
    if opened and has_serving_anchors(former):
        raise Refused(
            gettext("Rows of this set are anchors of the ruler. Retire the ruler first."),
            code="anchors",
            field=opened[0],
        )
    set_rows.update(description=description, **access_settings)
    log(actor, "evaluation_set.changed", evaluation_set, **access_settings)


def record_exposure(version: EvaluationSetVersion, actor: User | None = None) -> None:
    """Record the first time that inputs of a sealed version leave this site, and log it.

    The owner has agreed to this. Takes no lock, because it is one conditional update.
    """
    if version.exposed_at is None and version.is_sealed:
        # Only the request whose update finds no date logs the exposure.
        unexposed_versions = EvaluationSetVersion.objects.filter(pk=version.pk, exposed_at=None)
        if unexposed_versions.update(exposed_at=timezone.now()):
            log(actor, "evaluation_set.exposed", version)


def record_inputs_taken(version: EvaluationSetVersion, actor: User | None = None) -> bool:
    """Record, for a version and its release, that the version's inputs leave this site.

    Returns False if that release has been undone since the version was read.
    """
    record_exposure(version, actor)
    return version.dataset is None or note_download(version.dataset)


def record_shown_examples(task: Task, count: int) -> None:
    """Record that the inputs of the first `count` open examples left this site.

    See `record_exposure`.
    """
    for version in select_open_versions(task):
        if count <= 0:
            return
        record_inputs_taken(version)
        count -= version.size


def create_set_with_version(rows: Iterable[SetRow], **set_fields: Any) -> EvaluationSetVersion:
    """Create a set with its first version, or neither. Raises Refused.

    set_fields: the arguments of `create_set`.
    """
    with open_scratch_folder() as folder:
        # Written before the transaction begins, because reading millions of rows takes minutes.
        written_set = _write_files(rows, folder)
        with transaction.atomic():
            return _store_version(
                create_set(**set_fields), written_set, folder, set_fields["actor"], None
            )


def make_version(
    evaluation_set: EvaluationSet,
    rows: Iterable[SetRow],
    actor: User | None,
    dataset: Dataset | None = None,
) -> EvaluationSetVersion:
    """Make the next version from these examples; return the last version if it is equal.

    If `rows` raises an exception, nothing is stored. Locks the set only briefly, because both files
    are stored before. dataset: the release that contains the rows, if any. Raises Refused if
    there are no examples.
    """
    with open_scratch_folder() as folder:
        written_set = _write_files(rows, folder)
        return _store_version(evaluation_set, written_set, folder, actor, dataset)


def _write_files(rows: Iterable[SetRow], folder: Path) -> WrittenSet:
    """Write the two files of a version. Raises Refused if there are no examples."""
    written_set = write_set(rows, folder)
    if not written_set.size:
        raise Refused(gettext("The file contains no examples."), status=422)
    return written_set


def _store_version(
    evaluation_set: EvaluationSet,
    written_set: WrittenSet,
    folder: Path,
    actor: User | None,
    dataset: Dataset | None,
) -> EvaluationSetVersion:
    """Store both files, then the row. Return the last version instead if it is equal."""
    version = EvaluationSetVersion(
        evaluation_set=evaluation_set,
        version=_find_next_number(evaluation_set),  # names the files; the lock below decides
        sha256=written_set.sha256,
        size=written_set.size,
        slices=written_set.slices,
        dataset=dataset,
        made_by=actor,
    )
    with ExitStack() as undo_stack:  # files that no row names are deleted again
        for name in ("inputs", "gold"):
            with (folder / name).open("rb") as file:
                getattr(version, name).save(f"{name}.jsonl.gz", File(file), save=False)
            undo_stack.callback(default_storage.delete, getattr(version, name).name)
        stored_version = _insert_or_find(version)
        if stored_version is version:
            undo_stack.pop_all()
    return stored_version


@transaction.atomic
def _insert_or_find(version: EvaluationSetVersion) -> EvaluationSetVersion:
    """Insert the version, or return the last one if it is equal. Locks the set."""
    sets = EvaluationSet.objects.select_for_update(of=("self",))
    evaluation_set = sets.get(pk=version.evaluation_set_id)
    last_version = find_latest_version(evaluation_set)
    # A version of a release differs from an equal version of the round: its dataset means
    # that the rows are public.
    if (
        last_version
        and last_version.sha256 == version.sha256
        and (last_version.dataset_id or not version.dataset_id)
    ):
        return last_version
    version.version = _find_next_number(evaluation_set)  # counted under the lock
    version.save(force_insert=True)
    log_data = {"size": version.size, "sha256": version.sha256}
    log(version.made_by, "evaluation_set.version", version, **log_data)
    return version


def _find_next_number(evaluation_set: EvaluationSet) -> int:
    last_version = find_latest_version(evaluation_set)
    return last_version.version + 1 if last_version else 1
