"""Compare texts in every script: equality, words, containment and labels. Pure.

Uses only the standard library: the image in which submitted models run contains this file, and
releases ship it with their metrics. docs/evaluation.md, “How texts are compared”, gives the rules
with examples.
"""

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
TURKIC_LANGUAGES = ("tr", "az")
"""Languages in which I is the capital of ı, and İ is the capital of i."""


def gettext_noop(text: str) -> str:
    """Return the text unchanged. Marks a constant to be translated later."""
    return text


# Letters


def _build_character_class(blocks: Sequence[tuple[int, int]], category: str) -> str:
    """Return the characters of a category in these blocks, as ranges for a pattern.

    blocks: the first and last code points. category: the beginning of Unicode's category.
    """
    ranges: list[list[int]] = []
    for code in (code for first, last in blocks for code in range(first, last + 1)):
        if unicodedata.category(chr(code)).startswith(category):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


UNSPACED_LETTERS = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
) + _build_character_class(
    [
        (0x0E00, 0x0EFF),  # Thai, Lao
        (0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),  # Myanmar
        (0x1780, 0x17FF),  # Khmer
        (0x1950, 0x19DF), (0x1A20, 0x1AAF), (0xAA80, 0xAADF),  # Tai Le, Lue, Tham and Viet
    ],
    "L",
)  # fmt: skip
"""Letters of scripts without spaces between words, as ranges for a pattern."""
HANGUL_LETTERS = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
MARKS = _build_character_class(
    [
        (0x300, 0x309A), (0xA66F, 0xABFF), (0xFB1E, 0xFB1E), (0xFE00, 0xFE2F), (0x101FD, 0x11FFF),
        (0x16AF0, 0x16FFF), (0x1BC9D, 0x1BC9E), (0x1CF00, 0x1DAFF), (0x1E000, 0x1E94A),
    ],
    "M",
)  # fmt: skip
"""Accents, vowel signs and tones, as ranges for a pattern. They belong to the letter before."""

_POINTS_PATTERN = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew
    "\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc]"  # Arabic, and its line
)
"""Vowel points that most texts omit, and the Arabic line that stretches a word."""
_INVISIBLE_PATTERN = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
ASCII_PUNCTUATION = string.punctuation
MAX_MARKS = 64
_MANY_MARKS_PATTERN = re.compile(f"([{MARKS}]{{{MAX_MARKS}}})([{MARKS}]+)")
_WIDE_PATTERN = re.compile("[\u3000\uff01-\uffee]+")
_DOTTED_I_PATTERN = re.compile("i\u0307+")
_GREEK_ACCENT_PATTERN = re.compile("(?<=[\u03b1-\u03c9])(\u0308?)[\u0300\u0301\u0313\u0314\u0342]+")
"""Accents that Greek capitals do not have. The group is a diaeresis, which is kept."""
_FOREIGN_DIGIT_PATTERN = re.compile(r"[^\D0-9]")


def compose(text: str) -> str:
    r"""Return the text in the form in which texts are stored: NFC, with LF line ends.

    Browsers show CRLF and CR as one line end. If the text kept both characters, offsets in it would
    differ from those on the page.

        >>> compose("cafe\u0301\r\nbar\r")
        'café\nbar\n'
    """
    return _normalise_form("NFC", normalise_line_ends(text))


def normalise_line_ends(text: str) -> str:
    r"""Return the text with LF line ends. Browsers send CRLF, and old files have CR.

    >>> normalise_line_ends("a\r\nb\r")
    'a\nb\n'
    """
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _normalise_form(form: Form, text: str) -> str:
    """Return the text in a Unicode form, except for marks beyond MAX_MARKS on one letter.

    Python sorts the marks of a letter in quadratic time, and a text may have thousands of them.
    """
    if len(text) <= MAX_MARKS or text.isascii():
        return unicodedata.normalize(form, text)
    pieces: list[str] = []
    position = 0
    for match in _MANY_MARKS_PATTERN.finditer(text):
        pieces += unicodedata.normalize(form, text[position : match.end(1)]), match[2]
        position = match.end()
    return "".join([*pieces, unicodedata.normalize(form, text[position:])])


