"""How near texts are in meaning: cosines of the vectors of `evaluation.training.sentences`.

Products of signed bytes are whole numbers whose sums 32-bit floats hold exactly, so that every
processor finds the same.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

MIN_COSINE = 0.85
"""Examples of this cosine are put into one group."""
BLOCK_ROWS = 500
"""Rows that are compared at a time, so that memory stays small."""
Rows = NDArray[np.float32]


def find_closest_cosines(vectors: Mapping[int, bytes], ids: Iterable[int]) -> dict[int, float]:
    """Return each id's greatest cosine similarity to a smaller id that has a vector.

    Ids without a vector are left out. 0 if there is no smaller id, or none is similar.

    >>> find_closest_cosines({1: bytes([3, 4]), 2: bytes([3, 4])}, [1, 2, 3])
    {1: 0.0, 2: 1.0}
    """
    table_ids, rows, sizes = _build_table(vectors)
    place_of = {vector_id: place for place, vector_id in enumerate(table_ids)}
    cosine_of = {}
    for vector_id in ids:
        place = place_of.get(vector_id)
        if place is None:
            continue
        cosines = rows[:place] @ rows[place] / np.sqrt(sizes[:place] * sizes[place])
        cosine_of[vector_id] = max(0.0, float(cosines.max(initial=0)))
    return cosine_of


def find_similar_pairs(vectors: Mapping[int, bytes]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of ids with similar vectors, smaller id first."""
    ids, rows, sizes = _build_table(vectors)
    for start in range(0, len(ids), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        # A product of this size is a cosine of ALIKE; no division, so no empty vector divides by 0.
        bounds = MIN_COSINE * np.sqrt(sizes[block, None] * sizes[None, start:])
        first, second = np.nonzero(rows[block] @ rows[start:].T >= bounds)
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            if a < b:
                yield ids[start + a], ids[start + b]


def _build_table(vectors: Mapping[int, bytes]) -> tuple[list[int], Rows, NDArray[np.float64]]:
    """Return the ids in ascending order, their vectors as rows, and the rows' squared norms."""
    ids = sorted(vectors)
    if ids:
        joined = np.frombuffer(b"".join(vectors[vector_id] for vector_id in ids), np.int8)
        rows = joined.reshape(len(ids), -1).astype(np.float32)
    else:
        rows = np.zeros((0, 1), np.float32)
    return ids, rows, np.square(rows).sum(axis=1).astype(np.float64)
