"""Sentences are written once and whole: in the product, and neither cut up nor repeated in tests.

Translators get whole sentences, since word order and endings differ between languages. Tests look
for ids, codes, roles and rows, so that a sentence can be reworded without a change of tests.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from core.text.catalogues import read_entries
from tests.support.messages import is_message
from tests.support.variables import APPS

ROOT = Path(__file__).parents[1]
PYTHON = [path for room in APPS for path in (ROOT / room).rglob("*.py")]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


# In the product: one message per state, no sentence of fragments


def holds_message(*nodes: ast.AST) -> bool:
    return any(is_message(inner) for node in nodes for inner in ast.walk(node))


def ends_with_space(node: ast.AST) -> bool:
    """Return whether a string, or the last of a sum of strings, is only a space."""
    if isinstance(node, ast.BinOp):
        return ends_with_space(node.right)
    return isinstance(node, ast.Constant) and not str(node.value).strip()


def fragments(source: str) -> Iterator[int]:
    """Yield the lines at which Python composes a sentence of messages.

    Whole sentences may stand side by side, with a space between them.

    >>> [*fragments('_("It is %(state)s.") % {"state": _(state)}')]
    [1]
    >>> [*fragments('_("It is open.")'), *fragments('first + " " + _("It ends soon.")')]
    []
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                is_composed = is_message(left) and holds_message(right)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                sides = [left, right]
                is_composed = any(map(is_message, sides)) and not any(map(ends_with_space, sides))
            case ast.Call(func=ast.Attribute(value=value, attr="format"), keywords=keywords):
                is_composed = is_message(value) and holds_message(*keywords)
            case ast.Call(func=ast.Attribute(value=value, attr="join")):
                is_composed = is_message(value)
            case ast.JoinedStr(values=values):
                words = [part.value for part in values if isinstance(part, ast.Constant)]
                is_composed = holds_message(node) and any(map(has_letters, words))
            case _:
                is_composed = False
        if is_composed:
            yield node.lineno


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def test_python_composes_no_sentence_of_messages():
    found = []
    for path in PYTHON:
        source = path.read_text()
        if "gettext" in source:
            found += [f"{path.relative_to(ROOT)}:{line}" for line in fragments(source)]
    assert not found, (
        "A sentence of fragments cannot be translated. Write one whole message for each case: "
        f'_("It is open."), _("It is closed."). Lines: {found}'
    )


WORDS_IN_TEMPLATES = re.compile(
    r"""\{% translate (["'])(?P<text>.*?)\1|\{% blocktranslate.*?%\}(?P<block>.*?)\{% end""",
    re.DOTALL,
)
BEGINS_OR_ENDS_INSIDE = re.compile(r"^([,;.)]|(and|or|but) )|\s(and|or|the)$")


def cut_messages(template: str) -> list[str]:
    """Return the messages of a template that begin or end within a sentence.

    >>> cut_messages('{% translate "Models" %} {% translate "and their scores" %}')
    ['and their scores']
    """
    found = []
    for match in WORDS_IN_TEMPLATES.finditer(template):
        text = match["text"] or match["block"] or ""
        if BEGINS_OR_ENDS_INSIDE.search(" ".join(text.split())):
            found.append(text)
    return found


def test_templates_cut_no_sentence():
    found = {str(path): cut for path in TEMPLATES if (cut := cut_messages(path.read_text()))}
    assert not found


# In tests: ids, codes, roles and rows in place of sentences

ABOUT_WORDS = {
    "test_translation.py",
    "test_languages.py",
    "test_catalogues.py",
    Path(__file__).name,
}
READERS = re.compile(r"get_by_|to_have_text|to_contain_text|to_have_accessible")
PLACEHOLDER = re.compile(r"%\(\w+\)[\d.]*[a-zA-Z]|\{\w+\}|%[sd]|</?\w+[^>]*>")
SHORTEST = 3  # words: of a message, and of a part of one


@cache
def sentences() -> str:
    """Return all messages of at least three words, one a line, with a NUL for each placeholder."""
    catalogue = ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po"
    messages = set()
    for entry in read_entries(catalogue.read_text()):
        messages |= {entry.message or "", entry.plural or ""}
    long = [text for text in messages if len(text.split()) >= SHORTEST]
    return "\n".join(PLACEHOLDER.sub("\0", " ".join(text.split())) for text in sorted(long))


@cache
def beginnings() -> dict[tuple[str, ...], list[str]]:
    """Return the parts of messages between placeholders, by their first three words."""
    found: dict[tuple[str, ...], list[str]] = {}
    for part in re.split("[\n\0]", sentences()):
        if len(part.split()) >= SHORTEST:
            found.setdefault(tuple(part.split()[:SHORTEST]), []).append(part.strip())
    return found


def is_part(literal: str) -> bool:
    """Return whether a literal is a part of a message, at words, or holds one of its parts."""
    text = " ".join(PLACEHOLDER.sub("", literal).split())
    words = text.split()
    if len(words) < SHORTEST:
        return False
    for place in range(len(words) - SHORTEST + 1):
        parts = beginnings().get(tuple(words[place : place + SHORTEST]), [])
        if any(" ".join(words[place:]).startswith(part) for part in parts):
            return True
    if text not in sentences():
        return False
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", sentences()) is not None


def compared(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the string literals that a test compares with what it got, or looks for on a page."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=place):
                pass
            case ast.keyword(arg="match" | "has_text", value=place):
                pass
            case ast.Call(func=ast.Attribute(attr=name)) if READERS.match(name):
                place = node
            case _:
                continue
        for inner in ast.walk(place):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ('assert "Create an account" in page', 1),
        ('expect(page.get_by_role("button", name="Create an account")).to_be_visible()', 1),
        ("assert 'id=\"switch-ranking\"' in page", 0),
        ('write("Create an account")', 0),
        ('assert "Release of round 3 undone." in page', 1),
    ],
)
def test_what_counts_as_a_sentence(test, count):
    assert sum(is_part(literal.value) for literal in compared(ast.parse(test))) == count


def test_tests_repeat_no_sentences():
    found = set()
    for path in TESTS:
        if path.name not in ABOUT_WORDS:
            for literal in compared(ast.parse(path.read_text())):
                if is_part(literal.value):
                    found.add((str(path.relative_to(ROOT)), literal.lineno, literal.value))
    assert not found, (
        "A test that repeats a sentence fails when somebody rewords it. Look for an id, a code, a "
        f"role or a row instead: {sorted(found)}"
    )
