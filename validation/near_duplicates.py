"""Texts that are nearly the same: MinHash over character 5-grams, the same in every process.

Broder 1997, “On the resemblance and containment of documents”; bands as in Leskovec, Rajaraman and
Ullman, “Mining of Massive Datasets”, 3.4. Keep `band_keys` in an indexed column, a row each; texts
that share a key are candidates, whose `jaccard` says how alike they are.
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GRAM = 5
PERMUTATIONS = 64
BANDS = 16
"""Four hashes a band: a pair of similarity 0.8 shares a key in 99.98 % of cases, 0.3 in 12 %."""


def normalise(text: str) -> str:
    """Case, punctuation, spacing, compatibility forms and invisible characters taken away."""
    kept = []
    for character in unicodedata.normalize("NFKC", text).casefold():
        kind = unicodedata.category(character)[0]
        if kind in "PZ" or character.isspace():
            kept.append(" ")
        elif kind != "C":
            kept.append(character)
    return " ".join("".join(kept).split())


def grams(text: str) -> set[str]:
    """The character 5-grams of the normalised text; a shorter text is one gram, none is none."""
    plain = normalise(text)
    return {plain[i : i + GRAM] for i in range(max(1, len(plain) - GRAM + 1))} - {""}


def jaccard(text: str, other: str) -> float:
    """Shared 5-grams ÷ all 5-grams of both (0-1); 0 where neither has any."""
    a, b = grams(text), grams(other)
    return len(a & b) / (len(a | b) or 1)


def signature(text: str) -> tuple[int, ...]:
    """The least hash of the text's 5-grams under each of 64 permutations; empty without grams."""
    import numpy as np

    hashes = [
        int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest())
        for gram in grams(text)
    ]
    if not hashes:
        return ()
    masks = np.array(_MASKS, dtype=np.uint64)[:, None]
    mixed = _mix(np.array(hashes, dtype=np.uint64) ^ masks)
    return tuple((mixed.min(axis=1) >> np.uint64(32)).tolist())


def band_keys(signature: Sequence[int]) -> list[int]:
    """Keys of 63 bits (they fit a BigIntegerField), one for each of 16 bands; none for none.

    The band is part of its key, so that one column holds them all.
    """
    rows = PERMUTATIONS // BANDS
    return [
        int.from_bytes(_digest(band, *signature[band * rows : (band + 1) * rows])) >> 1
        for band in range(BANDS if signature else 0)
    ]


def estimated_jaccard(signature: Sequence[int], other: Sequence[int]) -> float:
    """The share of equal least hashes, which estimates `jaccard`; standard error at most 0.0625."""
    equal = sum(a == b for a, b in zip(signature, other, strict=False))
    return equal / PERMUTATIONS


def _digest(*numbers: int) -> bytes:
    return hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()


_MASKS = [int.from_bytes(_digest(number)) for number in range(PERMUTATIONS)]


def _mix(numbers: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    """Scatter 64 bits: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    import numpy as np

    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
