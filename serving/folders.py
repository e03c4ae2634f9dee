"""Which folders of this machine lie below the models' folder."""

import os
from pathlib import Path


def resolve_below(source: str, home: str) -> Path | None:
    """Return the folder with symbolic links resolved, or None if it is not below `home`.

    A path that leads elsewhere as written is not looked up on disk: the response time would reveal
    whether it exists.
    """
    written = Path(os.path.normpath(source))
    root = Path(os.path.realpath(home))
    if not _is_inside(written, Path(os.path.abspath(home))) and not _is_inside(written, root):
        return None
    folder = Path(os.path.realpath(source))
    return folder if _is_inside(folder, root) else None


def _is_inside(path: Path, root: Path) -> bool:
    return path != root and path.is_relative_to(root)
