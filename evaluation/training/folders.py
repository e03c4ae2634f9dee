"""Folders that appear whole or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A new folder next to `path` that takes its name at the end, or vanishes with an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield folder
        folder.chmod(0o755)
        folder.rename(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def shared_folder(path: Path) -> Iterator[Path]:
    """As `atomic_folder`, where other processes may make the same folder: the first one stays."""
    try:
        with atomic_folder(path) as folder:
            yield folder
    except OSError:
        if not path.exists():
            raise