def compose_value(value: Any, passages: Sequence[str] = ()) -> Any:
    """Return a JSON value with all texts composed. Field names are unchanged.

    passages: original texts in which the value may mark spans (`text`, `start`, `end`). The offsets
    of these spans are adjusted to the composed text.
    """
    if isinstance(value, str):
        return compose(value)
    if isinstance(value, Mapping):
        fields = {name: compose_value(field_value, passages) for name, field_value in value.items()}
        start = compose_start(value.get("text"), value.get("start"), passages)
        if start is not None:
            fields |= {"start": start, "end": start + len(fields["text"])}
        return fields
    if isinstance(value, list | tuple):
        return [compose_value(field_value, passages) for field_value in value]
    return value


def compose_start(words: Any, start: Any, passages: Iterable[str]) -> int | None:
    r"""Return a span's start in the composed form of the passage that contains it, or None.

    words: the span's text. start: its start in the original passage.

        >>> compose_start("bar", 6, ["cafe\u0301 bar"])
        5
    """
    if not isinstance(words, str) or type(start) is not int or start < 0:
        return None
    for passage in passages:
        if passage.startswith(words, start):
            is_torn = words[:1] == "\n" and passage[:start].endswith("\r")  # one line end
            return len(compose(passage[: start - 1 if is_torn else start]))
    return None


def fold(text: str, *, compatible: bool = False, points: bool = False, language: str = "") -> str:
    """Return the text in the form in which texts are compared regardless of case.

    Digits of all scripts become 0 to 9, and full-width characters become ordinary ones. Invisible
    characters are removed. The function is idempotent, and gives the same result for NFC and NFD.

    compatible: whether to read ligatures, superscripts and the like as plain letters (NFKC).
    points: whether to keep the vowel points of Hebrew and Arabic. language: a tag such as `tr`. In
    Turkic languages, I is the capital of ı; elsewhere, both İ and I are capitals of i. Greek loses
    the accents that its capitals do not have.

        >>> fold("ΑΘΗΝΑ") == fold("Αθήνα"), fold("İzmir ١٢"), fold("ﬁn²", compatible=True)
        (True, 'izmir 12', 'fin2')
    """
    text = normalise_line_ends(text)
    is_turkic = language.partition("-")[0].lower() in TURKIC_LANGUAGES
    if text.isascii() and not is_turkic:
        return text.lower()
    decomposed_form: Form = "NFKD" if compatible else "NFD"
    text = _WIDE_PATTERN.sub(lambda wide: _normalise_form("NFKD", wide[0]), text)
    text = _normalise_form(decomposed_form, _INVISIBLE_PATTERN.sub("", text))
    if is_turkic:
        text = text.replace("I\u0307", "i").replace("I", "ı")
    text = _normalise_form(decomposed_form, text.casefold())
    text = _GREEK_ACCENT_PATTERN.sub(r"\1", _DOTTED_I_PATTERN.sub("i", text))
    if not points:
        text = _POINTS_PATTERN.sub("", text)
    text = _FOREIGN_DIGIT_PATTERN.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    return _normalise_form("NFKC" if compatible else "NFC", text)


def collapse_spaces(text: str) -> str:
    """Return the text with single spaces between words and none at its ends."""
    return " ".join(text.split())


def strip_punctuation(text: str, *, replacement: str = "", signs: str = ASCII_PUNCTUATION) -> str:
    """Return the text without the ASCII `signs` and without non-ASCII punctuation.

    replacement: the replacement of each removed character.
    """
    return "".join(
        replacement if letter in signs or (letter > "\x7f" and _is_punctuation(letter)) else letter
        for letter in text
    )


@lru_cache(maxsize=4096)
def _is_punctuation(letter: str) -> bool:
    return unicodedata.category(letter).startswith("P")


# Words

