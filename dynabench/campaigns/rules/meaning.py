"""Similarity in meaning: cosines of the vectors that `evaluation.training.sentences` computes.

The sums of products of signed bytes are whole numbers that 32-bit floats represent exactly, so the
results are the same on every processor.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

MIN_COSINE = 0.85
"""The minimum cosine of two examples in one group."""
BLOCK_ROWS = 500
"""The number of rows to compare at a time, which limits the memory."""
Rows = NDArray[np.float32]


def find_closest_cosines(
    vectors: Mapping[int, bytes], vector_ids: Iterable[int]
) -> dict[int, float]:
    """Return each id's greatest cosine similarity to a smaller id that has a vector.

    Ids without a vector are left out. 0 if there is no smaller id, or none is similar.

    >>> find_closest_cosines({1: bytes([3, 4]), 2: bytes([3, 4])}, [1, 2, 3])
    {1: 0.0, 2: 1.0}
    """
    table_ids, rows, sizes = _build_table(vectors)
    index_by_id = {vector_id: index for index, vector_id in enumerate(table_ids)}
    cosines_by_id = {}
    for vector_id in vector_ids:
        index = index_by_id.get(vector_id)
        if index is None:
            continue
        cosines = rows[:index] @ rows[index] / np.sqrt(sizes[:index] * sizes[index])
        cosines_by_id[vector_id] = max(0.0, float(cosines.max(initial=0)))
    return cosines_by_id


def find_similar_pairs(vectors: Mapping[int, bytes]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of ids with similar vectors, smaller id first."""
    vector_ids, rows, sizes = _build_table(vectors)
    for start in range(0, len(vector_ids), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        # A product of this size is a cosine of MIN_COSINE; no division, so no empty vector divides
        # by 0.
        bounds = MIN_COSINE * np.sqrt(sizes[block, None] * sizes[None, start:])
        first, second = np.nonzero(rows[block] @ rows[start:].T >= bounds)
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            if a < b:
                yield vector_ids[start + a], vector_ids[start + b]


def _build_table(vectors: Mapping[int, bytes]) -> tuple[list[int], Rows, NDArray[np.float64]]:
    """Return the ids in ascending order, their vectors as rows, and the rows' squared norms."""
    vector_ids = sorted(vectors)
    if vector_ids:
        all_values = np.frombuffer(
            b"".join(vectors[vector_id] for vector_id in vector_ids), np.int8
        )
        rows = all_values.reshape(len(vector_ids), -1).astype(np.float32)
    else:
        rows = np.zeros((0, 1), np.float32)
    return vector_ids, rows, np.square(rows).sum(axis=1).astype(np.float64)
