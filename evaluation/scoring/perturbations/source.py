"""A text, what of it must stay, and edits of it."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from core.text.words import MARKS, is_mark, places_of

_LETTERS = rf"[^\W\d_](?:[^\W\d_]|[{MARKS}])*"
WORD = re.compile(rf"{_LETTERS}(?:['’]{_LETTERS})*")
SENTENCE = re.compile(r"[^.!?…]+[.!?…]*")
FIXED = re.compile(
    r"(?:https?://|www\.)\S+"  # addresses
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+"  # tried once a run of letters, not at each
    r"|[@#]\w+"
    r"|(?<!\S)[^\s\d]*\d\S*"  # numbers, with their units and signs
)
PRONOUN = re.compile(r"I(?:['’]\w+)?")
SHORT = 4
LONG = 64
ENDS = ".!?…:"


class Edit(NamedTuple):
    """What stands in place of `text[start:end]`."""

    start: int
    end: int
    new: str


class Source:
    """A text with protected stretches, which no edit may overlap or touch."""

    def __init__(self, text: str, protected: Iterable[tuple[int, int]]) -> None:
        self.text = text
        self._kept = bytearray(len(text))
        for start, end in protected:
            self._kept[start:end] = b"\1" * (end - start)

    def free(self, start: int, end: int) -> bool:
        return not any(self._kept[max(0, start - 1) : end + 1])

    def words(self) -> list[re.Match[str]]:
        """The words that may be changed."""
        return self.found(WORD)

    def found(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """Matches that may be changed."""
        return [match for match in pattern.finditer(self.text) if self.free(*match.span())]

    def inner_letters(self) -> list[int]:
        """Positions of letters that begin no word, in words of SHORT letters or more.

        A letter with a mark stays as it is: the mark would move to another one.
        Of shorter ones too many become another word: not, no; is, his.
        """
        return [
            at
            for word in self.words()
            if len(word[0]) >= SHORT
            for at in range(word.start() + 1, word.end())
            if self.text[at].isalpha() and not is_mark(self.text[at + 1 : at + 2])
        ]

    def allowed(self, edits: Iterable[Edit]) -> list[Edit]:
        """The edits that change something free, in order; of overlapping ones the first."""
        kept: list[Edit] = []
        for edit in sorted(edits):
            after = not kept or edit.start >= kept[-1].end
            if after and edit.new != self.text[edit.start : edit.end] and self.free(*edit[:2]):
                kept.append(edit)
        return kept


def changed(text: str, edits: Sequence[Edit]) -> str:
    """The text after edits that are in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for start, end, new in edits:
        pieces += text[at:start], new
        at = end
    return "".join(pieces) + text[at:]


def moved(position: int, edits: Sequence[Edit]) -> int:
    """Where a position that no edit covers is found afterwards."""
    return position + sum(len(new) - (end - start) for start, end, new in edits if end <= position)


def distance(edits: Sequence[Edit], text: str) -> int:
    """Characters inserted, deleted or replaced (Levenshtein 1966), edit by edit.

    Of an edit of more than LONG characters, which no word has, those that differ place by place.
    """
    return sum(_differ(text[start:end], new) for start, end, new in edits)


def _differ(one: str, other: str) -> int:
    if max(len(one), len(other)) <= LONG:
        return _levenshtein(one, other)
    places = sum(left != right for left, right in zip(one, other, strict=False))
    return places + abs(len(one) - len(other))


def _levenshtein(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


def protected(
    text: str, phrases: Iterable[str], *, but: Collection[str] | None = ()
) -> list[tuple[int, int]]:
    """Stretches that stay: phrases as whole words, addresses, numbers and names.

    but: words in lower case that may change although they look like names; None: all may.
    """
    spans = [match.span() for match in FIXED.finditer(text)]
    for phrase in phrases:
        spans += places_of(text, phrase)
    return spans if but is None else spans + _names(text, but)


def _names(text: str, but: Collection[str]) -> list[tuple[int, int]]:
    """Words with a capital that begin no sentence, are all capitals, or stand before another one.

    Words of `but` only right after another name (“San Juan”). A text in capitals has none.
    """
    if text.isupper():
        return []
    capitals = [
        word
        for word in WORD.finditer(text)
        if word[0][0].isupper() and not PRONOUN.fullmatch(word[0])
    ]
    plain = [word for word in capitals if word[0].lower() not in but]
    starts = {word.start() for word in plain}
    within = {start for start in starts if not _begins_sentence(text, start)}
    ends = {word.end() for word in plain if word.start() in within}
    names = [
        word
        for word in plain
        if word.start() in within or word[0][1:].isupper() or word.end() + 1 in starts
    ]
    names += (word for word in capitals if word.start() - 1 in ends)
    return [word.span() for word in names]


def _begins_sentence(text: str, at: int) -> bool:
    before = text[max(0, at - 10) : at].rstrip(" \t\n\"'“‘(-–—")
    return not before or before[-1] in ENDS
