"""Extract the answer from a language model's text. Pure: it needs only our module of words.

All code that calls a language model reads its texts here, so that equal texts give equal answers
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
    from core.text.words import (
        HANGUL_LETTERS,
        UNSPACED_LETTERS,
        build_label_key,
        find_label,
        has_word_boundaries,
    )
except ImportError:  # pragma: no cover (in a release, where it lies beside this file)
    from dynabench_words import (  # type: ignore[no-redef]
        HANGUL_LETTERS,
        UNSPACED_LETTERS,
        build_label_key,
        find_label,
        has_word_boundaries,
    )

READER_VERSION = "3"
"""The version of these rules. Like the prompt, it is part of a chat model's identity."""

MAX_SENTENCE_CHARS = 400
"""The maximum length of an answer for which a mentioned label counts.

Longer texts more often discuss a label than choose it.
"""

MAX_WRAPPED_CHARS = 20_000
"""The number of characters at the end of a text that are searched for fences, tags and JSON."""
MAX_OBJECTS = 50
"""The maximum number of possible JSON objects to parse in a text, as each may take long to fail."""


class ModelText(NamedTuple):
    """A model's text, split into its answer and the reasoning that precedes it.

    is_unfinished: whether the reasoning has a beginning but no end.
    """

    text: str
    thoughts: str
    is_unfinished: bool  # the thoughts have a beginning and no end


class LabelReading(NamedTuple):
    """A label read from a text. is_named: whether the text only mentions it in a sentence."""

    label: str
    is_named: bool


_TAG_NAMES = "think|thinking|thoughts?|reasoning|seed:think"
_OPENING_PATTERN = re.compile(
    rf"<(?:{_TAG_NAMES})(?:\s[^<>]*)?>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|<\|begin_of_thought\|>|<\|channel\|>(?:analysis|commentary)<\|message\|>",
    re.IGNORECASE,
)
_CLOSING_PATTERN = re.compile(
    rf"</(?:{_TAG_NAMES})\s*>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>"
    r"|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)
# What servers leave around an answer when they do not parse their model's own format.
_WRAPPER_PATTERN = re.compile(
    r"<\|(?:begin_of_solution|end_of_solution|START_RESPONSE|END_RESPONSE|return|end|im_end"
    r"|eot_id|channel\|>final<\|message)\|>",
    re.IGNORECASE,
)
_FENCE_PATTERN = re.compile(r"^(?:```|~~~)[^\n`]*\n(.*?)\n?(?:```|~~~)", re.DOTALL | re.MULTILINE)
_ANSWER_TAG_PATTERN = re.compile(
    r"<(answer|label|output|response)>(.*?)</\1>", re.DOTALL | re.IGNORECASE
)
_BOXED_PATTERN = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}")
_OPTION_TEXT_PATTERN = re.compile(r"[:：)）\]、](?!\d)|\.(?!\S)")
_MARKS = " \t\r\n*_`~#>|$"  # of Markdown and of formulas
_QUOTES = "\"'`´‘’‚‛“”„‟«»‹›「」『』《》〈〉〝〞＂＇"
_ENDINGS = ".,;:!?…·。．！？，、；：｡､।॥؟،؛။។"
_BRACKETS = "()[]{}（）［］【】〔〕"
_SURROUNDING_SIGNS = _MARKS + _QUOTES + _ENDINGS + _BRACKETS
_INTRODUCTION_PATTERN = re.compile(r"^[\w ]{1,40}[:：=]\s*(?=\S)")
# Words right before a label that turn it around: "is not positive" names no label.
_NEGATION_PATTERN = re.compile(
    r"(?:\b(?:not|never|neither|nor|isn['’]t|no|non|nicht|kein\w*|pas|ni|não|нет|не)[\s-]+"
    r"(?:(?:a|an|the|really|very|clearly|un|une|ein\w*)\s+)?"
    r"|[不非没沒]是?|ではなく|ليس\w*\s+|غير\s+)[\W_]*$"
)
# "4 out of 5" and "4/5" give 4; "4 stars" give 4, too. \0 is a number that was read already.
_AFTER_SCALE_PATTERN = re.compile(
    r"(?:[\d\0][\s,(]*(?:/|(?:of|von|sur|sobre|su|de|из)\s)\s*|\bout of\s+|[-−–])$"
)
_SCALE_PATTERN = re.compile(
    r"[\s,(]*(?:(?:/|(?:out of|von|sur|sobre|su|de|из)\s)\s*[\d\0]|stars?\b|points?\b|[★⭐点점])"
)
# "The answer is B. Note that A is a distractor." gives B, as "Answer: B, not A" does.
_CUE_PATTERN = re.compile(
    r"(?:\b(?:answer|label|option|choice|rating|score|verdict)\s+is"
    r"|\b(?:antwort|réponse|respuesta|risposta|resposta|ответ)\s+(?:ist|est|es|è|é|[-—])"
    r"|(?:答案|回答)[是为為]|(?:答え|正解)は|정답은|[:：=])[\W_]*$",
    re.IGNORECASE,
)
_CONJUNCTION_PATTERN = re.compile(r"\s+(?:and|or|und|oder|et|ou|y|o|e|и|или)\s+(\w+)")
# "non-positive" and "positive-leaning" are no "positive".
_BEFORE_IN_COMPOUND, _AFTER_IN_COMPOUND = re.compile(r"[^\W_]-$"), re.compile(r"-[^\W_]")
MAX_WEAK_LETTERS = 3
"""The maximum number of letters of labels that are also common words, such as "no" or "a".

They count only at the beginning or end of a text, or between marks.
"""


