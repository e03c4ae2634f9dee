"""The catalogues of `locale/`: every word of the pages, in each language, compiled as it stands."""

import re
import shutil
import subprocess
import sys
from gettext import GNUTranslations
from pathlib import Path

import pytest

from tests.support.variables import APPS

ROOT = Path(__file__).parents[2]
LOCALE = ROOT / "locale"
LANGUAGES = sorted(path.name for path in LOCALE.iterdir())
PLACEHOLDER = re.compile(r"%\(\w+\)[\d.]*[a-zA-Z]|\{\w+\}|%%|%s")
TAG = re.compile(r"</?\w+[^>]*>")


def words_of(compiled: Path) -> dict[str, str | dict[int, str]]:
    with compiled.open("rb") as file:
        return GNUTranslations(file)._catalog


def read(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def renewed(tmp_path_factory) -> Path:
    """The catalogues after the words of today's code were read again."""
    copy = tmp_path_factory.mktemp("words")
    for folder in (*APPS, "templates", "locale"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    languages = [f"--locale={name}" for name in LANGUAGES]
    read([sys.executable, "-m", "django", "makemessages", "--no-location", *languages], copy)
    return copy / "locale"


def test_the_interface_has_its_four_languages():
    assert LANGUAGES == ["ar", "de", "es", "fr"]


@pytest.mark.gettext
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_is_missing_or_guessed(renewed, language):
    """If this fails: makemessages, translate, compilemessages, as docs/developers.md says."""
    file = f"{language}/LC_MESSAGES/django.po"
    for kind in ("--untranslated", "--only-fuzzy"):
        left = read(["msgattrib", kind, "--no-obsolete", file], renewed)
        assert re.findall(r'^msgid "(.+)"$', left, re.MULTILINE) == []


@pytest.mark.gettext
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_compiled_is_what_is_written(tmp_path, language):
    folder = LOCALE / language / "LC_MESSAGES"
    again = tmp_path / "django.mo"
    read(["msgfmt", "--check-format", "-o", str(again), "django.po"], folder)
    assert words_of(again) == words_of(folder / "django.mo")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_keeps_placeholders_and_tags(language):
    """Of plurals, whose forms may leave their number out, msgfmt checks the placeholders."""
    for original, said in words_of(LOCALE / language / "LC_MESSAGES" / "django.mo").items():
        if original and isinstance(original, str):
            original = original.rpartition("\x04")[2]
            assert sorted(PLACEHOLDER.findall(said)) == sorted(PLACEHOLDER.findall(original)), said
            assert TAG.findall(said) == TAG.findall(original), said
            assert said.startswith(" ") == original.startswith(" "), said
