"""The catalogues of `locale/`, and what completes them before a release.

A change may add English texts without translations. `.dev` in the version says that the release is
still to come; without it nothing may be missing.
"""

import re
import subprocess
import tomllib
from gettext import GNUTranslations
from io import BytesIO

import pytest

from core.text.catalogues import (
    Entry,
    compile_entries,
    compile_outdated_catalogues,
    read_entries,
)
from scripts import translations
from scripts.translations import ROOT, catalogues, entries_of, faults, plural_forms, write_entries

CATALOGUES = catalogues(ROOT / "locale")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
HEADER = 'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
AMBIGUOUS = """
About Accept Across Action Address Answer Apply Archive Assign Attempts Bad Battle Begin By Card
Challenge Change Check Close Closed Code Commit Compare Confirm Correct Decide Decided Delete Done
Drop Edit End Ends Error Failed Fair Fast Flag Flagged Fooled From Gap Given Good Imports Inputs
Into Invite Join Judge Judged Judges Keep Key Kind Label Leave Limit Line Log Loss Lost Made Manage
Measured More None Notify Now Open Opened Output Overlap Owed Pause Place Places Policy Practice
Program Published Queue Rank Rate Reading Reason Received Recording Refuse Reject Released Resolved
Retract Review Revoke Right Round Rule Running Save Scale Score Second Secret Send Set Sets Share
Show Size Skip Source Spent Split State Strength Style Submit Tag Taken Target Test Tie Ties To
Token Track Train Trial Tries Undo Up Waiting Waits Weight Weights When Wins Withdraw Work
all held judge kept late lost new off on open over pass ready returned sent test train waits write
"""
"""Words that are a noun, a verb or an adjective, or that have several translations."""
PLAIN = """
number n name version line column day time size percent share task total address challenge low high
p round id set seed team owner target user votes dataset domain state person metric score rank who
other status message most limit weight cost used of judged shown at amount median
"""
"""Placeholders whose name says what stands in their place."""
EXAMPLE = f"""{HEADER}
# Translators: the button.
#, fuzzy, python-format
msgctxt "verb"
msgid "Open %(name)s"
msgstr "Offen"

msgid ""
"one "
"\\"two\\"\\n"
msgid_plural "%(number)d twos"
msgstr[0] "eins"
msgstr[1] "%(number)d"

#~ msgid "old"
#~ msgstr "alt"
"""


def compiled(text):
    return GNUTranslations(BytesIO(compile_entries(read_entries(text))))


def test_the_interface_has_its_four_languages():
    assert list(CATALOGUES) == ["ar", "de", "es", "fr"]


@pytest.mark.gettext
@pytest.mark.skipif(".dev" in VERSION, reason="translations are completed before a release")
def test_a_release_lacks_no_translation():
    assert translations.check(ROOT) == 0


@pytest.mark.parametrize("language", CATALOGUES)
def test_a_translation_keeps_placeholders_plurals_and_tags(language):
    entries = entries_of(CATALOGUES[language])
    forms = plural_forms(entries)
    assert {e.message: found for e in entries[1:] if (found := faults(e, forms))} == {}


@pytest.mark.gettext
@pytest.mark.parametrize("language", CATALOGUES)
def test_gettext_compiles_the_same(tmp_path, language):
    target = tmp_path / "django.mo"
    command = ["msgfmt", "--check-format", "-o", str(target), CATALOGUES[language]]
    subprocess.run(command, check=True)
    with target.open("rb") as file:
        theirs = GNUTranslations(file)._catalog
    ours = compiled(CATALOGUES[language].read_text())._catalog
    del ours[""], theirs[""]  # gettext leaves a date out of its header
    assert ours == theirs


def lacks_note(entry: Entry) -> bool:
    """Return whether a translator would have to guess what a short message is about."""
    if entry.context or any(line.startswith("#. Translators:") for line in entry.comments):
        return False
    message = entry.message or ""
    words = re.findall(r"[A-Za-z]{2,}", translations.PLACEHOLDER.sub("", message))
    names = re.findall(r"[%{]\(?(\w+)", message)
    return message in AMBIGUOUS.split() or (len(words) <= 1 and not {*names} <= {*PLAIN.split()})


@pytest.mark.parametrize(
    ("message", "comment", "is_clear"),
    [
        ("Open", "#. Translators: state of a round", True),
        ("Open", "#, fuzzy", False),
        ("Opening", "", True),
        ("%(what)s left", "", False),
        ("%(number)d left", "", True),
        ("%(what)s is left over", "", True),
    ],
)
def test_what_needs_a_note(message, comment, is_clear):
    assert lacks_note(Entry([comment], None, message, None, [""])) != is_clear


def test_short_messages_have_a_note_for_translators():
    """If this fails, write `# Translators: …` or `{# Translators: … #}` above the message."""
    entries = entries_of(CATALOGUES["de"])[1:]
    assert [entry.message for entry in entries if lacks_note(entry)] == []


@pytest.mark.parametrize("language", CATALOGUES)
def test_a_catalogue_is_written_as_it_was_read(language):
    text = CATALOGUES[language].read_text()
    assert write_entries(read_entries(text)) == text


