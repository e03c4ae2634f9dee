"""Stored files in a bucket, through the library `django-storages` (STORAGE_URL)."""

from typing import Any

from botocore.config import Config
from storages.backends.s3 import S3Storage

MEMORY_BYTES = 8 * 2**20
"""A file that is read lies in memory up to this size, above it in the spool."""


class ObjectStorage(S3Storage):  # type: ignore[misc]
    """Files are private, keep their names for good and come through the site, never by an address
    of the bucket."""

    def __init__(self, **options: Any) -> None:
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path" if options.get("endpoint_url") else "auto"},
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "max_attempts": 4},
            # Servers other than Amazon's do not know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        defaults = {"file_overwrite": False, "max_memory_size": MEMORY_BYTES}
        super().__init__(client_config=config, **defaults, **options)
