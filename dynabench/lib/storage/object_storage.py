"""Stored files in a bucket, through the library `django-storages` (STORAGE_URL)."""

import logging
import os
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3Storage

from dynabench.lib.errors import Unavailable
from dynabench.lib.words import gettext_noop

logger = logging.getLogger(__name__)
MEMORY_BYTES = 8 * 2**20
"""A file that is read lies in memory up to this size, above it in the spool."""
AWAY = gettext_noop("The store of files does not answer. Try again later.")
MISSING = ("404", "NoSuchKey", "NotFound")


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """As any storage: FileNotFoundError for what is not there, Unavailable where nobody answers."""

    @wraps(method)
    def guarded(self: "ObjectStorage", name: str, *rest: Any, **named: Any) -> Any:
        try:
            return method(self, name, *rest, **named)
        except (BotoCoreError, ClientError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            if code in MISSING:
                raise FileNotFoundError(name) from None
            logger.error("The bucket refused %s of %s: %s", method.__name__, name, error)
            raise Unavailable(AWAY, wait=60) from error

    return guarded


class ObjectStorage(S3Storage):  # type: ignore[misc]
    """Files are private, keep their names for good, and come through the site alone."""

    def __init__(self, **options: Any) -> None:
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path" if options.get("endpoint_url") else "auto"},
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "max_attempts": 3},
            # Servers other than Amazon's do not know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        own = {"file_overwrite": False, "max_memory_size": MEMORY_BYTES, "client_config": config}
        super().__init__(**own, **options)

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """A name of its own: a bucket does not say which of two that store one name came first."""
        root, ending = os.path.splitext(name)
        return str(self.get_alternative_name(root, ending))

    def get_object_parameters(self, name: str) -> dict[str, Any]:
        """No type and no encoding by the ending: nobody unpacks a file on its way."""
        return {"ContentType": "application/octet-stream"}

    @_guarded
    def _open(self, name: str, mode: str = "rb") -> Any:
        file = super()._open(name, mode)
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