_SEPARATE_LETTER_PATTERN = re.compile(f"([{UNSPACED_LETTERS}{HANGUL_LETTERS}][{MARKS}]*)")
_RUN_PATTERN = re.compile(
    f"[{UNSPACED_LETTERS}{HANGUL_LETTERS}][{MARKS}]*"
    rf"|[^\W_{UNSPACED_LETTERS}{HANGUL_LETTERS}](?:[^\W_{UNSPACED_LETTERS}{HANGUL_LETTERS}]|[{MARKS}])*"
)
_ASCII_RUN_PATTERN = re.compile("[A-Za-z0-9]+")
_ARTICLE_PATTERN = re.compile(rf"(?<![\w{MARKS}])(?:a|an|the)(?![\w{MARKS}])")
_ASCII_ARTICLE_PATTERN = re.compile(r"\b(?:a|an|the)\b")
_SIGN_REMOVAL = {ord(sign): None for sign in ASCII_PUNCTUATION}


def split_words(text: str) -> list[str]:
    """Return the words between spaces. In Korean and scripts without spaces, each letter is a word.

    >>> split_words("Mills are 很大 here, กิน")
    ['Mills', 'are', '很', '大', 'here,', 'กิ', 'น']
    """
    return (text if text.isascii() else _SEPARATE_LETTER_PATTERN.sub(r" \1 ", text)).split()


def split_runs(text: str) -> list[str]:
    """Return the runs of letters and digits; in Korean and unspaced scripts, each letter.

    >>> split_runs("It's 很大: हिन्दी")
    ['It', 's', '很', '大', 'हिन्दी']
    """
    return (_ASCII_RUN_PATTERN if text.isascii() else _RUN_PATTERN).findall(text)


def split_answer_words(text: str, *, language: str = "") -> list[str]:
    """Return the words of an answer as SQuAD's evaluation compares them.

    Words are in lower case, without punctuation and English articles (Rajpurkar et al. 2016, 6.1).
    Punctuation of all scripts is removed, and a Chinese character is a word, as in MLQA (Lewis et
    al. 2020, 4.2). A Korean syllable is a word, as in KorQuAD (Lim et al. 2019, 4.1). language: see
    `fold`.

        >>> split_answer_words("The  U.S. Army!"), split_answer_words("在北京。")
        (['us', 'army'], ['在', '北', '京'])
    """
    text = fold(text, language=language)
    if text.isascii():
        return _ASCII_ARTICLE_PATTERN.sub(" ", text.translate(_SIGN_REMOVAL)).split()
    return split_words(_ARTICLE_PATTERN.sub(" ", compose(strip_punctuation(text))))


# Containment

_UNSPACED_PATTERN = re.compile(f"[{UNSPACED_LETTERS}]")
_HANGUL_PATTERN = re.compile(f"[{HANGUL_LETTERS}]")
_MARK_PATTERN = re.compile(f"[{MARKS}]")
_GAP_PATTERN = re.compile(f"(?<=[{UNSPACED_LETTERS}{MARKS}]) (?=[{UNSPACED_LETTERS}])")
_HANGUL_RUN_PATTERN = re.compile(f"[{HANGUL_LETTERS}]+")
_TYPOGRAPHY = {
    **dict.fromkeys(map(ord, "‘’‚‛ʼ′"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″«»"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–−־"), "-"),
}
"""Plain characters on a keyboard, by the code point of their typographic variants."""
_AFTER_POINT, _AFTER_COMMA = re.compile(r"\d\."), re.compile(r"\d,")
_AFTER_SIGN_PATTERN = re.compile(r"(?:^|[\s(\[=:,;])[-−]$")  # of a number, not of COVID-19 or 1-72
_DIGIT_GROUP_PATTERN = re.compile(r"\d{3}(?!\d)")
_NUMBER_REST_PATTERN = re.compile(r"\.\d|,\d{3}(?!\d)")
_KOREAN_ENDING_PATTERN = re.compile(
    "들?"
    "(?:께서|에서|에게|한테|으로|로|서|써|까지|부터|조차|마저|밖에|처럼|같이|보다|마다|대로|만큼|하고"
    "|이랑|랑|이나|나|이?든지|이야말로|야말로|커녕|와|과|의|에|께|도|만|은|는|이|가|을|를|뿐|쯤|씩|요){0,4}"
    "(?:입니[다까]|이?에요|예요|이?야|이?죠|이지(?:요|만)?|이?다|이고|이며|이면|이니까?|이므로|이자"
    "|이?라(?:고|는|서|며|면|도|니)?|이?란|인(?:데|가|지)?요?|일까?요?|임|이?랍니다"
    "|(?:이었|였)(?:다|습니다|고|으며|으나|지만|던|어요))?"
)
"""Particles and forms of “to be” that Korean attaches to a noun."""
_PREFIX_PATTERN = re.compile(
    "[وف]?(?:[بك]?(?:ال)?|لل?)"  # Arabic: and, in, like, the, to
    "|ו?(?:כש|ש)?[בכלמ]?ה?"  # Hebrew: and, that, in, to, from, the
)
"""Short words that Arabic and Hebrew attach to the next word."""


