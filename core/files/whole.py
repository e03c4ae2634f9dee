"""Write files that get their names only once they are complete."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED_SUFFIX = ".part"


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Yield the path of an unfinished file to write, and rename it to `path` afterwards.

    After an error the unfinished file stays, and a file that had the name before stays as it was.
    """
    # Beside the target, so that the last step is a rename on one disk.
    unfinished_path = path.with_name(f"{path.name}{UNFINISHED_SUFFIX}")
    yield unfinished_path
    unfinished_path.replace(path)
