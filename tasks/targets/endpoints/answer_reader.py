"""Read the answer out of what a language model wrote. Pure: it needs our module of words alone.

Everything that asks a language model reads its texts here, so that one text is one answer
everywhere: for a target, a submission, a judge, an import of another evaluator's log and the
scorer that comes with a released dataset.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

try:
    from dynabench.lib.words import label_key, label_of
except ImportError:  # pragma: no cover (in a release, where it lies beside this file)
    from dynabench_words import label_key, label_of  # type: ignore[no-redef]

READER = "2"
"""The version of these rules. It is part of a chat model's identity, as its prompt is."""

LONGEST_SENTENCE = 400
"""Characters of an answer in which a label that is only named counts. In a longer text a label is
more often discussed than given."""

LONGEST_WRAPPED = 20_000
"""Characters at the end of a text in which fences, tags and JSON are looked for."""
MOST_OBJECTS = 50
"""Beginnings of JSON objects that are tried in a text: each may be read far before it fails."""


class Written(NamedTuple):
    """A text without the thoughts that a reasoning model put before it."""

    text: str
    thoughts: str
    is_unfinished: bool  # the thoughts have a beginning and no end


class Reading(NamedTuple):
    """The label in a text, and whether it was only named in a sentence."""

    label: str
    is_named: bool


