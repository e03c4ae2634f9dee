"""Which examples of a set were there to train on: pure rules."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import orjson

from core.text.words import folded, spaced

SEED = "seed"
LEAST_SEEN = 0.01
"""The part of a set, seen in training, from which everybody is told: less moves no score much."""
DIGEST_BYTES = 16
ENDS = ".!? 。．｡！？｡؟।॥"
"""What ends a sentence, in several scripts."""
_NAMED = re.compile(r"\b(?:(seed)s?|round[ _-]?(\d+))\b", re.IGNORECASE)


class Overlap(TypedDict):
    """What a set was compared with, and how many of its examples lie in exactly which of these.

    sources: the dataset's id by the source's name, 0 for seeds. rows: by names with spaces between.
    """

    sources: dict[str, int]
    rows: dict[str, int]


def digest(inputs: Mapping[str, Any], fields: Sequence[str]) -> bytes:
    """The same for the same texts, whatever their form, case, spaces and final punctuation."""
    values = (inputs.get(name) for name in fields)
    words = [spaced(folded(str(each))).rstrip(ENDS) for each in values]
    return hashlib.sha256(orjson.dumps(words)).digest()[:DIGEST_BYTES]


def known_rows(
    sources: Mapping[str, Iterable[Mapping[str, Any]]], fields: Sequence[str]
) -> dict[bytes, frozenset[str]]:
    """By digest the names of the sources that have such a row."""
    known: dict[bytes, frozenset[str]] = {}
    for name, rows in sources.items():
        of_source = frozenset([name])
        for row in rows:
            key = digest(row, fields)
            known[key] = known.get(key, frozenset()) | of_source
    return known


def counted(
    rows: Iterable[Mapping[str, Any]], known: Mapping[bytes, frozenset[str]], fields: Sequence[str]
) -> dict[str, int]:
    """How many of the rows lie in which sources; those in none are left out."""
    found = Counter(known.get(digest(row, fields)) for row in rows)
    return {" ".join(sorted(names)): count for names, count in found.items() if names}


def pack(digests: Iterable[bytes]) -> bytes:
    """The digests of training rows, one after another; see `count_packed`."""
    return b"".join(sorted(set(digests)))


def count_packed(rows: Iterable[Mapping[str, Any]], packed: bytes, fields: Sequence[str]) -> int:
    """How many of the rows are among the packed ones."""
    known = {packed[at : at + DIGEST_BYTES] for at in range(0, len(packed), DIGEST_BYTES)}
    return sum(digest(row, fields) in known for row in rows)


def is_much(seen: int | None, size: int) -> bool:
    """Whether a model was trained on enough examples of a set that readers of its score are told.

    seen: None where it is not known. A single example never suffices: whoever submits training rows
    could ask for each text whether it is in a set whose inputs are secret.
    """
    return seen is not None and seen >= max(2, LEAST_SEEN * size)


def named(text: str) -> set[str]:
    """The sources that somebody says a model was trained on.

    >>> sorted(named("SNLI, the seeds, round-1 and Round 12"))
    ['round1', 'round12', 'seed']
    """
    return {SEED if seed else f"round{int(number)}" for seed, number in _NAMED.findall(text)}
