"""List the languages that the pages have."""

from pathlib import Path

from django.conf.locale import LANG_INFO
from django.utils.translation import to_language


def list_languages(folder: Path) -> list[tuple[str, str]]:
    """Return the code and native name of English and of each language with a catalogue."""
    folder_names = sorted(path.parts[-3] for path in folder.glob("*/LC_MESSAGES/django.po"))
    codes = ["en", *(to_language(name) for name in folder_names if name != "en")]
    return [(code, LANG_INFO.get(code, {}).get("name_local", code)) for code in codes]
