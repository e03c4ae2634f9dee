"""Count which examples of a set models could have been trained on. Pure."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import orjson

from core.text.words import folded, spaced

SEED = "seed"
LEAST_SEEN = 0.01
"""The share of a set, seen in training, that warns everybody: less moves no score much."""
DIGEST_BYTES = 16
ENDS = ".!? 。．｡！？｡؟।॥"
"""What ends a sentence, in several scripts."""
_NAMED = re.compile(r"\b(?:(seed)s?|round[ _-]?(\d+))\b", re.IGNORECASE)


class Overlap(TypedDict):
    """What a set was compared with, and how many of its examples are in exactly which of these.

    sources: the dataset's id by the source's name, 0 for seeds. rows: by names with spaces between.
    """

    sources: dict[str, int]
    rows: dict[str, int]


def digest(inputs: Mapping[str, Any], fields: Sequence[str]) -> bytes:
    """Return a digest that ignores Unicode form, case, spaces and final punctuation."""
    # Both sides are folded alike, so it does not matter how much is lost.
    words = []
    for name in fields:
        words.append(spaced(folded(str(inputs.get(name)))).rstrip(ENDS))
    return hashlib.sha256(orjson.dumps(words)).digest()[:DIGEST_BYTES]


def known_rows(
    sources: Mapping[str, Iterable[Mapping[str, Any]]], fields: Sequence[str]
) -> dict[bytes, frozenset[str]]:
    """Return, by digest, the names of the sources that contain such a row."""
    names_by_digest: dict[bytes, frozenset[str]] = {}
    for name, rows in sources.items():
        of_source = frozenset([name])
        for row in rows:
            key = digest(row, fields)
            names_by_digest[key] = names_by_digest.get(key, frozenset()) | of_source
    return names_by_digest


def count_overlaps(
    rows: Iterable[Mapping[str, Any]],
    names_by_digest: Mapping[bytes, frozenset[str]],
    fields: Sequence[str],
) -> dict[str, int]:
    """Return how many rows are in exactly which sources; rows in none are left out.

    names_by_digest: of `known_rows`. fields: what models read.
    """
    counts = Counter(names_by_digest.get(digest(row, fields)) for row in rows)
    return {" ".join(sorted(names)): count for names, count in counts.items() if names}


def pack(digests: Iterable[bytes]) -> bytes:
    """Return the digests of training rows joined into one byte string; see `count_packed`."""
    return b"".join(sorted(set(digests)))


def count_packed(rows: Iterable[Mapping[str, Any]], packed: bytes, fields: Sequence[str]) -> int:
    """Return how many of the rows are among the packed ones."""
    starts = range(0, len(packed), DIGEST_BYTES)
    digests = {packed[start : start + DIGEST_BYTES] for start in starts}
    return sum(digest(row, fields) in digests for row in rows)


def is_much(seen: int | None, size: int) -> bool:
    """Return whether a model saw so much of a set in training that readers of its score are warned.

    seen: how many examples; None if unknown. A single example never suffices: whoever submits
    training rows could ask for each text whether it is in a set whose inputs are secret.
    """
    return seen is not None and seen >= max(2, LEAST_SEEN * size)


def named(text: str) -> set[str]:
    """Return the sources that a model's card says it was trained on.

    >>> sorted(named("SNLI, the seeds, round-1 and Round 12"))
    ['round1', 'round12', 'seed']
    """
    sources = set()
    for seed, number in _NAMED.findall(text):
        sources.add(SEED if seed else f"round{int(number)}")
    return sources