def split_thoughts(text: str) -> ModelText:
    """Split a text into a model's reasoning and its answer.

    The answer follows the last closing tag of reasoning. The opening tag may be missing, because
    many templates put it into the prompt. If an opening tag has no closing tag, the remaining text
    is reasoning.
    """
    # 1. Everything up to the last end of thoughts is thoughts.
    thoughts, remaining_text = "", text
    closing_tags = list(_CLOSING_PATTERN.finditer(text))
    if closing_tags:
        thoughts, remaining_text = text[: closing_tags[-1].start()], text[closing_tags[-1].end() :]
    # 2. A beginning after that has no end: the model was cut off while it thought.
    opening_tag = _OPENING_PATTERN.search(remaining_text)
    if opening_tag:
        thoughts += remaining_text[opening_tag.end() :]
        remaining_text = remaining_text[: opening_tag.start()]
    return ModelText(
        _WRAPPER_PATTERN.sub("", remaining_text).strip(),
        _OPENING_PATTERN.sub("", thoughts).strip(),
        opening_tag is not None,
    )


def read_label(text: str, labels: Sequence[str], field: str) -> LabelReading | None:
    """Return the label that a text gives; None for no label or several.

    An exact label has priority. Next is a label with other letter case or Unicode forms, or in JSON
    (as `field`), in code fences, quotes or marks. Next is a first or last line that is a label,
    whatever the other lines explain. Finally, a text of at most MAX_SENTENCE_CHARS characters gives
    the only label that it mentions.

    text: without reasoning.
    """
    for answers in _iter_candidates(text, field):
        answered_labels = set()
        for forms in answers:
            if label := _find_form_label(forms, labels):
                answered_labels.add(label)
        # Two different labels in one place are no answer: a guess would favour one of them.
        if answered_labels:
            if len(answered_labels) == 1:
                return LabelReading(answered_labels.pop(), is_named=False)
            return None
    # 2. A first or last line that is a label, whatever is explained beside it.
    lines = [_read_line_label(line, labels) for line in text.strip().splitlines()]
    named_labels = set()
    for label in lines:
        if label:
            named_labels.add(label)
    # 3. At last the one label that a short text names in its sentences.
    if not (named_labels and (lines[0] or lines[-1])):
        named_labels = (
            _find_named_labels(text, labels) if len(text) <= MAX_SENTENCE_CHARS else set()
        )
    if len(named_labels) == 1:
        return LabelReading(named_labels.pop(), is_named=True)
    return None