def contains_phrase(text: str, phrase: str, *, language: str = "") -> bool:
    """Return whether the text contains the phrase as whole words. True for an empty phrase.

    Ignores case, Unicode forms and the amount of white space, and treats typographic quotes and
    hyphens as plain ones. A word boundary is needed only where the script has one: 12 is not in
    3120, 3.12 or -12, but 北京 is in 我住在北京市. language: see `fold`.

        >>> contains_phrase("It was  PARIS, in 1889.", "paris, in")
        True
        >>> contains_phrase("수도는 서울입니다.", "서울")
        True
    """
    comparable_text, comparable_phrase = (
        _make_comparable(each, language) for each in (text, phrase)
    )
    if not comparable_phrase:
        return True
    start = comparable_text.find(comparable_phrase)
    while start >= 0:
        if has_word_boundaries(comparable_text, start, start + len(comparable_phrase)):
            return True
        start = comparable_text.find(comparable_phrase, start + 1)
    return False


def _make_comparable(text: str, language: str) -> str:
    text = fold(text, compatible=True, language=language).translate(_TYPOGRAPHY)
    return _GAP_PATTERN.sub("", collapse_spaces(text))


def find_spans(text: str, phrase: str) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) spans in which the phrase occurs as whole words, in any case."""
    pattern = re.compile(re.escape(phrase), re.IGNORECASE)
    match = pattern.search(text)
    while match and match[0]:
        is_found = has_word_boundaries(text, *match.span())
        if is_found:
            yield match.span()
        match = pattern.search(text, match.end() if is_found else match.start() + 1)


def has_word_boundaries(text: str, start: int, end: int) -> bool:
    """Return whether the non-empty span `text[start:end]` begins and ends at word boundaries.

    Korean suffixes, and the prefixed short words of Arabic and Hebrew, may be attached to it.
    """
    first_kind, next_kind = (
        _get_character_kind(text[start]),
        _get_character_kind(text[end : end + 1]),
    )
    if next_kind == "mark":
        return False  # it would be torn off its letter; looked at first, as marks may be many
    previous_kind, last_kind = _get_kind_before(text, start), _get_kind_before(text, end)
    if previous_kind and first_kind == "mark":
        return False
    if _is_joined(previous_kind, first_kind) and not (end - start > 1 and _is_prefix(text, start)):
        return False
    if _is_in_number(text, start, end):
        return False
    if last_kind == next_kind == "hangul":
        ending = _HANGUL_RUN_PATTERN.match(text, end)
        return ending is not None and _KOREAN_ENDING_PATTERN.fullmatch(ending[0]) is not None
    return not _is_joined(next_kind, last_kind)


def _is_in_number(text: str, start: int, end: int) -> bool:
    """Return whether the span is only a part of a number such as 3.12, 1,912 or -12."""
    before = text[max(start - 2, 0) : start]
    is_group = _AFTER_COMMA.match(before) and _DIGIT_GROUP_PATTERN.match(text, start)
    is_rest = _AFTER_POINT.match(before) or _AFTER_SIGN_PATTERN.search(before) or is_group
    if text[start].isdigit() and is_rest:
        return True
    return text[end - 1].isdigit() and _NUMBER_REST_PATTERN.match(text, end) is not None


def _is_joined(outside_kind: str, inside_kind: str) -> bool:
    """Return whether a character next to a span may belong to the same word.

    outside_kind, inside_kind: kinds as in `_get_character_kind`. If the span ends in a symbol, an
    adjacent letter counts as joined to it.
    """
    if "unspaced" in (outside_kind, inside_kind) or not outside_kind:
        return False
    return outside_kind == inside_kind or (outside_kind == "word" and not inside_kind)


def _is_prefix(text: str, start: int) -> bool:
    word_start = start
    while word_start and start - word_start <= 6 and _get_character_kind(text[word_start - 1]):
        word_start -= 1
    return _PREFIX_PATTERN.fullmatch(text, word_start, start) is not None


def _get_kind_before(text: str, end: int) -> str:
    """Return the kind of the letter before index `end`, skipping its marks; "" at the start."""
    while end > 1 and _get_character_kind(text[end - 1]) == "mark":
        end -= 1
    return _get_character_kind(text[end - 1]) if end else ""


def is_mark(letter: str) -> bool:
    """Return whether a character is a combining mark of the letter before it."""
    return _get_character_kind(letter) == "mark"


@lru_cache(maxsize=4096)
def _get_character_kind(letter: str) -> str:
    """Return the kind of a character: mark, unspaced, hangul or word.

    Signs, spaces and "" give "".
    """
    if not letter or letter.isspace():
        return ""
    if _MARK_PATTERN.match(letter):
        return "mark"
    if _UNSPACED_PATTERN.match(letter):
        return "unspaced"
    if _HANGUL_PATTERN.match(letter):
        return "hangul"
    return "word" if letter.isalnum() or letter == "_" else ""


# Labels

_WHOLE_NUMBER_PATTERN = re.compile(r"(-?\d+)\.0+")


def format_label(value: Any) -> str | None:
    """Return a JSON value as the text of a label; None if it cannot be a label.

    >>> format_label(1.0), format_label(True), format_label(" good "), format_label([1])
    ('1', 'true', 'good', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return compose(str(value)).strip() if isinstance(value, str | int | float) else None


def drop_zero_decimals(text: str) -> str:
    """Return the text, without `.0` if it is a whole number.

    >>> drop_zero_decimals("1.0"), drop_zero_decimals("1.5")
    ('1', '1.5')
    """
    whole = _WHOLE_NUMBER_PATTERN.fullmatch(text)
    return whole[1] if whole else text


def build_label_key(text: str) -> str:
    """Return a key that is equal for labels that differ only in form, such as case or `.0`.

    Also ignores Unicode's compatibility forms (NFKC) and the amount of white space.

    >>> build_label_key(" Not  Sure ") == build_label_key("not sure")
    True
    """
    return drop_zero_decimals(collapse_spaces(fold(text, compatible=True, points=True)))


def find_label(value: Any, labels: Sequence[str]) -> str | None:
    """Return the label that a value names; None if it names no label, or could name two.

    An identical label has priority over the only label with the same `build_label_key`.

        >>> [find_label(value, ("US", "us", "1")) for value in ("us", "Us", " us ", 1.0, "1.0")]
        ['us', None, 'us', '1', '1']
    """
    if isinstance(value, str) and value in labels:
        return value
    text = format_label(value)
    if text is None:
        return None
    labels_by_text, names_by_key = _index_labels(tuple(labels))
    key = build_label_key(text)
    return labels_by_text.get(text) or (names_by_key.get(key) if key else None)


@lru_cache(maxsize=256)
def _index_labels(labels: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the labels by text, and by `build_label_key`.

    None marks a key that several labels share.
    """
    labels_by_text = {compose(label).strip(): label for label in reversed(labels)}
    names_by_key: dict[str, str | None] = {}
    for label in labels:
        key = build_label_key(label)
        names_by_key[key] = None if key in names_by_key else label
    return labels_by_text, names_by_key


def order_labels_by_names(names: Sequence[Any], labels: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels in the order of the names; None if they are not the same set.

    >>> order_labels_by_names(["NEGATIVE", "Positive"], ("positive", "negative"))
    ('negative', 'positive')
    """
    texts = [find_label(name, labels) for name in names]
    if len(texts) != len(labels) or {*texts} != {*labels}:
        return None
    return tuple(label for label in texts if label is not None)


def iterate_alike_labels(labels: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (index, earlier label) for each label with the same key as an earlier one."""
    label_by_key: dict[str, str] = {}
    for index, label in enumerate(labels):
        key = build_label_key(label)
        if key in label_by_key:
            yield index, label_by_key[key]
        label_by_key.setdefault(key, label)
