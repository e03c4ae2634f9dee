"""Read the answer out of what a language model wrote. Pure: it needs our module of words alone.

Everything that asks a language model reads its texts here, so that one text is one answer
everywhere: for a target, a submission, a judge, an import of another evaluator's log and the
scorer that comes with a released dataset.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

try:
    from core.text.words import HANGUL, UNSPACED, is_whole, label_key, label_of
except ImportError:  # pragma: no cover (in a release, where it lies beside this file)
    from dynabench_words import (  # type: ignore[no-redef]
        HANGUL,
        UNSPACED,
        is_whole,
        label_key,
        label_of,
    )

READER = "3"
"""The version of these rules. It is part of a chat model's identity, as its prompt is."""

LONGEST_SENTENCE = 400
"""Characters of an answer in which a label that is only named counts. In a longer text a label is
more often discussed than given."""

LONGEST_WRAPPED = 20_000
"""Characters at the end of a text in which fences, tags and JSON are looked for."""
MOST_OBJECTS = 50
"""Beginnings of JSON objects that are tried in a text: each may be read far before it fails."""


class Written(NamedTuple):
    """A model's text, split into the answer and the reasoning that precedes it."""

    text: str
    thoughts: str
    is_unfinished: bool  # the thoughts have a beginning and no end


class Reading(NamedTuple):
    """The label read from a text, and whether it was only mentioned in a sentence."""

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
_OPTION_TEXT = re.compile(r"[:：)）\]、](?!\d)|\.(?!\S)")
_MARKS = " \t\r\n*_`~#>|$"  # of Markdown and of formulas
_QUOTES = "\"'`´‘’‚‛“”„‟«»‹›「」『』《》〈〉〝〞＂＇"
_ENDINGS = ".,;:!?…·。．！？，、；：｡､।॥؟،؛။។"
_BRACKETS = "()[]{}（）［］【】〔〕"
_AROUND = _MARKS + _QUOTES + _ENDINGS + _BRACKETS
_INTRODUCTION = re.compile(r"^[\w ]{1,40}[:：=]\s*(?=\S)")
# Words right before a label that turn it around: "is not positive" names no label.
_NEGATION = re.compile(
    r"(?:\b(?:not|never|neither|nor|isn['’]t|no|non|nicht|kein\w*|pas|ni|não|нет|не)[\s-]+"
    r"(?:(?:a|an|the|really|very|clearly|un|une|ein\w*)\s+)?"
    r"|[不非没沒]是?|ではなく|ليس\w*\s+|غير\s+)[\W_]*$"
)
# "4 out of 5" and "4/5" give 4; "4 stars" give 4, too. \0 is a number that was read already.
_AFTER_SCALE = re.compile(
    r"(?:[\d\0][\s,(]*(?:/|(?:of|von|sur|sobre|su|de|из)\s)\s*|\bout of\s+|[-−–])$"
)
_SCALE = re.compile(
    r"[\s,(]*(?:(?:/|(?:out of|von|sur|sobre|su|de|из)\s)\s*[\d\0]|stars?\b|points?\b|[★⭐点점])"
)
# "The answer is B. Note that A is a distractor." gives B, as "Answer: B, not A" does.
_CUE = re.compile(
    r"(?:\b(?:answer|label|option|choice|rating|score|verdict)\s+is"
    r"|\b(?:antwort|réponse|respuesta|risposta|resposta|ответ)\s+(?:ist|est|es|è|é|[-—])"
    r"|(?:答案|回答)[是为為]|(?:答え|正解)は|정답은|[:：=])[\W_]*$",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"\s+(?:and|or|und|oder|et|ou|y|o|e|и|или)\s+(\w+)")
# "non-positive" and "positive-leaning" are no "positive".
_BEFORE_IN_COMPOUND, _AFTER_IN_COMPOUND = re.compile(r"[^\W_]-$"), re.compile(r"-[^\W_]")
WEAK_LETTERS = 3
"""Labels of so few letters are words of sentences, too ("no", "a"): they count at the beginning or
the end of a text, or between marks."""


def without_thoughts(text: str) -> Written:
    """Split a text into a model's reasoning and its answer.

    The answer follows the last closing tag of reasoning. The opening tag may be missing, because
    many templates put it into the prompt. An opening tag without a closing one makes the rest
    reasoning.
    """
    # 1. Everything up to the last end of thoughts is thoughts.
    thoughts, remaining_text = "", text
    closings = list(_CLOSINGS.finditer(text))
    if closings:
        thoughts, remaining_text = text[: closings[-1].start()], text[closings[-1].end() :]
    # 2. A beginning after that has no end: the model was cut off while it thought.
    opening = _OPENINGS.search(remaining_text)
    if opening:
        thoughts += remaining_text[opening.end() :]
        remaining_text = remaining_text[: opening.start()]
    return Written(
        _WRAPPERS.sub("", remaining_text).strip(),
        _OPENINGS.sub("", thoughts).strip(),
        opening is not None,
    )


