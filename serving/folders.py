"""Which folders of this machine lie below the models' folder."""

import os
from pathlib import Path


def resolve_below(source: str, home: str) -> Path | None:
    """Return the folder, with its links followed, where it lies below `home`; None elsewhere.

    The disk is not asked about a path that leads elsewhere as it is written: the time of the answer
    would tell whether it exists.
    """
    written = Path(os.path.normpath(source))
    root = Path(os.path.realpath(home))
    if not any(_is_inside(written, one) for one in (Path(os.path.abspath(home)), root)):
        return None
    found = Path(os.path.realpath(source))
    return found if _is_inside(found, root) else None


def _is_inside(path: Path, root: Path) -> bool:
    return path != root and path.is_relative_to(root)
