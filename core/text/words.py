"""Equality, words, containment and labels of texts, in every script. Pure.

The standard library alone: the image in which submitted models run has this file, and releases ship
it with their metrics. docs/evaluation.md, “How texts are compared”, gives the rules with examples.
"""

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
TURKIC = ("tr", "az")
"""Languages in which I is the capital of ı, and İ that of i."""


def gettext_noop(text: str) -> str:
    """Return the text; marks a constant for the catalogue of texts that are translated later."""
    return text


# Letters


def _class_of(blocks: Sequence[tuple[int, int]], category: str) -> str:
    """Return the characters of a category in the blocks, as ranges of a pattern."""
    ranges: list[list[int]] = []
    for code in (code for first, last in blocks for code in range(first, last + 1)):
        if unicodedata.category(chr(code)).startswith(category):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
) + _class_of(
    [
        (0x0E00, 0x0EFF),  # Thai, Lao
        (0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),  # Myanmar
        (0x1780, 0x17FF),  # Khmer
        (0x1950, 0x19DF), (0x1A20, 0x1AAF), (0xAA80, 0xAADF),  # Tai Le, Lue, Tham and Viet
    ],
    "L",
)  # fmt: skip
"""Letters of scripts without spaces between words, for a class of a pattern: first Han and kana."""
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
MARKS = _class_of(
    [
        (0x300, 0x309A), (0xA66F, 0xABFF), (0xFB1E, 0xFB1E), (0xFE00, 0xFE2F), (0x101FD, 0x11FFF),
        (0x16AF0, 0x16FFF), (0x1BC9D, 0x1BC9E), (0x1CF00, 0x1DAFF), (0x1E000, 0x1E94A),
    ],
    "M",
)  # fmt: skip
"""Accents, vowel signs and tones; each belongs to the letter before it."""

