"""Writes about joint submissions: a model is submitted to all tasks of a community, or to none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import get_annotator, log
from core.errors import Invalid, Refused
from core.files.bounded import MIB, Bounds, OutOfBounds, run_bounded
from core.files.storage.disk import open_scratch_folder
from dynabench.communities.models import Community, JointSubmission
from dynabench.communities.selectors import list_visible_entries
from evaluation.contract import GIB
from evaluation.isolation.uploads.archives import ArchiveLimits, ArchiveRefused, unpack_archive
from evaluation.isolation.uploads.chunked import (
    MAX_OPEN_UPLOADS,
    add_file,
    assemble_upload,
    discard_upload,
)
from evaluation.isolation.uploads.model_folders import remove_macos_files
from evaluation.kinds import KINDS, JointSettings, Kind, find_kinds
from evaluation.models import EvaluationSetVersion, Submission, Upload
from evaluation.submissions.cards import ModelCard
from evaluation.submissions.services import check_quota, submit_model
from evaluation.test_sets.selectors import select_open_versions
from tasks.models import Task
from tasks.permissions import Person, can_submit

UNPACK_BOUNDS = Bounds(seconds=600, memory_bytes=512 * MIB)
ARCHIVE_LIMITS = ArchiveLimits(members=2000, bytes=GIB)
FILE_SUFFIX = ".jsonl"


@dataclass(frozen=True)
class JointPart:
    """The part of a joint submission that goes to one task, or to one of its evaluation sets.

    version: the evaluation set, for predictions. upload: the part's file, once stored.
    """

    task: Task
    version: EvaluationSetVersion | None = None
    upload: Upload | None = None

    @property
    def archive_path(self) -> str:
        """Return the part's path in the archive, without extension.

        `nli/reviews` for predictions on a set, `nli` for the rows of a task.
        """
        code = self.task.code
        return f"{code}/{self.version.evaluation_set.name}" if self.version else code


class JointRefused(Refused):
    """Raised if a task refuses a joint submission, so that nothing was submitted.

    reasons: each task's reason by its code, or "" if it would accept the submission.
    """

    code = "joint"
    status = 422

    def __init__(self, reasons: Mapping[str, str]) -> None:
        """Compose the message from the tasks' reasons."""
        listed_reasons = "; ".join(f"{code}: {words}" for code, words in reasons.items() if words)
        super().__init__(_("We couldn't submit the model. %(said)s") % {"said": listed_reasons})
        self.reasons = reasons


def list_joint_kinds() -> list[tuple[Kind, JointSettings]]:
    """Return the kinds of models that can be submitted jointly, in the form's order."""
    kinds = [(kind, kind.joint) for kind in KINDS.values() if kind.joint]
    return sorted(kinds, key=lambda pair: pair[1].place)


def list_joint_kind_names() -> list[str]:
    """Return the names of the kinds that can be submitted jointly, in the form's order."""
    return [kind.name for kind, _joint in list_joint_kinds()]


def get_joint_settings(kind: str) -> JointSettings | None:
    """Return the joint-submission settings of a kind.

    None if the kind is unknown or cannot be submitted jointly.
    """
    return KINDS[kind].joint if kind in KINDS else None


def list_parts(user: Person, community: Community, kind: str) -> list[JointPart]:
    """Return the parts of a joint submission of this kind.

    There is one part for each task that accepts the kind and that the person may submit to. For
    predictions, there is one part for each set with downloadable inputs.
    """
    tasks = [
        entry.task
        for entry in list_visible_entries(user, community)
        if entry.task.config.kind == "examples"
        and kind in find_kinds(entry.task.config)
        and can_submit(user, entry.task)
    ]
    joint = get_joint_settings(kind)
    if joint is None or joint.file_for != "set":
        return [JointPart(task) for task in tasks]
    parts = []
    for task in tasks:
        parts += [JointPart(task, version) for version in select_open_versions(task)]
    return parts


