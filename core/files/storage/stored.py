"""What lies in a folder of the storage. A bucket has no folders, and a missing one is empty."""

from contextlib import suppress

from django.core.files.storage import default_storage


def folders_in(folder: str) -> list[str]:
    """Return the names of the subfolders of a folder."""
    with suppress(FileNotFoundError):
        return list(default_storage.listdir(folder)[0])
    return []


def files_in(folder: str) -> list[str]:
    """Return the paths of the files in a folder."""
    with suppress(FileNotFoundError):
        return [f"{folder}/{name}" for name in default_storage.listdir(folder)[1]]
    return []