def read_label(text: str, labels: Sequence[str], field: str) -> Reading | None:
    """Return the label that a text gives; None for no label or several.

    An exact label comes first, then a label with other letter case or Unicode forms, in JSON (as
    `field`), in code fences, quotes or marks. Next comes a first or last line that is a label,
    whatever the other lines explain. Finally, a text of at most LONGEST_SENTENCE characters gives
    the only label that it mentions.

    text: without reasoning.
    """
    for answers in _iter_candidates(text, field):
        answered_labels = set()
        for forms in answers:
            if label := _label_of(forms, labels):
                answered_labels.add(label)
        # Two different labels in one place are no answer: a guess would favour one of them.
        if answered_labels:
            if len(answered_labels) == 1:
                return Reading(answered_labels.pop(), is_named=False)
            return None
    # 2. A first or last line that is a label, whatever is explained beside it.
    lines = [_label_of_line(line, labels) for line in text.strip().splitlines()]
    named_labels = set()
    for label in lines:
        if label:
            named_labels.add(label)
    # 3. At last the one label that a short text names in its sentences.
    if not (named_labels and (lines[0] or lines[-1])):
        named_labels = _find_named_labels(text, labels) if len(text) <= LONGEST_SENTENCE else set()
    if len(named_labels) == 1:
        return Reading(named_labels.pop(), is_named=True)
    return None


def _label_of_line(line: str, labels: Sequence[str]) -> str | None:
    """Return the label that a line is, with or without an introduction such as "Answer:"."""
    if len(line) <= LONGEST_SENTENCE:
        return _label_of(_iter_forms(line), labels)
    return None


def _label_of(forms: Iterable[str], labels: Sequence[str]) -> str | None:
    """Return the first label that equals one of an answer's forms, or None."""
    return next(filter(None, (equal_label(form, labels) for form in forms)), None)


def equal_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that equals a text, or None; see `label_of`."""
    return label_of(text, labels)


def fold(text: str) -> str:
    """Return a text in the form in which labels are compared; see `label_key`."""
    return label_key(text)


def read_span(text: str, passage: str, field: str) -> str:
    """Return the part of a text that occurs in the passage, or a part that does not.

    text: without reasoning. Parts are tried in order, the least changed first. If none occurs,
    return the first part.
    """
    pieces: list[str] = []
    for answers in _iter_candidates(text, field):
        for forms in answers:
            pieces += filter(None, forms)
    for piece in pieces:
        if piece in passage:
            return piece
    return pieces[0] if pieces else text


def read_text(text: str, field: str) -> str:
    """Return the member `field` of a JSON object in the text, or else the text."""
    whole = _find_fenced(text)
    whole.insert(0, text.strip())
    for piece in whole:
        if piece.startswith("{"):
            for value in _iter_json_answers(piece, field):
                return value.strip()
    return text


def _iter_candidates(text: str, field: str) -> Iterator[Sequence[Iterable[str]]]:
    """Yield groups of possible answers, the least changed first, each answer in several forms.

    Answers of one group have equal rank: if they differ, there is no answer.
    """
    yield [[text]]
    stripped_text = text.strip()
    yield [[stripped_text]]
    # The end counts, since models explain first. The limit bounds the time of the patterns.
    stripped_text = stripped_text[-LONGEST_WRAPPED:]
    inner = [stripped_text]
    inner += _find_fenced(stripped_text)
    inner += _find_tagged(stripped_text)
    in_json = []
    for piece in inner:
        for value in _iter_json_answers(piece, field):
            in_json.append((value.strip(), _strip_markup(value)))
    yield in_json
    for piece in inner:
        yield [_iter_forms(piece)]


def _iter_forms(text: str) -> Iterator[str]:
    """Yield the text stripped, without surrounding marks, and without a prefix like "Answer:"."""
    yield text.strip()
    bare_text = _strip_markup(text)
    yield bare_text
    introduction = _INTRODUCTION.match(bare_text)
    if introduction:
        yield _strip_markup(bare_text[introduction.end() :])


def _strip_markup(text: str) -> str:
    """Strip marks, quotes and punctuation around a text. Keeps the sign of a number."""
    return text.strip(_AROUND)


def _find_fenced(text: str) -> list[str]:
    return [match[1] for match in _FENCE.finditer(text)]


def _find_tagged(text: str) -> list[str]:
    """Return the content of the last `<answer>` tag and of the last LaTeX box.

    Then come their beginnings, because models add an option's text after its letter.
    """
    # Both are common in instructions of benchmarks.
    tagged = [match[2] for match in _ANSWER_TAG.finditer(text)]
    boxed = [match[1] for match in _BOXED.finditer(text)]
    last = tagged[-1:] + boxed[-1:]
    beginnings = [_OPTION_TEXT.split(_strip_markup(text), maxsplit=1)[0] for text in last]
    return last + beginnings


def _iter_json_answers(text: str, field: str) -> Iterator[str]:
    """Yield the answers in the JSON of a text: a string, or the member `field` of an object."""
    decoder = json.JSONDecoder()
    if text.startswith('"'):
        with suppress(ValueError):
            yield str(json.loads(text))
    place = text.find("{")
    # A text of many braces would otherwise take quadratic time.
    for _object in range(MOST_OBJECTS):
        if place < 0:
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        yield from _iter_member(value, field)
        place = text.find("{", place)


def _iter_member(value: dict[str, object], field: str) -> Iterator[str]:
    """Yield the object's members named `field` in any case; numbers and booleans as JSON text."""
    for name, member in value.items():
        # Models change the case of names, such as Label for label.
        if fold(name) != fold(field):
            continue
        if isinstance(member, str):
            yield member
        elif isinstance(member, bool | int | float):
            whole = isinstance(member, float) and member.is_integer()
            yield json.dumps(int(member) if whole else member)


