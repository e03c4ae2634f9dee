"""Make a model's folder readable for the sandbox's user, who is `nobody`."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o644, 0o755


@contextmanager
def make_readable(
    folder: Path, root: Path, call_patiently: Callable[[Callable[[], object]], object]
) -> Iterator[Path]:
    """Yield the folder, or a readable copy if its permissions or links keep others out.

    transformers saves weights readable only for their owner, and the cache of a hub consists of
    links. The copy is made in `root`. call_patiently: calls the function that copies, which may
    take long. Raises OSError.
    """
    if _is_readable_by_all(folder) and all(map(_is_readable_by_all, folder.rglob("*"))):
        yield folder
        return
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        copy = Path(scratch, "model")
        call_patiently(lambda: shutil.copytree(folder, copy, copy_function=shutil.copyfile))
        copy.chmod(FOLDER_MODE)
        for path in copy.rglob("*"):
            path.chmod(_get_readable_mode(path))
        yield copy


def _is_readable_by_all(path: Path) -> bool:
    """Return whether a path is not a link and everybody may read the file or enter the folder."""
    needed_bits = _get_readable_mode(path) & 0o005  # the bits for others
    return not path.is_symlink() and path.stat().st_mode & needed_bits == needed_bits


def _get_readable_mode(path: Path) -> int:
    if path.is_dir():
        return FOLDER_MODE
    return FILE_MODE
