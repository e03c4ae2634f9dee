"""What people read on pages and in mails sounds like a colleague at the next desk.

A linter for the messages of Python and of the templates, read as `makemessages` reads them. It
knows words that native technical writers do not use, and it counts the words of sentences.
docs/glossary.md has the terms.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.messages import messages_of_python, messages_of_template
from tests.support.variables import APPS

ROOT = Path(__file__).parents[1]
MOST_WORDS = 20
"""Of a sentence."""


class Fault(NamedTuple):
    """A way of writing that pages avoid: its pattern, why, and an example in both ways."""

    pattern: str
    cure: str
    bad: str
    good: str


FAULTS = (
    Fault(
        r"\bnobody\b", "Say what is or will be there. In a sentence: no one.",
        "Nobody has written yet.", "No examples yet. Write the first one.",
    ),
    Fault(
        r"(?:^|[.!?:] )(?:Nothing\b|There (?:is|are) no\b)",
        "Begin with what will be here, and the one thing to do.",
        "There is no model.", "No models yet. Add the first one.",
    ),
    Fault(
        r"\bso (?:many|much)\b(?! as)", "Use maximum, minimum, or the number.",
        "Closes with so many examples.", "Closes at this number of examples.",
    ),
    Fault(
        r"\bmost (?:calls|epochs|examples|files|rows|tokens|tries|votes) (?:each|of|that|asked)\b",
        "Use maximum: Maximum examples.",
        "Most calls each time", "Maximum calls per request",
    ),
    Fault(
        r"\bshall\b", "Use must, should, or the imperative.",
        "Say why it shall not wait.", "Explain why it should not wait.",
    ),
    Fault(
        r"\b(?:hold|holds|holding)\b(?! (?:back|out|down)\b)", "Use contain, have, keep or store.",
        "The file holds no rows.", "The file has no rows.",
    ),
    Fault(
        r"\bmeanwhile\b", "Use since, already, now, or leave it out.",
        "It was deleted meanwhile.", "It has been deleted.",
    ),
    Fault(r"\banew\b", "Use again.", "Ask anew.", "Ask again."),
    Fault(
        r"\b(?:every|some|any)body\b|\bwhoever\b", "Use everyone, someone, anyone.",
        "Everybody sees it.", "Everyone can see it.",
    ),
    Fault(
        r"\b(?:is|are|was|were) no (?!longer\b|more\b|one\b)", "Use isn't a, or doesn't have.",
        "It is no picture.", "This isn't an image.",
    ),
    Fault(
        r"\b(?:of|to) (?:yours|theirs|ours|mine|hers)\b", "Use your, their, our.",
        "an example of yours", "your example",
    ),
    Fault(r"\bone's\b|\bone’s\b", "Use your.", "one's own comment", "your own comment"),
    Fault(
        r"\bthat one\b|\bthose (?:that|who|which|whose)\b", "Name the thing again.",
        "Those that were resolved", "Resolved reports",
    ),
    Fault(
        r"(?:^|[.!?:] )(?:Who|Whoever|Whose)\b[^.!?]*\.",
        "Begin with the person or the thing, not with a clause.",
        "Who reads labels never judges.", "Members who can read labels can't judge.",
    ),
    Fault(r"\bdealt with\b", "Use resolved.", "Mark as dealt with", "Mark as resolved"),
    Fault(r"\bmend(?:s|ed|ing)?\b", "Use fix or correct.", "Mend the file.", "Fix the file."),
    Fault(
        r"\bmade of\b", "Use from, or name the source in a label.",
        "Made of: a round", "Source: round 1",
    ),
    Fault(
        r"\bfor good\b", "Use permanently, or say that it can't be undone.",
        "Its files go for good.", "This deletes its files. You can't undo it.",
    ),
    Fault(
        r"\bhand(?:s|ed|ing)? (?:it |them )?in\b", "Use submit.",
        "Hand in a model", "Submit a model",
    ),
    Fault(
        r"\b(?:is|are|was|were) told\b", "Use we tell, we email, or show.",
        "The owner is told.", "We tell the owner.",
    ),
    Fault(
        r"\b(?:what|which|it|that|result|decision|name) stands\b",
        "Use is final, stays, or counts.",
        "This result stands.", "This result is final.",
    ),
    Fault(r"\balone\b", "Use only.", "for reviewers alone", "only for reviewers"),
    Fault(
        r"\bany more\b(?=[.!?,:)]|$)", "Use no longer.",
        "It is not kept any more.", "We no longer keep it.",
    ),
    Fault(
        r"\b(?:go|goes|going|went) on\b", "Use continue, or name the step.",
        "Go on tomorrow.", "Continue tomorrow.",
    ),
    Fault(r"\bat present\b", "Use now, right now, or leave it out.", "closed at present", "closed"),
    Fault(r"\b[Ee]-mail", "Use email.", "E-mail address", "Email address"),
    Fault(
        r"\bfor want of\b|\bof late\b|\bthereof\b|\bhitherto\b|\botherwise than\b",
        "Use today's words: without, recently, of it, so far.",
        "stopped for want of votes", "stopped because votes are missing",
    ),
    Fault(r";", "Write two sentences.", "It is open; write.", "It is open. Write."),
)  # fmt: skip
ENTITY = re.compile(r"&#?\w+;")
CODE = re.compile(r"`[^`]*`|<code>.*?</code>", re.DOTALL)
TAG = re.compile(r"</?\w+[^>]*>")
END_OF_SENTENCE = re.compile(r"[.!?…](?=\s|$)|\n\s*\n")


# What a message is


def plain(message: str) -> str:
    """Return a message without markup and code, in one line."""
    text = ENTITY.sub(" ", TAG.sub("", CODE.sub("code", message)))
    return " ".join(text.split())


def faults(message: str) -> list[Fault]:
    """Return the faults of a message."""
    text = plain(message)
    return [fault for fault in FAULTS if re.search(fault.pattern, text, re.IGNORECASE)]


def long_sentences(message: str) -> list[str]:
    """Return the sentences of a message that have too many words.

    >>> long_sentences("It is open. Write!")
    []
    """
    sentences = END_OF_SENTENCE.split(plain(message))
    return [text.strip() for text in sentences if len(text.split()) > MOST_WORDS]


# Where messages are


@cache
def messages() -> dict[str, Sequence[str]]:
    """Return the messages of each file that has some."""
    found: dict[str, Sequence[str]] = {}
    for room in APPS:
        for path in (ROOT / room).rglob("*.py"):
            source = path.read_text()
            if "gettext" in source:
                found[str(path.relative_to(ROOT))] = [*messages_of_python(source)]
    for path in (ROOT / "templates").rglob("*.*"):
        if path.suffix in (".html", ".txt"):
            found[str(path.relative_to(ROOT))] = [*messages_of_template(path.read_text())]
    return {name: texts for name, texts in sorted(found.items()) if texts}


# The tests


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.pattern for fault in FAULTS])
def test_a_fault_is_found_in_its_bad_example_alone(fault):
    assert fault in faults(fault.bad)
    assert not faults(fault.good)


def test_messages_are_read_as_makemessages_reads_them():
    template = (
        '{% load i18n %}{% translate "You\'re here" %}{% translate "it" context "x" %}'
        "{% blocktranslate count n=3 trimmed %}\n  {{ n }} try\n{% plural %}{{ n }} tries"
        "{% endblocktranslate %}"
    )
    assert [*messages_of_template(template)] == ["You're here", "it", "%(n)s try", "%(n)s tries"]
    assert [*messages_of_python('gettext_lazy("a" "b"); pgettext("x", "c"); f("d")')] == ["ab", "c"]
    assert len(messages()) > 100


def test_sentences_are_counted():
    assert long_sentences("word " * (MOST_WORDS + 1))
    assert not long_sentences("word " * (MOST_WORDS - 1) + "end. " + "word " * MOST_WORDS)


def test_messages_use_plain_words():
    found = []
    for name, texts in messages().items():
        for text in texts:
            found += [
                f"{name}: {plain(text)!r}\n    {fault.cure} Not {fault.bad!r}, but {fault.good!r}."
                for fault in faults(text)
            ]
    assert not found, (
        "Write as you would say it to a colleague: active, you and we, the word that readers "
        f"know already. {len(found)} messages do not:\n" + "\n".join(found)
    )


def test_sentences_are_short():
    found = []
    for name, texts in messages().items():
        for text in texts:
            found += [f"{name}: {sentence!r}" for sentence in long_sentences(text)]
    assert not found, (
        f"A sentence has at most {MOST_WORDS} words. Write two sentences, or leave out what "
        "readers see anyway. Not 'Choose a day that is after today, and that is at most a year "
        "ahead, or choose none, which then means that it is never published.', but 'Choose a "
        f"date within the next year, or leave this empty.' {len(found)} sentences:\n"
        + "\n".join(found)
    )