def _read_line_label(line: str, labels: Sequence[str]) -> str | None:
    """Return the label if the line contains nothing else, otherwise None.

    An introduction such as "Answer:" is ignored.
    """
    if len(line) <= MAX_SENTENCE_CHARS:
        return _find_form_label(_iter_forms(line), labels)
    return None


def _find_form_label(forms: Iterable[str], labels: Sequence[str]) -> str | None:
    """Return the first label that equals one of an answer's forms, or None."""
    return next(filter(None, (find_equal_label(form, labels) for form in forms)), None)


def find_equal_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that equals a text, or None. See `find_label`."""
    return find_label(text, labels)


def fold_text(text: str) -> str:
    """Return a text in the form in which labels are compared. See `build_label_key`."""
    return build_label_key(text)


def read_span(text: str, passage: str, field: str) -> str:
    """Return the first possible answer in a text that occurs in the passage.

    Possible answers are parts of the text, the least changed first. If none occurs in the passage,
    return the first one, or the text itself if there is none. text: without reasoning.
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
    """Return the member `field` of a JSON object in the text; without one, the text itself."""
    pieces = _find_fenced_texts(text)
    pieces.insert(0, text.strip())
    for piece in pieces:
        if piece.startswith("{"):
            for value in _iter_json_answers(piece, field):
                return value.strip()
    return text


def _iter_candidates(text: str, field: str) -> Iterator[Sequence[Iterable[str]]]:
    """Yield groups of possible answers, the least changed first, with several forms per answer.

    Answers of one group have equal rank: if they differ, there is no answer.
    """
    yield [[text]]
    stripped_text = text.strip()
    yield [[stripped_text]]
    # The end counts, since models explain first. The limit bounds the time of the patterns.
    stripped_text = stripped_text[-MAX_WRAPPED_CHARS:]
    pieces = [stripped_text]
    pieces += _find_fenced_texts(stripped_text)
    pieces += _find_tagged_texts(stripped_text)
    json_answers = []
    for piece in pieces:
        for value in _iter_json_answers(piece, field):
            json_answers.append((value.strip(), _strip_markup(value)))
    yield json_answers
    for piece in pieces:
        yield [_iter_forms(piece)]


def _iter_forms(text: str) -> Iterator[str]:
    """Yield a text's forms: stripped, without surrounding marks, without "Answer:" before it."""
    yield text.strip()
    bare_text = _strip_markup(text)
    yield bare_text
    introduction = _INTRODUCTION_PATTERN.match(bare_text)
    if introduction:
        yield _strip_markup(bare_text[introduction.end() :])


def _strip_markup(text: str) -> str:
    """Return a text without surrounding marks, quotes and punctuation. Keeps a number's sign."""
    return text.strip(_SURROUNDING_SIGNS)


def _find_fenced_texts(text: str) -> list[str]:
    return [match[1] for match in _FENCE_PATTERN.finditer(text)]


def _find_tagged_texts(text: str) -> list[str]:
    """Return the contents of the last `<answer>` tag and the last LaTeX box, then their beginnings.

    The beginnings count because models add an option's text after its letter.
    """
    # Both are common in instructions of benchmarks.
    tag_contents = [match[2] for match in _ANSWER_TAG_PATTERN.finditer(text)]
    box_contents = [match[1] for match in _BOXED_PATTERN.finditer(text)]
    last_contents = tag_contents[-1:] + box_contents[-1:]
    beginnings = [
        _OPTION_TEXT_PATTERN.split(_strip_markup(text), maxsplit=1)[0] for text in last_contents
    ]
    return last_contents + beginnings


def _iter_json_answers(text: str, field: str) -> Iterator[str]:
    """Yield the answers in the JSON of a text: a string, or the member `field` of an object."""
    decoder = json.JSONDecoder()
    if text.startswith('"'):
        with suppress(ValueError):
            yield str(json.loads(text))
    position = text.find("{")
    # A text of many braces would otherwise take quadratic time.
    for _object in range(MAX_OBJECTS):
        if position < 0:
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find("{", position + 1)
            continue
        yield from _iter_member(value, field)
        position = text.find("{", position)


