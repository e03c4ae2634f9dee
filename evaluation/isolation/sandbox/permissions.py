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
    """Provide the folder, or a copy if its modes keep others out or it links elsewhere.

    transformers saves weights readable only for their owner, and a hub's cache is made of links.
    The copy is made in `place`; `patiently` makes the call that takes long.
    Raises OSError.
    """
    if _is_open(folder) and all(map(_is_open, folder.rglob("*"))):
        yield folder
        return
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        copy = Path(scratch, "model")
        patiently(lambda: shutil.copytree(folder, copy, copy_function=shutil.copyfile))
        copy.chmod(FOLDER)
        for path in copy.rglob("*"):
            path.chmod(_mode(path))
        yield copy


def _is_open(path: Path) -> bool:
    """Return whether everybody may read a file or enter a folder, and it is no link."""
    needed = _mode(path) & 0o005  # the bits for others
    return not path.is_symlink() and path.stat().st_mode & needed == needed


def _mode(path: Path) -> int:
    if path.is_dir():
        return FOLDER
    return FILE