_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew
    "\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc]"  # Arabic, and its line
)
"""Vowel points that most texts leave out."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
ASCII_SIGNS = string.punctuation
MOST_MARKS = 64
_MANY_MARKS = re.compile(f"([{MARKS}]{{{MOST_MARKS}}})([{MARKS}]+)")
_WIDE = re.compile("[\u3000\uff01-\uffee]+")
_DOTTED_I = re.compile("i\u0307+")
_GREEK_ACCENT = re.compile("(?<=[\u03b1-\u03c9])(\u0308?)[\u0300\u0301\u0313\u0314\u0342]+")
"""What Greek capitals are written without."""
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")


def composed(text: str) -> str:
    """Return the text in the one form in which texts are stored: NFC, its line ends LF.

    Browsers show CRLF and CR as one line end, so that offsets in a text that held two characters
    there would not be those of the page.

    >>> composed("cafe\u0301\r\nbar\r")
    'caf\xe9\nbar\n'
    """
    return _in_form("NFC", with_lf(text))


def with_lf(text: str) -> str:
    r"""Return the text with LF line ends: browsers send CRLF, old files have CR.

    >>> with_lf("a\r\nb\r")
    'a\nb\n'
    """
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _in_form(form: Form, text: str) -> str:
    """Return the text in a Unicode form; marks beyond MOST_MARKS of a letter are unchanged.

    Python sorts the marks of a letter in quadratic time, and a text may have thousands of them.
    """
    if len(text) <= MOST_MARKS or text.isascii():
        return unicodedata.normalize(form, text)
    pieces: list[str] = []
    at = 0
    for many in _MANY_MARKS.finditer(text):
        pieces += unicodedata.normalize(form, text[at : many.end(1)]), many[2]
        at = many.end()
    return "".join([*pieces, unicodedata.normalize(form, text[at:])])


def composed_value(value: Any, passages: Sequence[str] = ()) -> Any:
    """Return a JSON value whose texts are `composed`; field names are unchanged.

    passages: original texts in which the value may mark spans (`text`, `start`, `end`); these keep
    their position in the composed text.
    """
    if isinstance(value, str):
        return composed(value)
    if isinstance(value, Mapping):
        fields = {
            name: composed_value(field_value, passages) for name, field_value in value.items()
        }
        start = composed_start(value.get("text"), value.get("start"), passages)
        if start is not None:
            fields |= {"start": start, "end": start + len(fields["text"])}
        return fields
    if isinstance(value, list | tuple):
        return [composed_value(field_value, passages) for field_value in value]
    return value


def composed_start(words: Any, start: Any, passages: Iterable[str]) -> int | None:
    """Return a span's start in the composed form of the text that contains it, or None.

    >>> composed_start("bar", 6, ["café bar"])
    5
    """
    if not isinstance(words, str) or type(start) is not int or start < 0:
        return None
    for passage in passages:
        if passage.startswith(words, start):
            is_torn = words[:1] == "\n" and passage[:start].endswith("\r")  # one line end
            return len(composed(passage[: start - 1 if is_torn else start]))
    return None


def same(text: str, other_text: str) -> bool:
    """Return whether two texts are equal character by character, in any Unicode form.

    >>> same("café", "café"), same("Café", "café")
    (True, False)
    """
    return composed(text) == composed(other_text)


def folded(text: str, *, compatible: bool = False, points: bool = False, language: str = "") -> str:
    """Return the text in the form in which texts are compared regardless of case.

    Digits of all scripts become 0 to 9, full-width characters ordinary ones; invisible characters
    are removed. The function is idempotent, and gives the same for NFC and NFD.

    compatible: also read ligatures, superscripts and the like as plain letters (NFKC).
    points: keep the vowel points of Hebrew and Arabic. language: a tag such as `tr`, in which I is
    the capital of ı; elsewhere İ and I are capitals of i. Greek loses the accents that its capitals
    do not have.

    >>> folded("ΑΘΗΝΑ") == folded("Αθήνα"), folded("İzmir ١٢"), folded("ﬁn²", compatible=True)
    (True, 'izmir 12', 'fin2')
    """
    text = with_lf(text)
    is_turkic = language.partition("-")[0].lower() in TURKIC
    if text.isascii() and not is_turkic:
        return text.lower()
    decomposed_form: Form = "NFKD" if compatible else "NFD"
    text = _WIDE.sub(lambda wide: _in_form("NFKD", wide[0]), text)
    text = _in_form(decomposed_form, _INVISIBLE.sub("", text))
    if is_turkic:
        text = text.replace("I\u0307", "i").replace("I", "ı")
    text = _in_form(decomposed_form, text.casefold())
    text = _GREEK_ACCENT.sub(r"\1", _DOTTED_I.sub("i", text))
    if not points:
        text = _POINTS.sub("", text)
    text = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    return _in_form("NFKC" if compatible else "NFC", text)


def spaced(text: str) -> str:
    """Return the text with single spaces between words and none at its ends."""
    return " ".join(text.split())


def unpunctuated(text: str, *, instead: str = "", signs: str = ASCII_SIGNS) -> str:
    """Return the text without the ASCII `signs` and the punctuation of all other scripts.

    instead: the replacement of each removed character.
    """
    return "".join(
        instead if letter in signs or (letter > "\x7f" and _is_punctuation(letter)) else letter
        for letter in text
    )


@lru_cache(maxsize=4096)
def _is_punctuation(letter: str) -> bool:
    return unicodedata.category(letter).startswith("P")


# Words

_APART = re.compile(f"([{UNSPACED}{HANGUL}][{MARKS}]*)")
_RUN = re.compile(
    f"[{UNSPACED}{HANGUL}][{MARKS}]*"
    rf"|[^\W_{UNSPACED}{HANGUL}](?:[^\W_{UNSPACED}{HANGUL}]|[{MARKS}])*"
)
_ASCII_RUN = re.compile("[A-Za-z0-9]+")
_ARTICLE = re.compile(rf"(?<![\w{MARKS}])(?:a|an|the)(?![\w{MARKS}])")
_ASCII_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_SIGNS = {ord(sign): None for sign in ASCII_SIGNS}


def words_of(text: str) -> list[str]:
    """Return the words between spaces; in Korean and scripts without spaces, each letter.

    >>> words_of("Mills are 很大 here, กิน")
    ['Mills', 'are', '很', '大', 'here,', 'กิ', 'น']
    """
    return (text if text.isascii() else _APART.sub(r" \1 ", text)).split()


def runs_of(text: str) -> list[str]:
    """Return the runs of letters and digits; in Korean and scripts without spaces, each letter.

    >>> runs_of("It's 很大: हिन्दी")
    ['It', 's', '很', '大', 'हिन्दी']
    """
    return (_ASCII_RUN if text.isascii() else _RUN).findall(text)


def answer_words(text: str, *, language: str = "") -> list[str]:
    """Return the words of an answer as SQuAD's evaluation compares them.

    Lower case, without punctuation and English articles (Rajpurkar et al. 2016, 6.1); as in MLQA
    (Lewis et al. 2020, 4.2) without punctuation of any script, and a Chinese character is a word;
    as in KorQuAD (Lim et al. 2019, 4.1) a Korean syllable is one. language: as in `folded`.

    >>> answer_words("The  U.S. Army!"), answer_words("在北京。")
    (['us', 'army'], ['在', '北', '京'])
    """
    text = folded(text, language=language)
    if text.isascii():
        return _ASCII_ARTICLE.sub(" ", text.translate(_WITHOUT_SIGNS)).split()
    return words_of(_ARTICLE.sub(" ", composed(unpunctuated(text))))


# Containment

_UNSPACED = re.compile(f"[{UNSPACED}]")
_HANGUL = re.compile(f"[{HANGUL}]")
_MARK = re.compile(f"[{MARKS}]")
_GAP = re.compile(f"(?<=[{UNSPACED}{MARKS}]) (?=[{UNSPACED}])")
_HANGUL_RUN = re.compile(f"[{HANGUL}]+")
_TYPOGRAPHY = {
    **dict.fromkeys(map(ord, "‘’‚‛ʼ′"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″«»"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–−־"), "-"),
}
"""Signs that keyboards have one key for."""
_AFTER_POINT, _AFTER_COMMA = re.compile(r"\d\."), re.compile(r"\d,")
_AFTER_SIGN = re.compile(r"(?:^|[\s(\[=:,;])[-−]$")  # of a number, not of COVID-19 or 1-72
_GROUP = re.compile(r"\d{3}(?!\d)")
_MORE_OF_NUMBER = re.compile(r"\.\d|,\d{3}(?!\d)")
_KOREAN_ENDING = re.compile(
    "들?"
    "(?:께서|에서|에게|한테|으로|로|서|써|까지|부터|조차|마저|밖에|처럼|같이|보다|마다|대로|만큼|하고"
    "|이랑|랑|이나|나|이?든지|이야말로|야말로|커녕|와|과|의|에|께|도|만|은|는|이|가|을|를|뿐|쯤|씩|요){0,4}"
    "(?:입니[다까]|이?에요|예요|이?야|이?죠|이지(?:요|만)?|이?다|이고|이며|이면|이니까?|이므로|이자"
    "|이?라(?:고|는|서|며|면|도|니)?|이?란|인(?:데|가|지)?요?|일까?요?|임|이?랍니다"
    "|(?:이었|였)(?:다|습니다|고|으며|으나|지만|던|어요))?"
)
"""Particles and forms of “to be” that Korean writes onto a noun."""
_PREFIX = re.compile(
    "[وف]?(?:[بك]?(?:ال)?|لل?)"  # Arabic: and, in, like, the, to
    "|ו?(?:כש|ש)?[בכלמ]?ה?"  # Hebrew: and, that, in, to, from, the
)
"""Words of one letter that Arabic and Hebrew write onto the next word."""


def holds(text: str, phrase: str, *, language: str = "") -> bool:
    """Return whether the text contains `phrase` as whole words. An empty one is always contained.

    Case, Unicode forms and spaces do not count. A boundary is needed only where the script has
    one: 12 is not in 3120, 3.12 or -12, 北京 is in 我住在北京市. Typographic quotes and hyphens
    equal plain ones. language: as in `folded`.

    >>> holds("It was  PARIS, in 1889.", "paris, in"), holds("수도는 서울입니다.", "서울")
    (True, True)
    """
    comparable_text, sought = (_comparable(each, language) for each in (text, phrase))
    if not sought:
        return True
    start = comparable_text.find(sought)
    while start >= 0:
        if is_whole(comparable_text, start, start + len(sought)):
            return True
        start = comparable_text.find(sought, start + 1)
    return False


def _comparable(text: str, language: str) -> str:
    text = folded(text, compatible=True, language=language).translate(_TYPOGRAPHY)
    return _GAP.sub("", spaced(text))


def places_of(text: str, phrase: str) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) spans of the phrase in the text, as whole words in any case."""
    pattern = re.compile(re.escape(phrase), re.IGNORECASE)
    match = pattern.search(text)
    while match and match[0]:
        is_found = is_whole(text, *match.span())
        if is_found:
            yield match.span()
        match = pattern.search(text, match.end() if is_found else match.start() + 1)


