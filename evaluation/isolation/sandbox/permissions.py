"""A model's folder in a form that the sandbox's user, who is nobody, can read."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FILE, FOLDER = 0o644, 0o755


@contextmanager
def make_readable(
    folder: Path, place: Path, patiently: Callable[[Callable[[], object]], object]
) -> Iterator[Path]:
    """Yield the folder, or a readable copy if its permissions or links keep others out.

    transformers saves weights readable only for their owner, and the cache of a hub consists of
    links. The copy is made in `place`. patiently: calls the function that copies, which may take
    long. Raises OSError.
    """
    if _is_open(folder) and all(map(_is_open, folder.rglob("*"))):
        yield folder
        return
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        copy = Path(scratch, "model")
        patiently(lambda: shutil.copytree(folder, copy, copy_function=shutil.copyfile))
        copy.chmod(FOLDER)
        for path in copy.rglob("*"):
            path.chmod(_readable_mode(path))
        yield copy


def _is_open(path: Path) -> bool:
    """Return whether a path is not a link and everybody may read the file or enter the folder."""
    needed = _readable_mode(path) & 0o005  # the bits for others
    return not path.is_symlink() and path.stat().st_mode & needed == needed


def _readable_mode(path: Path) -> int:
    if path.is_dir():
        return FOLDER
    return FILE