def _find_named_labels(text: str, labels: Sequence[str]) -> set[str]:
    """Return the labels that a text mentions as whole words without a negation before them."""
    folds = Counter(map(fold, labels))
    # The longest first, so that "not_positive" is read before "positive".
    by_length = sorted((label for label in labels if fold(label)), key=len, reverse=True)
    exact, folded_text = " ".join(text.split()), fold(text)
    named_labels: set[str] = set()
    for label in by_length:
        # Of labels that differ in case alone only the very letters count.
        is_alike = folds[fold(label)] > 1
        searched_text = folded_text
        if is_alike:
            searched_text = exact
        for match in _compile_label_pattern(label if is_alike else fold(label)).finditer(
            searched_text
        ):
            start, end = match.span()
            if not _is_word(searched_text, start, end):
                continue
            if _is_given(searched_text, start, end, label, folds):
                named_labels.add(label)
            # What was read is taken away, so that "positive" is not found in "not_positive".
            searched_text = searched_text[:start] + "\0" * (end - start) + searched_text[end:]
        if not is_alike:
            folded_text = searched_text
    return named_labels


def _compile_label_pattern(label: str) -> re.Pattern[str]:
    """Compile a pattern for a label that treats hyphens, underscores and spaces alike."""
    words = [word for word in re.split(r"[\s_-]+", label) if word] or [label]
    return re.compile(r"[\s_-]+".join(map(re.escape, words)))


def _is_word(text: str, start: int, end: int) -> bool:
    """Return whether a span is a whole word. Korean suffixes may follow without a space."""
    if is_whole(text, start, end):
        return True
    return bool(_HANGUL.match(text[end - 1])) and is_whole(text[:end], start, end)


_HANGUL = re.compile(f"[{HANGUL}]")
_UNSPACED = re.compile(f"[{UNSPACED}{HANGUL}]")


def _is_given(text: str, start: int, end: int, label: str, folds: Collection[str]) -> bool:
    """Return whether the label at this span is the text's answer and not just mentioned.

    folds: all labels as `fold` returns them.
    """
    text_before, text_after = text[:start], text[end:]
    if _NEGATION.search(text_before):
        return False
    if _BEFORE_IN_COMPOUND.search(text_before) or _AFTER_IN_COMPOUND.match(text_after):
        return False
    # Short labels are also words of sentences, so they need marks or a place of their own.
    letters = sum(map(str.isalnum, label))
    if letters > WEAK_LETTERS or _UNSPACED.match(fold(label)):
        return True
    # "4 out of 5": a number may be the end of a scale, and then it is not the answer.
    if label.isdecimal():
        if _AFTER_SCALE.search(text_before):
            return False
        if _SCALE.match(text_after):
            return True
    follows = _CONJUNCTION.match(text_after)
    if follows and follows[1] in folds:
        return True  # "yes and no" says both
    is_marked = bool(text_before) and text_before[-1] in _MARKS.strip() + _QUOTES + "([（［【:：="
    is_first = not text_before.strip(_AROUND) or bool(_CUE.search(text_before))
    return is_marked or (is_first and not text_after[:1].isspace()) or not _strip_markup(text_after)
