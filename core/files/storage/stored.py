"""List the contents of storage folders. A missing folder is empty, as buckets have no folders."""

from contextlib import suppress

from django.core.files.storage import default_storage


def list_folders(folder: str) -> list[str]:
    """Return the names of the subfolders of a folder; empty if it is missing."""
    with suppress(FileNotFoundError):
        return list(default_storage.listdir(folder)[0])
    return []


def list_files(folder: str) -> list[str]:
    """Return the paths of the files in a folder, without subfolders; empty if it is missing."""
    with suppress(FileNotFoundError):
        return [f"{folder}/{name}" for name in default_storage.listdir(folder)[1]]
    return []
