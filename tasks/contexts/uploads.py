"""Store files of contexts between their preview and their import."""

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import signing
from django.utils.translation import gettext as _

from core.accounts.models import User
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.models import Round

UPLOADS_FOLDER = Path(settings.HOME) / "uploads"
MAX_BYTES = 20 * 1024 * 1024
RETENTION_SECONDS = 3600
TICKET_SALT = "tasks.contexts.imports"


class UploadExpired(Exception):
    """Raised if a stored upload has expired, is somebody else's, or is on another machine."""


@dataclass(frozen=True)
class StoredUpload:
    """An uploaded file that is stored between its preview and its import."""

    path: Path
    file_name: str
    terms: Terms

    def iter_lines(self) -> Iterator[bytes]:
        """Yield the lines of the file. Raises UploadExpired."""
        try:
            with self.path.open("rb") as file:
                yield from file
        except FileNotFoundError:
            raise UploadExpired(_("The upload has expired. Choose the file again.")) from None

    def discard(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)


def store_upload(
    *,
    chunks: Iterable[bytes],
    file_name: str,
    round: Round,
    user: User,
    terms: Terms = UNKNOWN_TERMS,
) -> str:
    """Store an upload for an hour; return a signed ticket with which to retrieve it."""
    UPLOADS_FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    _delete_expired_uploads()
    name = secrets.token_hex(16)
    # Only for this user of the machine, and never through a link that somebody put there.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(UPLOADS_FOLDER / name, flags, 0o600), "wb") as file:
        file.writelines(chunks)
    # Signed, so that nobody can take another person's upload, or store it in another round.
    ticket = {"file": name, "name": file_name, "round": round.pk, "user": user.pk, "terms": terms}
    return signing.dumps(ticket, salt=TICKET_SALT, compress=True)


def find_upload(*, ticket: str, round: Round, user: User) -> StoredUpload:
    """Return the upload that a ticket identifies. Raises UploadExpired."""
    try:
        data: dict[str, Any] = signing.loads(ticket, salt=TICKET_SALT, max_age=RETENTION_SECONDS)
    except signing.BadSignature:
        raise UploadExpired(_("This preview has expired. Choose the file again.")) from None
    if (data["round"], data["user"]) != (round.pk, user.pk):
        raise UploadExpired(
            _("This preview belongs to another round or person. Choose the file again.")
        )
    return StoredUpload(UPLOADS_FOLDER / data["file"], data["name"], Terms(*data["terms"]))


def _delete_expired_uploads() -> None:
    """Delete the uploads that have expired."""
    for path in UPLOADS_FOLDER.iterdir():
        with suppress(FileNotFoundError):  # another process was first
            if path.stat().st_mtime < time.time() - RETENTION_SECONDS:
                path.unlink()
