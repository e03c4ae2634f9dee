"""Whether a text is in a task's language, by its script and its commonest words. Pure.

It is careful: only a text that is clearly in another language counts as foreign.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from core.text.words import split_runs

SCRIPTS: Mapping[str, Sequence[str]] = {
    "ar": ("ARABIC",), "fa": ("ARABIC",), "ur": ("ARABIC",),
    "bg": ("CYRILLIC",), "ru": ("CYRILLIC",), "uk": ("CYRILLIC",),
    "bn": ("BENGALI",), "hi": ("DEVANAGARI",), "mr": ("DEVANAGARI",), "ne": ("DEVANAGARI",),
    "ta": ("TAMIL",), "te": ("TELUGU",), "th": ("THAI",),
    "el": ("GREEK",), "he": ("HEBREW",), "ka": ("GEORGIAN",), "hy": ("ARMENIAN",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"), "zh": ("CJK",), "ko": ("HANGUL", "CJK"),
    "am": ("ETHIOPIC",),
}  # fmt: skip
"""Scripts by language, of languages that don't use Latin letters."""
LATIN = ("LATIN", "FULLWIDTH")
_WORD_LINES = """\
en the and of to is was it that this with for not they you we are were
de der die das und ist nicht ein eine mit auf sie wir ich war den zu
fr le les des et est une pas que qui dans pour nous vous je avec du
es el los las y es una que con por para pero muy del fue lo se
it il gli che e è una non per con di della sono ma molto ho era
pt os uma que não para com do da mas muito foi em eu você é ao
nl het een en is niet van dat met voor maar zijn ik wij was op te
"""
COMMON_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words)
    for language, *words in (line.split() for line in _WORD_LINES.splitlines())
}
"""The commonest short words of languages that share the Latin script."""
MIN_FOREIGN_WORDS = 3
MIN_SCRIPT_SHARE = 0.5


def is_foreign(text: str, language: str) -> bool:
    """Return whether a text is clearly not in the language, given as a BCP 47 tag.

    >>> is_foreign("Das Essen war nicht gut und die Bedienung war langsam.", "en")
    True
    >>> is_foreign("The food at “Zum Adler” was not good.", "en")
    False
    """
    base = language.split("-")[0].lower()
    scripts_of_language = SCRIPTS.get(base) or (LATIN if base in COMMON_WORDS else ())
    # Nothing is known of other languages: several of them have two scripts.
    if not scripts_of_language:
        return False
    letters = [character for character in text if character.isalpha()]
    if not letters:
        return False
    # Unicode's names of letters begin with their script.
    scripts = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in letters)
    own_count = sum(scripts[script] for script in scripts_of_language)
    if own_count < MIN_SCRIPT_SHARE * len(letters):
        return True
    return base in COMMON_WORDS and _has_words_of_another(text, base)


def _has_words_of_another(text: str, base: str) -> bool:
    words = split_runs(text.lower())
    counts = {
        language: sum(word in common_words for word in words)
        for language, common_words in COMMON_WORDS.items()
    }
    # Languages share short words, so the other one must be far ahead.
    return max(counts.values()) >= max(MIN_FOREIGN_WORDS, 2 * counts[base] + 1)
