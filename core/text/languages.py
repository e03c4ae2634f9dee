"""List the languages that the pages have, and tell tags of languages from other texts."""

import re
from pathlib import Path

from django.conf.locale import LANG_INFO
from django.utils.translation import get_language_info, to_language

MAX_TAG_CHARS = 35
"""The length that BCP 47 asks programs to allow (RFC 5646, 4.4.1)."""
LANGUAGE_PATTERN = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def list_languages(folder: Path) -> list[tuple[str, str]]:
    """Return the code and native name of English and of each language with a catalogue."""
    folder_names = sorted(path.parts[-3] for path in folder.glob("*/LC_MESSAGES/django.po"))
    codes = ["en", *(to_language(name) for name in folder_names if name != "en")]
    return [(code, LANG_INFO.get(code, {}).get("name_local", code)) for code in codes]


def is_language_tag(text: str) -> bool:
    """Return whether the text is a tag such as de or pt-BR whose language code Django knows."""
    # The pattern allows any number of parts, but columns of tables have an end.
    is_tag = len(text) <= MAX_TAG_CHARS and LANGUAGE_PATTERN.fullmatch(text)
    return bool(is_tag) and text.partition("-")[0] in LANG_INFO


def get_language_name(tag: str) -> str:
    """Return a language tag's name in the page's language, or `tag` itself if it is unknown."""
    try:
        return str(get_language_info(tag.lower())["name_translated"])
    except KeyError:
        return tag