def test_only_finished_translations_are_compiled():
    words = compiled(EXAMPLE)
    assert words.pgettext("verb", "Open %(name)s") == "Open %(name)s"
    assert words.ngettext('one "two"\n', "%(number)d twos", 1) == "eins"
    assert words.ngettext('one "two"\n', "%(number)d twos", 5) == "%(number)d"
    assert words.gettext("old") == "old"
    assert words.gettext("") == "Plural-Forms: nplurals=2; plural=(n != 1);\n"


@pytest.mark.parametrize(
    ("message", "text", "fits"),
    [
        ("%(number)d of %(all)d", "%(all)d, %(number)d", True),
        ("%(number)d of %(all)d", "%(number)d", False),
        ("%(number)d of %(all)d", "%(number)d von %(alle)d", False),
        ("{name} wins", "Sieg für {name}", True),
        ("{name} wins", "Sieg", False),
        ("100%% of it", "100%%", True),
        ("<b>Now</b>", "<b>Jetzt</b>", True),
        ("<b>Now</b>", "<i>Jetzt</i>", False),
        (" and ", " und ", True),
        (" and ", "und", False),
        ("the “end”", 'das "Ende"', False),
        ("anything", "", True),
    ],
)
def test_what_a_translation_must_keep(message, text, fits):
    assert (faults(Entry([], None, message, None, [text]), 2) == []) == fits


@pytest.mark.parametrize(
    ("texts", "fits"),
    [
        (["ein Wort", "%(n)d Wörter"], True),
        (["ein Wort"], False),
        (["ein Wort", ""], False),
        (["ein Wort", "%(m)d Wörter"], False),
        (["ein Wort", "<b>%(n)d</b> Wörter"], False),
        (["", ""], True),
    ],
)
def test_what_plural_forms_must_keep(texts, fits):
    assert (faults(Entry([], None, "%(n)d word", "%(n)d words", texts), 2) == []) == fits


@pytest.fixture
def house(tmp_path):
    """A house with a few messages, and a catalogue that has fewer."""
    for folder in translations.READ:
        (tmp_path / folder).mkdir()
    (tmp_path / "core" / "words.py").write_text(
        'gettext("Old")\ngettext("New %(name)s")\nngettext("%(n)d word", "%(n)d words", n)\n'
        "# Translators: not the noun.\npgettext('verb', 'Try it once more')\n"
    )
    catalogue = tmp_path / "locale" / "xx" / "LC_MESSAGES" / "django.po"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text(
        f'{HEADER}\nmsgid "Old"\nmsgstr "Alt"\n'
        '\nmsgctxt "verb"\nmsgid "Try it once again"\nmsgstr "Noch einmal"\n'
    )
    return tmp_path


@pytest.mark.gettext
def test_a_release_is_completed(house, capsys):
    """Call until nothing is missing; a translation that lost a placeholder is refused."""
    folder = house / "var"
    assert translations.check(house) == 3
    assert translations.complete(house, folder) == 3
    filled = folder / "xx.po"
    text = filled.read_text()
    assert "#. Translators: not the noun." in text
    assert "#. Translation of a similar message: Noch einmal\n" in text
    assert "fuzzy" not in text

    text = text.replace('"New %(name)s"\nmsgstr ""', '"New %(name)s"\nmsgstr "Neu"')
    text = re.sub(r'(Try it.*"\nmsgstr )""', r'\1"Nochmals"', text)
    filled.write_text(re.sub(r'msgstr\[(\d)\] ""', r'msgstr[\1] "%(n)d Wort"', text))
    assert translations.complete(house, folder) == 1
    assert "'New %(name)s'" in capsys.readouterr().out

    head, _, last = filled.read_text().rpartition('msgstr ""')
    filled.write_text(f'{head}msgstr "%(name)s"{last}')
    assert translations.complete(house, folder) == 0
    words = compiled(catalogues(house / "locale")["xx"].read_text())
    assert words.gettext("Old") == "Alt"
    assert words.gettext("New %(name)s") == "%(name)s"
    assert words.pgettext("verb", "Try it once more") == "Nochmals"
    assert words.ngettext("%(n)d word", "%(n)d words", 5) == "%(n)d Wort"


def test_catalogues_are_compiled_when_they_are_newer(house):
    source = catalogues(house / "locale")["xx"]
    target = source.with_suffix(".mo")
    compile_outdated_catalogues(house / "locale")
    first = target.stat()
    assert first.st_mode & 0o777 == 0o644
    compile_outdated_catalogues(house / "locale")
    assert target.stat().st_ino == first.st_ino
    source.write_text(f'{HEADER}\nmsgid "Old"\nmsgstr "Uralt"\n')
    compile_outdated_catalogues(house / "locale")
    with target.open("rb") as file:
        assert GNUTranslations(file).gettext("Old") == "Uralt"
    assert {path.name for path in source.parent.iterdir()} == {"django.po", "django.mo"}


@pytest.mark.parametrize("obstacle", ["access", "replace"])
def test_a_folder_that_cannot_be_written_is_left_alone(house, monkeypatch, obstacle):
    def refuse(*arguments):
        if obstacle == "replace":
            raise OSError("no space left")
        return False

    monkeypatch.setattr(f"core.text.catalogues.os.{obstacle}", refuse)
    compile_outdated_catalogues(house / "locale")
    folder = catalogues(house / "locale")["xx"].parent
    assert [path.name for path in folder.iterdir()] == ["django.po"]
