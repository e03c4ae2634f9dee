"""Hide from people where files are stored on this server. Only operators need to know."""

import re
import sys
import tempfile
from functools import lru_cache
from pathlib import Path, PurePath

from django.conf import settings

ELLIPSIS = "…"


def shorten_source(source: str) -> str:
    """Return a model's source as its owners see it: only the name of a folder on this server."""
    return PurePath(source).name if source.startswith("/") else source


def remove_paths(text: str) -> str:
    """Return the text with the paths of files in our folders shortened to `…/NAME`."""
    folders = (settings.HOME, settings.MEDIA_ROOT, settings.BASE_DIR, settings.MODEL_CACHE)
    other_folders = (tempfile.gettempdir(), sys.prefix, Path.home())
    pattern = _compile_pattern(tuple(str(folder) for folder in (*folders, *other_folders)))
    return pattern.sub(lambda match: f"{ELLIPSIS}/{PurePath(match[0]).name}", text)


@lru_cache(maxsize=8)
def _compile_pattern(folders: tuple[str, ...]) -> re.Pattern[str]:
    # The longest first, as a folder may lie in another. "/" alone would match every path.
    named_folders = {folder for folder in folders if len(PurePath(folder).parts) > 1}
    sorted_folders = sorted(named_folders, key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(map(re.escape, sorted_folders))})(?![\w.-])(?:/[\w.+@~-]+)*")
