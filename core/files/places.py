"""Hides from people where files lie on this server; only its operators need to know."""

import re
import sys
import tempfile
from functools import lru_cache
from pathlib import Path, PurePath

from django.conf import settings

LEFT_OUT = "…"


def shown_source(source: str) -> str:
    """Return a model's source for its owners; for a folder of this server, only its name."""
    return PurePath(source).name if source.startswith("/") else source


def without_places(text: str) -> str:
    """Return the text with `…/model.json` in place of the path of a file in one of our folders."""
    folders = (settings.HOME, settings.MEDIA_ROOT, settings.BASE_DIR, settings.MODEL_CACHE)
    others = (tempfile.gettempdir(), sys.prefix, Path.home())
    pattern = _pattern(tuple(str(folder) for folder in (*folders, *others)))
    return pattern.sub(lambda found: f"{LEFT_OUT}/{PurePath(found[0]).name}", text)


@lru_cache(maxsize=8)
def _pattern(folders: tuple[str, ...]) -> re.Pattern[str]:
    # The longest first, as a folder may lie in another. "/" alone would match every path.
    named = sorted({f for f in folders if len(PurePath(f).parts) > 1}, key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(map(re.escape, named))})(?![\w.-])(?:/[\w.+@~-]+)*")
