"""Protect the parts of a text that must stay, and apply edits to the rest."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from core.text.words import MARKS, find_spans, is_mark

_LETTERS_REGEX = rf"[^\W\d_](?:[^\W\d_]|[{MARKS}])*"
WORD_PATTERN = re.compile(rf"{_LETTERS_REGEX}(?:['’]{_LETTERS_REGEX})*")
SENTENCE_PATTERN = re.compile(r"[^.!?…]+[.!?…]*")
FIXED_PATTERN = re.compile(
    r"(?:https?://|www\.)\S+"  # addresses
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+"  # tried once per run of letters, not at each letter
    r"|[@#]\w+"
    r"|(?<!\S)[^\s\d]*\d\S*"  # numbers, with their units and signs
)
PRONOUN_PATTERN = re.compile(r"I(?:['’]\w+)?")
MIN_WORD_CHARS = 4
MAX_LEVENSHTEIN_CHARS = 64
SENTENCE_ENDS = ".!?…:"


class Edit(NamedTuple):
    """A replacement of `text[start:end]` by `new`."""

    start: int
    end: int
    new: str


class Source:
    """A text with protected spans, which no edit may overlap or touch."""

    def __init__(self, text: str, protected: Iterable[tuple[int, int]]) -> None:
        self.text = text
        # One byte per character, 1 if it is protected, so that a slice finds overlaps.
        self._protected = bytearray(len(text))
        for start, end in protected:
            self._protected[start:end] = b"\1" * (end - start)

    def is_free(self, start: int, end: int) -> bool:
        """Return whether a span neither overlaps nor touches a protected one."""
        # One more character on both sides, so that edits do not touch protected text.
        return not any(self._protected[max(0, start - 1) : end + 1])

    def find_words(self) -> list[re.Match[str]]:
        """Return the words that may be changed."""
        return self.find(WORD_PATTERN)

    def find(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """Return the matches of the pattern that may be changed."""
        return [match for match in pattern.finditer(self.text) if self.is_free(*match.span())]

    def find_inner_letters(self) -> list[int]:
        """Return the positions of letters after the first in long enough words.

        Words need at least MIN_WORD_CHARS letters, because shorter ones easily turn into other
        words (not, no; is, his). Letters followed by a combining mark are left out, because the
        mark would move to another letter.
        """
        positions = []
        for word in self.find_words():
            if len(word[0]) < MIN_WORD_CHARS:
                continue
            for position in range(word.start() + 1, word.end()):
                if self.text[position].isalpha() and not is_mark(
                    self.text[position + 1 : position + 2]
                ):
                    positions.append(position)
        return positions

    def select_allowed(self, edits: Iterable[Edit]) -> list[Edit]:
        """Return the edits that change unprotected text, in order.

        Of overlapping ones, keep the first.
        """
        allowed_edits: list[Edit] = []
        for edit in sorted(edits):
            is_after = not allowed_edits or edit.start >= allowed_edits[-1].end
            is_change = edit.new != self.text[edit.start : edit.end]
            if is_after and is_change and self.is_free(edit.start, edit.end):
                allowed_edits.append(edit)
        return allowed_edits


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Apply edits to a text and return it. The edits are in order and do not overlap."""
    pieces: list[str] = []
    position = 0
    for start, end, new in edits:
        pieces += text[position:start], new
        position = end
    return "".join(pieces) + text[position:]


def move_position(position: int, edits: Sequence[Edit]) -> int:
    """Return the position in the edited text of a position that no edit covers."""
    shift = 0
    for start, end, new in edits:
        if end <= position:
            shift += len(new) - (end - start)
    return position + shift


def measure_distance(edits: Sequence[Edit], text: str) -> int:
    """Return the sum of the Levenshtein distances (1966) of the edits.

    An edit of more than MAX_LEVENSHTEIN_CHARS characters is longer than any word. For such an edit,
    the positions that differ are counted instead. Levenshtein's distance would take time
    proportional to the product of both lengths.
    """
    return sum(_measure_difference(text[start:end], new) for start, end, new in edits)


def _measure_difference(text: str, other_text: str) -> int:
    if max(len(text), len(other_text)) <= MAX_LEVENSHTEIN_CHARS:
        return _compute_levenshtein(text, other_text)
    places = sum(left != right for left, right in zip(text, other_text, strict=False))
    return places + abs(len(text) - len(other_text))


def _compute_levenshtein(text: str, other_text: str) -> int:
    """Return the Levenshtein distance of two texts. Stores one row of the table at a time."""
    row = list(range(len(other_text) + 1))
    for i, left in enumerate(text, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(other_text, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1]


def find_protected_spans(
    text: str, phrases: Iterable[str], *, changeable_words: Collection[str] | None = ()
) -> list[tuple[int, int]]:
    """Return the (start, end) spans that a perturbation must not change.

    These are whole-word occurrences of phrases, addresses, numbers and names.

    Parameters
    ----------
    text
        The text.
    phrases
        Labels or answers, protected wherever they occur.
    changeable_words
        Lower-case words that may change although they look like names. None: all names may change.
    """
    spans = [match.span() for match in FIXED_PATTERN.finditer(text)]
    for phrase in phrases:
        spans += find_spans(text, phrase)
    return spans if changeable_words is None else spans + _find_names(text, changeable_words)


def _find_names(text: str, changeable_words: Collection[str]) -> list[tuple[int, int]]:
    """Return the spans of capitalised words that are names, judged by position and letters.

    A capitalised word is a name if it is not at the start of a sentence, or if it is all in
    capitals. It is also a name if another such word follows it directly. `changeable_words` are
    names only right after another name (“San Juan”). A text all in capitals has no names.
    """
    # Capitals mean nothing in a text without other letters.
    if text.isupper():
        return []
    capitals = []
    for word in WORD_PATTERN.finditer(text):
        if word[0][0].isupper() and not PRONOUN_PATTERN.fullmatch(word[0]):
            capitals.append(word)
    possible_names = [word for word in capitals if word[0].lower() not in changeable_words]
    starts = {word.start() for word in possible_names}
    starts_within = {start for start in starts if not _is_sentence_start(text, start)}
    ends_within = {word.end() for word in possible_names if word.start() in starts_within}
    spans = []
    for word in possible_names:
        is_within = word.start() in starts_within
        if is_within or word[0][1:].isupper() or word.end() + 1 in starts:
            spans.append(word.span())
    spans += [word.span() for word in capitals if word.start() - 1 in ends_within]
    return spans


def _is_sentence_start(text: str, position: int) -> bool:
    preceding_text = text[max(0, position - 10) : position].rstrip(" \t\n\"'“‘(-–—")
    return not preceding_text or preceding_text[-1] in SENTENCE_ENDS
