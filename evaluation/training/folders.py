"""Make folders that appear completely or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def make_atomic_folder(path: Path) -> Iterator[Path]:
    """Provide a new folder that is renamed to `path` at the end of the block.

    After an exception it is deleted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder as `path`, because a rename is atomic only within a file system.
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield folder
        folder.chmod(0o755)
        folder.rename(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def make_shared_folder(path: Path) -> Iterator[Path]:
    """Provide a folder like `make_atomic_folder`; keep the folder of a faster process instead."""
    try:
        with make_atomic_folder(path) as folder:
            yield folder
    except OSError:
        if not path.exists():
            raise
