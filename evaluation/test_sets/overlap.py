"""Count which examples of a set models could have been trained on. Pure."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import orjson

from core.text.words import collapse_spaces, fold

SEED_SOURCE = "seed"
MIN_SEEN_SHARE = 0.01
"""The share of a set seen in training from which everybody is warned.

A smaller share hardly changes a score.
"""
DIGEST_BYTES = 16
END_PUNCTUATION = ".!? 。．｡！？｡؟।॥"
"""Characters that end a sentence, in several scripts."""
_SOURCE_PATTERN = re.compile(r"\b(?:(seed)s?|round[ _-]?(\d+))\b", re.IGNORECASE)


class Overlap(TypedDict):
    """The sources that a set was compared with, and how many of its examples occur in them.

    sources: dataset id by source name, 0 for seeds. rows: number of examples by the exact
    combination of sources, as names joined with spaces.
    """

    sources: dict[str, int]
    rows: dict[str, int]


def compute_digest(inputs: Mapping[str, Any], fields: Sequence[str]) -> bytes:
    """Return a digest of the fields.

    The digest ignores Unicode form, case, the amount of white space, and final punctuation.
    """
    # Both sides are folded the same way, so the lost information does not matter.
    words = []
    for name in fields:
        words.append(collapse_spaces(fold(str(inputs.get(name)))).rstrip(END_PUNCTUATION))
    return hashlib.sha256(orjson.dumps(words)).digest()[:DIGEST_BYTES]


def index_sources(
    sources: Mapping[str, Iterable[Mapping[str, Any]]], fields: Sequence[str]
) -> dict[bytes, frozenset[str]]:
    """Return, for the digest of each row, the names of the sources that contain the row."""
    names_by_digest: dict[bytes, frozenset[str]] = {}
    for name, rows in sources.items():
        source_name = frozenset([name])
        for row in rows:
            key = compute_digest(row, fields)
            names_by_digest[key] = names_by_digest.get(key, frozenset()) | source_name
    return names_by_digest


def count_overlaps(
    rows: Iterable[Mapping[str, Any]],
    names_by_digest: Mapping[bytes, frozenset[str]],
    fields: Sequence[str],
) -> dict[str, int]:
    """Return the number of rows by the exact combination of sources that contain them.

    Rows in no source are left out. names_by_digest: as returned by `index_sources`. fields: the
    fields that models read.
    """
    counts = Counter(names_by_digest.get(compute_digest(row, fields)) for row in rows)
    return {" ".join(sorted(names)): count for names, count in counts.items() if names}


def pack_digests(digests: Iterable[bytes]) -> bytes:
    """Join the digests of training rows into one byte string, as `count_packed_rows` reads it."""
    return b"".join(sorted(set(digests)))


def count_packed_rows(
    rows: Iterable[Mapping[str, Any]], packed_digests: bytes, fields: Sequence[str]
) -> int:
    """Return how many of the rows have a digest in `packed_digests`."""
    starts = range(0, len(packed_digests), DIGEST_BYTES)
    digests = {packed_digests[start : start + DIGEST_BYTES] for start in starts}
    return sum(compute_digest(row, fields) in digests for row in rows)


def needs_warning(seen_count: int | None, size: int) -> bool:
    """Return whether a model saw enough of a set in training that readers need a warning.

    seen_count: the number of examples; None if unknown. One example is never enough. Otherwise,
    anyone could submit a text as a training row, and learn from the warning whether it is in a
    secret set.
    """
    return seen_count is not None and seen_count >= max(2, MIN_SEEN_SHARE * size)


def parse_source_names(text: str) -> set[str]:
    """Return the sources on which a model was trained, according to its card.

    >>> sorted(parse_source_names("SNLI, the seeds, round-1 and Round 12"))
    ['round1', 'round12', 'seed']
    """
    sources = set()
    for seed, number in _SOURCE_PATTERN.findall(text):
        sources.add(SEED_SOURCE if seed else f"round{int(number)}")
    return sources
