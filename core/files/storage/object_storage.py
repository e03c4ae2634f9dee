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
from core.outside import ServiceHanging, ThreadSlots, is_web_process
from core.text.words import gettext_noop

logger = logging.getLogger(__name__)
MEMORY_BYTES = 8 * 2**20
"""Files being read are kept in memory up to this size, larger ones in the spool."""
OUTAGE_MESSAGE = gettext_noop("File storage isn't responding. Try again later.")
WAIT_SECONDS = 30
METHODS_AFTER_RESPONSE = ("_download",)
"""Methods that run after the bucket has answered, so that a large download takes no slot."""
MISSING_CODES = ("404", "NoSuchKey", "NotFound")
FORBIDDEN_CODES = ("403", "AccessDenied", "Forbidden")
WRONG_HOST_CODES = ("SecondLevelDomainForbidden", "VirtualHostDomainRequired", "PermanentRedirect")
WRONG_REGION_CODES = ("400", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
MISSING_RIGHTS_ADVICE = (
    "Check STORAGE_ACCESS_KEY and its secret. The key needs the rights to list the bucket "
    "(s3:ListBucket), to read, to write and to delete: without the first, a server answers 403 "
    "for a file that does not exist."
)


class RetryPolicy(NamedTuple):
    """The time limits and the maximum numbers of attempts for requests to the bucket.

    connect_seconds, read_seconds: time limits for connecting, and for waiting for data.
    call_attempts, download_attempts: the maximum attempts of a call, and of a download.
    """

    connect_seconds: int
    read_seconds: int
    call_attempts: int
    download_attempts: int


POLICY_FOR_REQUESTS = RetryPolicy(
    connect_seconds=2, read_seconds=5, call_attempts=2, download_attempts=2
)
"""Limits for requests for which somebody is waiting."""
POLICY_FOR_JOBS = RetryPolicy(
    connect_seconds=5, read_seconds=20, call_attempts=3, download_attempts=3
)
"""Limits for jobs. All attempts together end before the job's lease does."""


def explain_error(error: BotoCoreError | ClientError, addressing_style: str) -> str:
    """Return a message for the operator about a bucket's error, with advice if there is any."""
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    if code in FORBIDDEN_CODES:
        return f"{error}. {MISSING_RIGHTS_ADVICE}"
    if code in WRONG_REGION_CODES:
        return f"{error}. Check the region in STORAGE_URL."
    if code in WRONG_HOST_CODES:
        other_style = "path" if addressing_style == "virtual" else "virtual"
        return f"{error}. Add &addressing={other_style} to STORAGE_URL."
    return str(error)


def _translate_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method to raise FileNotFoundError for a missing file, and Unavailable in an outage."""

    @wraps(method)
    def wrapper(self: "ObjectStorage", name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            with (
                nullcontext()
                if method.__name__ in METHODS_AFTER_RESPONSE
                else self.slots.take_slot()
            ):
                return method(self, name, *args, **kwargs)
        except ServiceHanging:
            detail = "The bucket does not answer, and no more requests wait for it."
            raise _build_unavailable_error(detail) from None
        except (BotoCoreError, ClientError, Boto3Error) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            # Callers know one error of a missing file, whether it lies in a folder or in a bucket.
            if code in MISSING_CODES:
                raise FileNotFoundError(name) from None
            detail = explain_error(error, self.addressing)
            logger.error("The bucket refused %s of %s: %s", method.__name__, name, detail)
            raise _build_unavailable_error(detail) from error

    return wrapper


def _build_unavailable_error(detail: str) -> Unavailable:
    return Unavailable(OUTAGE_MESSAGE, wait=WAIT_SECONDS, code="storage", detail=detail)


class ObjectStorage(S3Storage):  # type: ignore[misc]
    """A storage of private files in a bucket. The site serves the files."""

    def __init__(self, *, addressing: str = "auto", **options: Any) -> None:
        policy = POLICY_FOR_REQUESTS if is_web_process() else POLICY_FOR_JOBS
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": addressing},
            connect_timeout=policy.connect_seconds,
            read_timeout=policy.read_seconds,
            retries={"mode": "standard", "total_max_attempts": policy.call_attempts},
            # Servers other than Amazon's do not know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        transfer = TransferConfig(num_download_attempts=policy.download_attempts)
        own_options = {
            "file_overwrite": False,
            "max_memory_size": MEMORY_BYTES,
            "client_config": config,
        }
        super().__init__(**own_options, transfer_config=transfer, **options)
        self.addressing, self.slots = addressing, ThreadSlots()

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Return a unique name derived from `name`.

        A random part is always added, because a bucket does not tell which of two writers was
        first.
        """
        stem, suffix = os.path.splitext(name)
        return str(self.get_alternative_name(stem, suffix))

    def get_object_parameters(self, name: str) -> dict[str, Any]:
        """Return a neutral type and no encoding, so that no file is decompressed in transit."""
        return {"ContentType": "application/octet-stream"}

    def _open(self, name: str, mode: str = "rb") -> Any:
        return self._download(name, self._open_remote(name, mode))

    @_translate_errors
    def _open_remote(self, name: str, mode: str) -> Any:
        return super()._open(name, mode)

    @_translate_errors
    def _download(self, name: str, file: Any) -> Any:
        file.file.seek(0)  # fetched now, where an error is understood
        return file

    @_translate_errors
    def _save(self, name: str, content: Any) -> str:
        return str(super()._save(name, content))

    @_translate_errors
    def delete(self, name: str) -> None:
        super().delete(name)

    @_translate_errors
    def exists(self, name: str) -> bool:
        return bool(super().exists(name))

    @_translate_errors
    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        folders, files = super().listdir(name)
        return folders, files

    @_translate_errors
    def size(self, name: str) -> int:
        return int(super().size(name))

    @_translate_errors
    def get_modified_time(self, name: str) -> datetime:
        modified_at: datetime = super().get_modified_time(name)
        return modified_at
