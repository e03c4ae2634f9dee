"""Bringing files of contexts into a round, and taking a batch out again."""

import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.bounded import MIB, Bounds, OutOfBounds, bounded
from tasks.config.schema import TaskConfig
from tasks.contexts.files import Summary, good_rows, summary_of
from tasks.line_files import FileError
from tasks.models import Context, ContextBatch, Round
from tasks.services import store_contexts

UPLOADS = Path(settings.HOME) / "uploads"
MAX_BYTES = 20 * 1024 * 1024
KEEP_SECONDS = 3600
SALT = "tasks.contexts.imports"
SECONDS, MEMORY_BYTES = 300.0, 512 * MIB  # to read a file
UNFOLDED = 16  # bytes of memory besides that a byte of a file may take
T = TypeVar("T")
FINISHED = (Round.State.CLOSED, Round.State.RELEASED)


class ImportRefused(Exception):
    """Contexts cannot be stored or taken out; the message says why."""


class UploadGone(Exception):
    """The kept upload is too old, somebody else's, or not on this machine."""


def used_contexts() -> QuerySet[Context]:
    """The contexts that were handed out, written about or reported."""
    return Context.objects.filter(
        Q(assignments__isnull=False) | Q(examples__isnull=False) | Q(reports__isnull=False)
    )


def preview_contexts(*, round: Round, lines: Iterable[bytes], file_name: str) -> Summary:
    """What the file would bring into the round. Raises ImportRefused, FileError."""
    return _read(summary_of, round, lines, file_name)


def import_contexts(
    *, round: Round, lines: Iterable[bytes], file_name: str, actor: User | None
) -> int:
    """Store the good new rows of the file and return how many; no lock, a unique digest.

    Raises ImportRefused, FileError.
    """
    good = _read(good_rows, round, lines, file_name)
    if not good:
        return 0
    batch = store_contexts(round=round, rows=good, file_name=file_name[-200:], actor=actor)
    return Context.objects.filter(batch=batch).count()


def _read(
    read: Callable[[bytes, str, TaskConfig, Collection[str]], T],
    round: Round,
    lines: Iterable[bytes],
    file_name: str,
) -> T:
    """What `read` finds in a file, which others made: in a process of its own, within bounds."""
    if round.state in FINISHED:
        told = {"round": round, "state": _(round.state)}
        raise ImportRefused(_("%(round)s is %(state)s and takes no contexts.") % told)
    config = round.task.config
    if not config.context:
        raise ImportRefused(_("The task's configuration has no context fields."))
    stored = set(round.contexts.values_list("digest", flat=True))
    data = b"".join(lines)
    bounds = Bounds(SECONDS, MEMORY_BYTES + UNFOLDED * len(data))
    try:
        return bounded(partial(read, data, file_name, config, stored), bounds)
    except OutOfBounds as error:
        raise FileError(str(error)) from None


@transaction.atomic
def undo_import(*, batch: ContextBatch, actor: User | None) -> int:
    """Delete a batch with its contexts, and return how many there were.

    Locks the round, as handing out a context does. Raises ImportRefused when one is used.
    """
    round = Round.objects.select_for_update(of=("self",)).get(pk=batch.round_id)
    used = used_contexts().filter(batch=batch).distinct().count()
    if used:
        words = _("%(batch)s: %(used)d of its contexts are used. Retire contexts instead.")
        raise ImportRefused(words % {"batch": batch, "used": used})
    contexts = Context.objects.filter(batch=batch)
    count = contexts.count()
    contexts.delete()
    batch.delete()
    log(actor, "contexts.undone", round, file=batch.file_name, rows=count)
    return count


@dataclass(frozen=True)
class KeptUpload:
    """An upload between its preview and its import."""

    path: Path
    file_name: str

    def lines(self) -> Iterator[bytes]:
        """The file line by line. Raises UploadGone."""
        try:
            with self.path.open("rb") as file:
                yield from file
        except FileNotFoundError:
            raise UploadGone(_("The upload is not kept any more. Choose the file again.")) from None

    def forget(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)


def keep_upload(
    *, chunks: Iterable[bytes], file_name: str, round: Round, user: User
) -> tuple[KeptUpload, str]:
    """Keep an upload for an hour; also returns the signed ticket that gets it back."""
    UPLOADS.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep()
    name = secrets.token_hex(16)
    upload = KeptUpload(UPLOADS / name, file_name)
    with os.fdopen(os.open(upload.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.writelines(chunks)
    ticket = {"file": name, "name": file_name, "round": round.pk, "user": user.pk}
    return upload, signing.dumps(ticket, salt=SALT)


def kept_upload(*, ticket: str, round: Round, user: User) -> KeptUpload:
    """The upload of a ticket. Raises UploadGone."""
    try:
        data: dict[str, Any] = signing.loads(ticket, salt=SALT, max_age=KEEP_SECONDS)
    except signing.BadSignature:
        raise UploadGone(_("This preview is too old. Choose the file again.")) from None
    if (data["round"], data["user"]) != (round.pk, user.pk):
        raise UploadGone(
            _("This preview belongs to another round or person. Choose the file again.")
        )
    return KeptUpload(UPLOADS / data["file"], data["name"])


def _sweep() -> None:
    """Delete what was kept for too long."""
    for path in UPLOADS.iterdir():
        with suppress(FileNotFoundError):  # another process was first
            if path.stat().st_mtime < time.time() - KEEP_SECONDS:
                path.unlink()