def _iter_member(value: dict[str, object], field: str) -> Iterator[str]:
    """Yield the object's members named `field`, in any case. Numbers and booleans become JSON."""
    for name, member in value.items():
        # Models change the case of names, such as Label for label.
        if fold_text(name) != fold_text(field):
            continue
        if isinstance(member, str):
            yield member
        elif isinstance(member, bool | int | float):
            is_whole_number = isinstance(member, float) and member.is_integer()
            yield json.dumps(int(member) if is_whole_number else member)


def _find_named_labels(text: str, labels: Sequence[str]) -> set[str]:
    """Return the labels that a text mentions as whole words, without a negation before them."""
    label_counts = Counter(map(fold_text, labels))
    # The longest first, so that "not_positive" is read before "positive".
    sorted_labels = sorted((label for label in labels if fold_text(label)), key=len, reverse=True)
    exact_text, folded_text = " ".join(text.split()), fold_text(text)
    named_labels: set[str] = set()
    for label in sorted_labels:
        # Of labels that differ in case alone only the very letters count.
        is_alike = label_counts[fold_text(label)] > 1
        searched_text = folded_text
        if is_alike:
            searched_text = exact_text
        for match in _compile_label_pattern(label if is_alike else fold_text(label)).finditer(
            searched_text
        ):
            start, end = match.span()
            if not _is_word(searched_text, start, end):
                continue
            if _is_answer(searched_text, start, end, label, label_counts):
                named_labels.add(label)
            # What was read is taken away, so that "positive" is not found in "not_positive".
            searched_text = searched_text[:start] + "\0" * (end - start) + searched_text[end:]
        if not is_alike:
            folded_text = searched_text
    return named_labels


def _compile_label_pattern(label: str) -> re.Pattern[str]:
    """Return a pattern for a label that treats hyphens, underscores and spaces alike."""
    words = [word for word in re.split(r"[\s_-]+", label) if word] or [label]
    return re.compile(r"[\s_-]+".join(map(re.escape, words)))


def _is_word(text: str, start: int, end: int) -> bool:
    """Return whether a span is a whole word. Korean suffixes may follow without a space."""
    if has_word_boundaries(text, start, end):
        return True
    return bool(_HANGUL_PATTERN.match(text[end - 1])) and has_word_boundaries(
        text[:end], start, end
    )


_HANGUL_PATTERN = re.compile(f"[{HANGUL_LETTERS}]")
_UNSPACED_PATTERN = re.compile(f"[{UNSPACED_LETTERS}{HANGUL_LETTERS}]")


def _is_answer(text: str, start: int, end: int, label: str, folded_labels: Collection[str]) -> bool:
    """Return whether the label at this span is the text's answer, not only mentioned.

    folded_labels: all labels, folded by `fold_text`.
    """
    text_before, text_after = text[:start], text[end:]
    if _NEGATION_PATTERN.search(text_before):
        return False
    if _BEFORE_IN_COMPOUND.search(text_before) or _AFTER_IN_COMPOUND.match(text_after):
        return False
    # Short labels are also words of sentences, so they need marks or a place of their own.
    letter_count = sum(map(str.isalnum, label))
    if letter_count > MAX_WEAK_LETTERS or _UNSPACED_PATTERN.match(fold_text(label)):
        return True
    # "4 out of 5": a number may be the end of a scale, and then it is not the answer.
    if label.isdecimal():
        if _AFTER_SCALE_PATTERN.search(text_before):
            return False
        if _SCALE_PATTERN.match(text_after):
            return True
    conjunction = _CONJUNCTION_PATTERN.match(text_after)
    if conjunction and conjunction[1] in folded_labels:
        return True  # "yes and no" says both
    is_marked = bool(text_before) and text_before[-1] in _MARKS.strip() + _QUOTES + "([（［【:：="
    is_first = not text_before.strip(_SURROUNDING_SIGNS) or bool(_CUE_PATTERN.search(text_before))
    return is_marked or (is_first and not text_after[:1].isspace()) or not _strip_markup(text_after)
