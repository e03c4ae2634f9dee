"""Which languages the pages have."""

from pathlib import Path

from django.conf.locale import LANG_INFO
from django.utils.translation import to_language


def languages(folder: Path) -> list[tuple[str, str]]:
    """Return the code and own name of English and of each language with a catalogue."""
    found = sorted(path.parts[-3] for path in folder.glob("*/LC_MESSAGES/django.po"))
    codes = ["en", *(to_language(name) for name in found if name != "en")]
    return [(code, LANG_INFO.get(code, {}).get("name_local", code)) for code in codes]