def is_whole(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]`, which is not empty, begins and ends at word boundaries.

    Korean suffixes, and the prefixed short words of Arabic and Hebrew, may be attached to it.
    """
    first_kind, next_kind = _kind(text[start]), _kind(text[end : end + 1])
    if next_kind == "mark":
        return False  # it would be torn off its letter; looked at first, as marks may be many
    previous_kind, last_kind = _kind_before(text, start), _kind_before(text, end)
    if previous_kind and first_kind == "mark":
        return False
    if _joins(previous_kind, first_kind) and not (end - start > 1 and _is_prefix(text, start)):
        return False
    if _is_in_number(text, start, end):
        return False
    if last_kind == next_kind == "hangul":
        ending = _HANGUL_RUN.match(text, end)
        return ending is not None and _KOREAN_ENDING.fullmatch(ending[0]) is not None
    return not _joins(next_kind, last_kind)


def _is_in_number(text: str, start: int, end: int) -> bool:
    """Return whether the span is only a part of a number such as 3.12, 1,912 or -12."""
    before = text[max(start - 2, 0) : start]
    is_group = _AFTER_COMMA.match(before) and _GROUP.match(text, start)
    is_rest = _AFTER_POINT.match(before) or _AFTER_SIGN.search(before) or is_group
    if text[start].isdigit() and is_rest:
        return True
    return text[end - 1].isdigit() and _MORE_OF_NUMBER.match(text, end) is not None


def _joins(outside_kind: str, inside_kind: str) -> bool:
    """Return whether a character next to a span may belong to the same word.

    outside_kind, inside_kind: kinds as in `_kind`. A sign at the span's end is separated
    from a letter only by a space.
    """
    if "unspaced" in (outside_kind, inside_kind) or not outside_kind:
        return False
    return outside_kind == inside_kind or (outside_kind == "word" and not inside_kind)


def _is_prefix(text: str, start: int) -> bool:
    begin = start
    while begin and start - begin <= 6 and _kind(text[begin - 1]):
        begin -= 1
    return _PREFIX.fullmatch(text, begin, start) is not None


def _kind_before(text: str, end: int) -> str:
    """Return the kind of the letter before `end`, skipping its marks; "" at the start."""
    while end > 1 and _kind(text[end - 1]) == "mark":
        end -= 1
    return _kind(text[end - 1]) if end else ""


def is_mark(letter: str) -> bool:
    """Return whether a character is a combining mark of the letter before it."""
    return _kind(letter) == "mark"


@lru_cache(maxsize=4096)
def _kind(letter: str) -> str:
    """Return the kind of a character: mark, unspaced, hangul, word or, for signs and spaces, ""."""
    if not letter or letter.isspace():
        return ""
    if _MARK.match(letter):
        return "mark"
    if _UNSPACED.match(letter):
        return "unspaced"
    if _HANGUL.match(letter):
        return "hangul"
    return "word" if letter.isalnum() or letter == "_" else ""


# Labels

_WHOLE = re.compile(r"(-?\d+)\.0+")


def label_text(value: Any) -> str | None:
    """Return a value in the form of a label; None if it cannot be one.

    >>> label_text(1.0), label_text(True), label_text(" good "), label_text([1])
    ('1', 'true', 'good', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return composed(str(value)).strip() if isinstance(value, str | int | float) else None


def whole_label(text: str) -> str:
    """Return a whole number without `.0`; other texts unchanged.

    >>> whole_label("1.0"), whole_label("1.5")
    ('1', '1.5')
    """
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def label_key(text: str) -> str:
    """Return a key that is equal for labels which differ only in NFKC, case, spaces and `.0`.

    >>> label_key(" Not  Sure ") == label_key("not sure")
    True
    """
    return whole_label(spaced(folded(text, compatible=True, points=True)))


def label_of(value: Any, labels: Sequence[str]) -> str | None:
    """Return the label that a value names; None if it names no label, or may name two.

    An equal label comes first, then the only one with the same `label_key`.

    >>> [label_of(value, ("US", "us", "1")) for value in ("us", "Us", " us ", 1.0, "1.0")]
    ['us', None, 'us', '1', '1']
    """
    if isinstance(value, str) and value in labels:
        return value
    text = label_text(value)
    if text is None:
        return None
    exact, alike = _index(tuple(labels))
    key = label_key(text)
    return exact.get(text) or (alike.get(key) if key else None)


@lru_cache(maxsize=256)
def _index(labels: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the labels by text, and by `label_key`; None marks a key of several labels."""
    exact = {composed(label).strip(): label for label in reversed(labels)}
    alike: dict[str, str | None] = {}
    for label in labels:
        key = label_key(label)
        alike[key] = None if key in alike else label
    return exact, alike


def spelled(names: Sequence[Any], labels: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names in their order but spelled as the labels; None if the sets differ.

    >>> spelled(["NEGATIVE", "Positive"], ("positive", "negative"))
    ('negative', 'positive')
    """
    texts = [label_of(name, labels) for name in names]
    if len(texts) != len(labels) or {*texts} != {*labels}:
        return None
    return tuple(label for label in texts if label is not None)


def alike_labels(labels: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each label that equals an earlier one: its index, and the earlier label."""
    label_by_key: dict[str, str] = {}
    for place, label in enumerate(labels):
        key = label_key(label)
        if key in label_by_key:
            yield place, label_by_key[key]
        label_by_key.setdefault(key, label)