def submit_jointly(
    *,
    community: Community,
    owner: User,
    kind: str,
    name: str,
    upload: Upload | None = None,
    source: str = "",
    revision: str = "",
    track: str = "",
    description: str = "",
) -> JointSubmission:
    """Submit a model to all tasks of the community that accept its kind, under one name.

    1. Check the kind, the track, the archive and each task's quota.
    2. Unpack the archive and find each task's file (`_open_files`).
    3. Store the files, then all submissions (`_store_joint`).
    4. Delete the uploaded archive.

    upload: an archive of the model folder, or of one file per task. A language model gets each
    task's own prompt. The files are stored before any lock is taken; then one transaction makes all
    submissions or none, with the locks of `submit_model`. Raises Invalid, JointRefused or
    UploadRefused.
    """
    joint_settings = get_joint_settings(kind)
    if joint_settings is None:
        raise Invalid(_("Choose a kind of model from the list."), field="kind")
    # A community with tracks needs one of them, and one without takes none.
    if (track or community.tracks) and track not in community.tracks:
        raise Invalid(_("Choose a track from the list."), field="track")
    if upload is None and joint_settings.needs_file:
        raise Invalid(_("Choose an archive to upload."), field="upload")
    parts = list_parts(owner, community, kind)
    if not parts:
        raise Invalid(
            _("No task in this community accepts this kind of model. Choose another kind."),
            field="kind",
        )
    # Made here, where no lock is held: each submission shows it as its owner's name.
    get_annotator(owner)
    card = ModelCard(description=description)
    fields = {"kind": kind, "name": name, "source": source, "revision": revision, "card": card}
    _check_quotas(parts, owner)
    # Unpacked and stored before anything is locked.
    with _open_files(parts, joint_settings, upload) as files:
        joint = _store_joint(community, owner, files, fields, track)
    if upload:
        discard_upload(upload)
    return joint


def _check_quotas(parts: Sequence[JointPart], owner: User) -> None:
    """Check each task's quota before large files are copied. Raises JointRefused."""
    with _collect_refusal_reasons(parts) as reasons:
        for part in parts:
            try:
                check_quota(part.task, owner)
            except Refused as error:
                reasons[part.task.code] = str(error)


@contextmanager
def _collect_refusal_reasons(parts: Sequence[JointPart]) -> Iterator[dict[str, str]]:
    """Yield a dictionary in which the caller stores why a task refuses, by the task's code.

    All reasons are "" at first. Raises JointRefused afterwards if a task refused.
    """
    reasons = {part.task.code: "" for part in parts}
    yield reasons
    if any(reasons.values()):
        raise JointRefused(reasons)


def _store_joint(
    community: Community,
    owner: User,
    files: Sequence[tuple[JointPart, Path | None]],
    fields: Mapping[str, Any],
    track: str,
) -> JointSubmission:
    """Store the files, then all rows in one transaction.

    files: each part with its local file, or None. If storing fails, delete the files again.
    """
    stored_parts: list[JointPart] = []
    # A person may have few open uploads; these exist for a moment and belong together.
    most_open = MAX_OPEN_UPLOADS + len(files) + 1
    try:
        for part, path in files:
            if path:
                with path.open("rb") as file:
                    size = path.stat().st_size
                    stored_upload = add_file(
                        owner,
                        # An upload has a plain file name, but the archive may have folders.
                        part.archive_path.replace("/", "-"),
                        size,
                        file,
                        max_open_uploads=most_open,
                    )
                part = replace(part, upload=stored_upload)
            stored_parts.append(part)
        with transaction.atomic():
            submissions = _submit_all(stored_parts, owner, fields)
            joint = JointSubmission.objects.create(
                community=community, owner=owner, name=fields["name"], track=track
            )
            joint.submissions.set(submissions)
            log(owner, "community.submitted", community, name=joint.name, tasks=len(submissions))
    except BaseException:
        # Files are outside of the transaction, so nothing else would ever delete them.
        for part in stored_parts:
            if part.upload:
                discard_upload(part.upload)
        raise
    return joint


