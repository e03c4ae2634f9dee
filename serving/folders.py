"""Check whether a folder is below the models' folder."""

import os
from pathlib import Path


def resolve_below(source: str, home: str) -> Path | None:
    """Return the folder with symbolic links resolved, or None if it is not below `home`.

    If the path as written is not below `home`, the disk is not read, because the response time
    would reveal whether the path exists.
    """
    normal_path = Path(os.path.normpath(source))
    root = Path(os.path.realpath(home))
    if not _is_inside(normal_path, Path(os.path.abspath(home))) and not _is_inside(
        normal_path, root
    ):
        return None
    folder = Path(os.path.realpath(source))
    return folder if _is_inside(folder, root) else None


def _is_inside(path: Path, root: Path) -> bool:
    # The models' folder itself is no model.
    return path != root and path.is_relative_to(root)
