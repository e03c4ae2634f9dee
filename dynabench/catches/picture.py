"""The preview picture of a shared catch, which other sites show with a link to its page.

The site's own font has only Latin letters. If a text has others, the picture leaves the text out,
so that no letter becomes an empty box.
"""

import json
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from textwrap import wrap

from django.conf import settings
from django.core.cache import cache
from PIL import Image, ImageDraw, ImageFont

PICTURE_SIZE = (1200, 630)
OVERSAMPLING = 4
MARGIN, LINE_CHARS, MAX_LINES = 90, 42, 5
PAPER_COLOR, INK_COLOR, MUTED_COLOR, PEOPLE_COLOR, MODEL_COLOR = (
    "#FFFFFF",
    "#14171C",
    "#5B6472",
    "#0B7A66",
    "#3D4FD1",
)
FONT = Path(settings.BASE_DIR) / "static" / "fonts" / "inter-latin.woff2"
LAST_LATIN = 0xFF
"""The last code point of the letters that the font certainly has."""
OTHER_LETTERS = "–—‘’“”…"
CACHE_SECONDS = 600


def get_catch_picture(text: str, headline: str) -> bytes:
    """Return a PNG file with the text and the headline below it, cached for CACHE_SECONDS.

    The caller must check each time whether it may be shown, because the cache can outlive the
    consent.
    """
    key = f"catch-png:{sha256(json.dumps([text, headline]).encode()).hexdigest()}"
    picture: bytes | None = cache.get(key)
    if picture is None:
        picture = draw_catch(text, headline)
        cache.set(key, picture, CACHE_SECONDS)
    return picture


def draw_catch(text: str, headline: str) -> bytes:
    """Return a PNG file with the text and the headline below it.

    Leaves out either if the font lacks one of its letters.
    """
    image = Image.new("RGB", PICTURE_SIZE, PAPER_COLOR)
    draw = ImageDraw.Draw(image)
    image.paste(_draw_mark(), (MARGIN, 80))
    draw.text((MARGIN + 150, 92), "Dynabench", font=_load_font(40), fill=INK_COLOR)
    if _can_draw(text):
        draw.multiline_text(
            (MARGIN, 200), _break_lines(text), font=_load_font(46), fill=INK_COLOR, spacing=14
        )
    if _can_draw(headline):
        draw.text((MARGIN, 540), headline, font=_load_font(32), fill=MUTED_COLOR)
    # Optimised, because other sites fetch the picture for each preview.
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _draw_mark() -> Image.Image:
    """Return the site's mark: two overlapping circles, for people and model.

    They are drawn larger and then scaled down, for smooth edges.
    """
    mark = Image.new("RGB", (116 * OVERSAMPLING, 78 * OVERSAMPLING), PAPER_COLOR)
    draw = ImageDraw.Draw(mark)
    draw.ellipse([coordinate * OVERSAMPLING for coordinate in (0, 0, 76, 76)], fill=PEOPLE_COLOR)
    outline = [coordinate * OVERSAMPLING for coordinate in (46, 4, 114, 72)]
    draw.ellipse(outline, fill=PAPER_COLOR, outline=MODEL_COLOR, width=9 * OVERSAMPLING)
    return mark.resize((116, 78), Image.Resampling.LANCZOS)


def _break_lines(text: str) -> str:
    lines = wrap(f"“{text}”", LINE_CHARS, break_long_words=True)
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"{lines[MAX_LINES - 1][: LINE_CHARS - 2]}…”"]
    return "\n".join(lines)


def _can_draw(text: str) -> bool:
    """Return whether the font has all letters of the text.

    >>> _can_draw("Café, “again”"), _can_draw("кот")
    (True, False)
    """
    return all(ord(letter) <= LAST_LATIN or letter in OTHER_LETTERS for letter in text)


@lru_cache(maxsize=8)
def _load_font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONT, size)
