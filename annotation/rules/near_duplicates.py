"""Texts that are nearly the same: MinHash over character 5-grams, the same in every process.

Broder 1997, “On the resemblance and containment of documents”, with one permutation (Li, Owen and
Zhang 2012) and optimal densification (Shrivastava 2017); bands as in Leskovec, Rajaraman and
Ullman, “Mining of Massive Datasets”, 3.4. Texts that share a key are candidates, which
`compute_jaccard` then compares.
"""

import functools
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from typing import Any

from core.text.words import UNSPACED_LETTERS, collapse_spaces, fold, strip_punctuation
from tasks.config.schema import TaskConfig

GRAM_CHARS, UNSPACED_GRAM_CHARS = 5, 2
# A pair at MIN_LIKENESS shares one of 8 bands of 3 rows with 1 - (1 - 0.8³)⁸ = 99.7 %.
BAND_COUNT = 8
ROWS_PER_BAND = 3
BIN_COUNT = BAND_COUNT * ROWS_PER_BAND
MIN_LIKENESS = 0.8
"""Texts of this similarity count as nearly the same; 99.7 % of such pairs share a key."""
MIN_CHARS = 24
"""The minimum length in characters of a normalised text that is compared.

Two people may write a short text, such as “Who is he?”, by chance. Each character of scripts
without spaces, such as Chinese, counts as three.
"""
PUNCTUATION = "!\"#%&'()*,-./:;?@[\\]_{}"
"""ASCII signs that are ignored; others, such as + and <, carry meaning."""
_UNSPACED_PATTERN = re.compile(f"[{UNSPACED_LETTERS}]")


def get_written_text(config: TaskConfig, inputs: Mapping[str, Any]) -> str:
    """Return the texts that the author wrote, joined by line breaks."""
    words = (c.kind.extract_authored_text(inputs.get(c.name)) for c in config.input)
    return "\n".join(filter(None, words))


def list_files(config: TaskConfig, inputs: Mapping[str, Any]) -> list[str]:
    """Return the digests of the author's pictures and recordings, in the form's order."""
    values = (inputs.get(c.name) for c in config.input if c.is_media)
    return [value["digest"] for value in values if isinstance(value, Mapping)]


def get_compared_text(config: TaskConfig, inputs: Mapping[str, Any]) -> str:
    """Return the text that is compared to find near duplicates.

    This is the author's own text. If it is too short, the digests of the files are added. Examples
    are near duplicates if these texts are nearly equal and their files are equal.
    """
    text = get_written_text(config, inputs)
    return text if is_comparable(text) else "\n".join([text, *list_files(config, inputs)])


def is_comparable(text: str) -> bool:
    """Return whether the text is long enough to be compared."""
    return _count_weighted_chars(normalise_text(text)) >= MIN_CHARS


def normalise_text(text: str) -> str:
    """Return the text in lower case, without punctuation, extra spaces and invisible characters.

    Compatibility forms, such as full-width letters, are replaced by their plain forms.
    """
    # Category C is invisible, and would hide a copy.
    plain = strip_punctuation(fold(text, compatible=True), replacement=" ", signs=PUNCTUATION)
    return collapse_spaces(
        "".join(c for c in plain if c.isspace() or unicodedata.category(c)[0] != "C")
    )


def _count_weighted_chars(plain_text: str) -> int:
    return len(plain_text) + 2 * len(_UNSPACED_PATTERN.findall(plain_text))


def split_grams(text: str) -> set[str]:
    """Return the normalised text's character 5-grams, or 2-grams in scripts without spaces.

    A shorter text is a single gram; an empty text has none.
    """
    plain = normalise_text(text)
    size = (
        UNSPACED_GRAM_CHARS
        if 2 * len(_UNSPACED_PATTERN.findall(plain)) > len(plain)
        else GRAM_CHARS
    )
    return {plain[i : i + size] for i in range(max(1, len(plain) - size + 1))} - {""}


def compute_overlap(a: Set[str], b: Set[str]) -> float:
    """Return the Jaccard similarity (0-1) of two sets; 0 if both are empty."""
    return len(a & b) / (len(a | b) or 1)


def compute_jaccard(text: str, other_text: str) -> float:
    """Return the Jaccard similarity (0-1) of the grams of two texts."""
    return compute_overlap(split_grams(text), split_grams(other_text))


def are_alike(text: str, other_text: str) -> bool:
    """Return whether two texts are nearly equal; False if one is too short to compare."""
    return (
        is_comparable(text)
        and is_comparable(other_text)
        and compute_jaccard(text, other_text) >= MIN_LIKENESS
    )


@functools.lru_cache(maxsize=64)  # a submit compares its text and, once answered, stores it
def compute_band_keys(text: str) -> tuple[int, ...]:
    """Return eight locality-sensitive hash keys of 63 bits, which fit a BigIntegerField.

    Empty for a text that is too short to compare. Each key includes its band's index, so
    that all keys fit in one column.
    """
    if not is_comparable(text):
        return ()
    signature = compute_signature(text)
    return tuple(
        # Without the lowest bit, because a BigIntegerField has a sign.
        _hash_to_number(
            repr((band, *signature[band * ROWS_PER_BAND : (band + 1) * ROWS_PER_BAND])).encode()
        )
        >> 1
        for band in range(BAND_COUNT)
    )


def compute_signature(text: str) -> Sequence[int]:
    """Return the text's MinHash signature: the smallest hash of its grams in each of 24 bins.

    An empty bin takes its value from another bin.

    Raises
    ------
    ValueError
        The text has no grams.

    Notes
    -----
    The probability that two texts have the same value in a bin equals their Jaccard similarity.
    """
    smallest_hashes: dict[int, int] = {}
    for gram in split_grams(text):
        # One hash gives both the bin and the value in it.
        value, bin_index = divmod(_hash_to_number(gram.encode()), BIN_COUNT)
        smallest_hashes[bin_index] = min(value, smallest_hashes.get(bin_index, value))
    if not smallest_hashes:
        raise ValueError("A text without grams has no signature.")
    # The walks are the same for all texts, so alike texts borrow from the same bin.
    return [
        smallest_hashes[next(lender for lender in walk if lender in smallest_hashes)]
        for walk in _WALKS
    ]


def _hash_to_number(data: bytes) -> int:
    # Not `hash`, which differs from process to process, while the keys are stored.
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


# For each bin: itself, then all others in a fixed pseudorandom order.
_WALKS = [
    sorted(
        range(BIN_COUNT),
        key=lambda lender: (lender != bin_index, _hash_to_number(b"%d %d" % (bin_index, lender))),
    )
    for bin_index in range(BIN_COUNT)
]
