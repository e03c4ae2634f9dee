"""Stored files in a bucket, through the library `django-storages` (STORAGE_URL)."""

import logging
import os
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from functools import wraps
from typing import Any, NamedTuple

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3Storage

from core.errors import Unavailable
from core.outside import Hanging, Places, serves_requests
from core.text.words import gettext_noop

logger = logging.getLogger(__name__)
MEMORY_BYTES = 8 * 2**20
"""A file that is read lies in memory up to this size, above it in the spool."""
AWAY = gettext_noop("The store of files does not answer. Try again later.")
WAIT_SECONDS = 30
ANSWERED = ("_fetched",)
"""Calls that come after the bucket has answered: a large file that arrives holds no place."""
MISSING = ("404", "NoSuchKey", "NotFound")
FORBIDDEN = ("403", "AccessDenied", "Forbidden")
WRONG_HOST = ("SecondLevelDomainForbidden", "VirtualHostDomainRequired", "PermanentRedirect")
WRONG_REGION = ("400", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
LACKS_RIGHT = (
    "Check STORAGE_ACCESS_KEY and its secret. The key needs the rights to list the bucket "
    "(s3:ListBucket), to read, to write and to delete: without the first, a server answers 403 "
    "for a file that does not exist."
)


class Patience(NamedTuple):
    """The timeouts of a call, to connect and to receive bytes, and its number of attempts."""

    connect_seconds: int
    read_seconds: int
    calls: int
    downloads: int


FOR_PEOPLE = Patience(connect_seconds=2, read_seconds=5, calls=2, downloads=2)
"""Somebody waits for the page."""
FOR_JOBS = Patience(connect_seconds=5, read_seconds=20, calls=3, downloads=3)
"""A job; all its calls together end before its lease does."""


def trouble_of(error: BotoCoreError | ClientError, addressing_style: str) -> str:
    """Return a message for the operator about a bucket's error, with advice if possible."""
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    if code in FORBIDDEN:
        return f"{error}. {LACKS_RIGHT}"
    if code in WRONG_REGION:
        return f"{error}. Check the region in STORAGE_URL."
    if code in WRONG_HOST:
        other = "path" if addressing_style == "virtual" else "virtual"
        return f"{error}. Add &addressing={other} to STORAGE_URL."
    return str(error)


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method to raise FileNotFoundError for missing files, Unavailable in an outage."""

    @wraps(method)
    def guarded(self: "ObjectStorage", name: str, *rest: Any, **named: Any) -> Any:
        try:
            with nullcontext() if method.__name__ in ANSWERED else self.places.take():
                return method(self, name, *rest, **named)
        except Hanging:
            detail = "The bucket does not answer, and no more requests wait for it."
            raise _away(detail) from None
        except (BotoCoreError, ClientError, Boto3Error) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            # Callers know one error of a missing file, whether it lies in a folder or in a bucket.
            if code in MISSING:
                raise FileNotFoundError(name) from None
            detail = trouble_of(error, self.addressing)
            logger.error("The bucket refused %s of %s: %s", method.__name__, name, detail)
            raise _away(detail) from error

    return guarded


def _away(detail: str) -> Unavailable:
    return Unavailable(AWAY, wait=WAIT_SECONDS, code="storage", detail=detail)


class ObjectStorage(S3Storage):  # type: ignore[misc]
    """A storage of private files in a bucket, which keep their names and are served by the site."""

    def __init__(self, *, addressing: str = "auto", **options: Any) -> None:
        patience = FOR_PEOPLE if serves_requests() else FOR_JOBS
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": addressing},
            connect_timeout=patience.connect_seconds,
            read_timeout=patience.read_seconds,
            retries={"mode": "standard", "total_max_attempts": patience.calls},
            # Servers other than Amazon's do not know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        transfer = TransferConfig(num_download_attempts=patience.downloads)
        own = {"file_overwrite": False, "max_memory_size": MEMORY_BYTES, "client_config": config}
        super().__init__(**own, transfer_config=transfer, **options)
        self.addressing, self.places = addressing, Places()

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Return a unique name.

        A bucket does not tell which of two writers of the same name was first.
        """
        root, ending = os.path.splitext(name)
        return str(self.get_alternative_name(root, ending))

    def get_object_parameters(self, name: str) -> dict[str, Any]:
        """Return no type and no encoding, so that nothing decompresses a file in transit."""
        return {"ContentType": "application/octet-stream"}

    def _open(self, name: str, mode: str = "rb") -> Any:
        return self._fetched(name, self._found(name, mode))

    @_guarded
    def _found(self, name: str, mode: str) -> Any:
        return super()._open(name, mode)

    @_guarded
    def _fetched(self, name: str, file: Any) -> Any:
        file.file.seek(0)  # fetched now, where an error is understood
        return file

    @_guarded
    def _save(self, name: str, content: Any) -> str:
        return str(super()._save(name, content))

    @_guarded
    def delete(self, name: str) -> None:
        super().delete(name)

    @_guarded
    def exists(self, name: str) -> bool:
        return bool(super().exists(name))

    @_guarded
    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        folders, files = super().listdir(name)
        return folders, files

    @_guarded
    def size(self, name: str) -> int:
        return int(super().size(name))

    @_guarded
    def get_modified_time(self, name: str) -> datetime:
        when: datetime = super().get_modified_time(name)
        return when