_TAG_NAMES = "think|thinking|thoughts?|reasoning|seed:think"
_OPENINGS = re.compile(
    rf"<(?:{_TAG_NAMES})(?:\s[^<>]*)?>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|<\|begin_of_thought\|>|<\|channel\|>(?:analysis|commentary)<\|message\|>",
    re.IGNORECASE,
)
_CLOSINGS = re.compile(
    rf"</(?:{_TAG_NAMES})\s*>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>"
    r"|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)
# What servers leave around an answer when they do not parse their model's own format.
_WRAPPERS = re.compile(
    r"<\|(?:begin_of_solution|end_of_solution|START_RESPONSE|END_RESPONSE|return|end|im_end"
    r"|eot_id|channel\|>final<\|message)\|>",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^(?:```|~~~)[^\n`]*\n(.*?)\n?(?:```|~~~)", re.DOTALL | re.MULTILINE)
_ANSWER_TAG = re.compile(r"<(answer|label|output|response)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}")
_MARKS = " \t\r\n*_`~#>|"
_QUOTES = "\"'`´‘’‚‛“”„‟«»‹›「」『』《》〈〉〝〞＂＇"
_ENDINGS = ".,;:!?…·。．！？，、；：｡､।॥؟،؛။។"
_BRACKETS = "()[]{}（）［］【】〔〕"
_AROUND = _MARKS + _QUOTES + _ENDINGS + _BRACKETS
_INTRODUCTION = re.compile(r"^[\w ]{1,40}[:：=]\s*(?=\S)")
# Words right before a label that turn it around: "is not positive" names no label.
_NEGATION = re.compile(
    r"(?:\b(?:not|never|neither|nor|isn['’]t|no|non|nicht|kein\w*|pas|ni|não|нет|не)\s+"
    r"(?:(?:a|an|the|really|very|clearly|un|une|ein\w*)\s+)?"
    r"|[不非没沒]是?|ではなく|ليس\w*\s+|غير\s+)[\W_]*$"
)
WEAK_LETTERS = 3
"""Labels of so few letters are words of sentences, too ("no", "a"): they count at the beginning or
the end of a text, or between marks."""


def without_thoughts(text: str) -> Written:
    """Split off what a reasoning model thought before it answered.

    The answer stands behind the last end of thoughts, also where their beginning is missing, as
    many templates write it into the prompt. What has a beginning and no end is all thoughts.
    """
    thoughts, rest = "", text
    closings = list(_CLOSINGS.finditer(text))
    if closings:
        thoughts, rest = text[: closings[-1].start()], text[closings[-1].end() :]
    opening = _OPENINGS.search(rest)
    if opening:
        thoughts += rest[opening.end() :]
        rest = rest[: opening.start()]
    return Written(
        _WRAPPERS.sub("", rest).strip(),
        _OPENINGS.sub("", thoughts).strip(),
        opening is not None,
    )


def read_label(text: str, labels: Sequence[str], field: str) -> Reading | None:
    """Return the label that a text gives, or None: it gives none of them, or several.

    Exactly a label comes first, then a label in another form of letters, in JSON (as `field`), in
    code fences, quotes or marks. At last a text of at most LONGEST_SENTENCE characters gives the
    one label that it names.

    text: without thoughts.
    """
    for part in _parts(text, field):
        if label := equal_label(part, labels):
            return Reading(label, is_named=False)
    if len(text) > LONGEST_SENTENCE:
        return None
    named = _named(text, labels)
    return Reading(named.pop(), is_named=True) if len(named) == 1 else None


def equal_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that equals a text; see `label_of`."""
    return label_of(text, labels)


def fold(text: str) -> str:
    """Return a text as labels are compared; see `label_key`."""
    return label_key(text)


def read_span(text: str, passage: str, field: str) -> str:
    """Return the part of a text that stands in the passage, or the text itself.

    text: without thoughts. The first of its parts, from the least changed on, that is in the
    passage counts.
    """
    parts = [part for part in _parts(text, field) if part]
    return next((part for part in parts if part in passage), parts[0] if parts else text)


def read_text(text: str, field: str) -> str:
    """Return the member `field` of the JSON that a text is, where it is some, else the text."""
    whole = [text.strip(), *_fenced(text)]
    values = (value for part in whole if part.startswith("{") for value in _values(part, field))
    return next(values, text)


def _parts(text: str, field: str) -> Iterator[str]:
    """The text and what may be its answer, from the least changed on."""
    yield text
    stripped = text.strip()
    yield stripped
    stripped = stripped[-LONGEST_WRAPPED:]
    inner = [stripped, *_fenced(stripped), *_tagged(stripped)]
    for part in inner:
        yield from _values(part, field)
    for part in inner:
        yield part.strip()
        yield _bare(part)
        introduction = _INTRODUCTION.match(_bare(part))
        if introduction:
            yield _bare(_bare(part)[introduction.end() :])


def _bare(text: str) -> str:
    """The text without marks, quotes and punctuation around it; a sign of a number stays."""
    return text.strip(_AROUND)


def _fenced(text: str) -> list[str]:
    return [match[1] for match in _FENCE.finditer(text)]


def _tagged(text: str) -> list[str]:
    """What stands in `<answer>` tags or a LaTeX box: the last one is the answer."""
    tagged = [match[2] for match in _ANSWER_TAG.finditer(text)]
    boxed = [match[1] for match in _BOXED.finditer(text)]
    return [*tagged[-1:], *boxed[-1:]]


def _values(text: str, field: str) -> Iterator[str]:
    """The answer in the JSON of a text: a string, or the member `field` of an object in it."""
    decoder = json.JSONDecoder()
    if text.startswith('"'):
        with suppress(ValueError):
            yield str(json.loads(text)).strip()
    place = text.find("{")
    for _object in range(MOST_OBJECTS):
        if place < 0:
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        yield from _member(value, field)
        place = text.find("{", place)


def _member(value: dict[str, object], field: str) -> Iterator[str]:
    """The member of an object, in any case of its name; numbers and truth values in words."""
    for name, member in value.items():
        if fold(name) != fold(field):
            continue
        if isinstance(member, str):
            yield member.strip()
            yield _bare(member)
        elif isinstance(member, bool | int | float):
            whole = isinstance(member, float) and member.is_integer()
            yield json.dumps(int(member) if whole else member)


def _named(text: str, labels: Sequence[str]) -> set[str]:
    """The labels that a text names in words of their own, without a negation before them."""
    folds = Counter(map(fold, labels))
    by_length = sorted((label for label in labels if fold(label)), key=len, reverse=True)
    exact, folded = " ".join(text.split()), fold(text)
    named: set[str] = set()
    for label in by_length:
        # Of labels that differ in case alone only the very letters count.
        is_alike = folds[fold(label)] > 1
        pattern = _pattern(label if is_alike else fold(label))
        for match in pattern.finditer(exact if is_alike else folded):
            start, end = match.span()
            if _is_given(exact if is_alike else folded, start, end, label):
                named.add(label)
            # What was read is taken away, so that "positive" is not found in "not_positive".
            if not is_alike:
                folded = folded[:start] + "\0" * (end - start) + folded[end:]
    return named


def _pattern(label: str) -> re.Pattern[str]:
    """A label as whole words, in which hyphens, underscores and spaces are one."""
    words = [word for word in re.split(r"[\s_-]+", label) if word] or [label]
    pattern = r"[\s_-]+".join(map(re.escape, words))
    before = r"(?<![^\W_])" if _has_spaces(words[0][0]) else ""
    after = r"(?![^\W_])" if _has_spaces(words[-1][-1]) else ""
    return re.compile(before + pattern + after)


def _has_spaces(letter: str) -> bool:
    """Whether the script of a letter puts spaces between words."""
    return not _UNSPACED.match(letter)


# Thai, Lao, Myanmar, Khmer, kana, Han, and Hangul, whose particles follow without a space.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\U00020000-\U0003ffff]"
)


def _is_given(text: str, start: int, end: int, label: str) -> bool:
    """Whether a label that is named at a place is what the text says."""
    before, after = text[:start], text[end:]
    if _NEGATION.search(before):
        return False
    letters = sum(map(str.isalnum, label))
    if letters > WEAK_LETTERS or not _has_spaces(fold(label)[0]):
        return True
    is_marked = bool(before) and before[-1] in _MARKS.strip() + _QUOTES + "([（［【:：="
    return is_marked or (not before.strip(_AROUND) and not after[:1].isspace()) or not _bare(after)