def _submit_all(
    parts: Sequence[JointPart], owner: User, fields: Mapping[str, Any]
) -> list[Submission]:
    """Submit each part in the caller's transaction.

    Raises JointRefused, which rolls the submissions back.
    """
    submissions = []
    with _collect_refusal_reasons(parts) as reasons:
        for part in parts:
            try:
                # A savepoint, so that after a refusal the other tasks are asked, too.
                with transaction.atomic():
                    submission = submit_model(
                        task=part.task,
                        owner=owner,
                        upload=part.upload,
                        evaluation_set=part.version,
                        **fields,
                    )
            except Refused as error:
                reasons[part.task.code] = str(error)
            else:
                submissions.append(submission)
    return submissions


@contextmanager
def _open_files(
    parts: Sequence[JointPart], joint_settings: JointSettings, upload: Upload | None
) -> Iterator[list[tuple[JointPart, Path | None]]]:
    """Yield each part with its local file, or None if it has no file.

    Raises Invalid, JointRefused or UploadRefused.
    """
    if upload is None:
        yield [(part, None) for part in parts]
        return
    with assemble_upload(upload) as path, open_scratch_folder() as folder:
        # The archive is the model itself, the same for each task.
        if joint_settings.file_for == "model":
            yield [(part, path) for part in parts]
            return
        # In a process of its own with little memory: the archive is a stranger's.
        try:
            run_bounded(
                partial(unpack_archive, path, folder / "files", ARCHIVE_LIMITS), UNPACK_BOUNDS
            )
        except (ArchiveRefused, OutOfBounds) as error:
            raise Invalid(str(error), field="upload") from None
        # Archives of macOS hold a second file for each, which would belong to no task.
        remove_macos_files(folder / "files")
        yield _match_files(parts, folder / "files")


def _strip_suffix(name: str) -> str:
    """Return a file name without `FILE_SUFFIX`, in upper or lower case.

    The result can be compared with `JointPart.archive_path`.
    """
    return name[: -len(FILE_SUFFIX)] if name.lower().endswith(FILE_SUFFIX) else name


def _match_files(parts: Sequence[JointPart], folder: Path) -> list[tuple[JointPart, Path | None]]:
    """Return each part with its file, such as `nli/reviews.jsonl`.

    A task with only one part may also use `nli.jsonl`. Raises Invalid or JointRefused.
    """
    files = (path for path in folder.rglob("*") if path.is_file())
    files_by_stem = {_strip_suffix(str(path.relative_to(folder))): path for path in files}
    part_counts = Counter(part.task.code for part in parts)
    file_stems = {}
    for part in parts:
        code = part.task.code
        # People leave the folder out where it would hold a single file.
        has_short_name = part_counts[code] == 1 and code in files_by_stem
        file_stems[part] = code if has_short_name else part.archive_path
    unknown_stems = sorted(files_by_stem.keys() - set(file_stems.values()))
    if unknown_stems:
        allowed_files = ", ".join(f"{file_stem}{FILE_SUFFIX}" for file_stem in file_stems.values())
        message = _("%(file)s doesn't match any task. The archive must contain %(wanted)s.")
        # A stranger's name of a file: escaped, and cut where it is very long.
        name = ascii(unknown_stems[0])[1:121]
        raise Invalid(message % {"file": name, "wanted": allowed_files}, field="upload")
    with _collect_refusal_reasons(parts) as reasons:
        for part, file_stem in file_stems.items():
            if file_stem not in files_by_stem:
                values = {"file": f"{part.archive_path}{FILE_SUFFIX}"}
                reasons[part.task.code] = _("%(file)s is missing from the archive.") % values
    return [(part, files_by_stem[file_stem]) for part, file_stem in file_stems.items()]
