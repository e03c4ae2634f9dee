"""How near texts are in meaning: cosines of the vectors of `evaluation.training.sentences`.

Products of signed bytes are whole numbers whose sums 32-bit floats hold exactly, so that every
processor finds the same.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

ALIKE = 0.85
"""Examples of this cosine are put into one group."""
BLOCK = 500
Rows = NDArray[np.float32]


def closest(vectors: Mapping[int, bytes], wanted: Iterable[int]) -> dict[int, float]:
    """Of each wanted id that has a vector, its greatest cosine with a lower id; 0 if there is none.

    >>> closest({1: bytes([3, 4]), 2: bytes([3, 4])}, [1, 2, 3])
    {1: 0.0, 2: 1.0}
    """
    ids, rows, sizes = _table(vectors)
    place = {one: at for at, one in enumerate(ids)}
    found = {}
    for one in wanted:
        if (at := place.get(one)) is not None:
            cosines = rows[:at] @ rows[at] / np.sqrt(sizes[:at] * sizes[at])
            found[one] = max(0.0, float(cosines.max(initial=0)))
    return found


def pairs(vectors: Mapping[int, bytes]) -> Iterator[tuple[int, int]]:
    """The ids that are alike, the lower one first."""
    ids, rows, sizes = _table(vectors)
    for start in range(0, len(ids), BLOCK):
        some = slice(start, start + BLOCK)
        bounds = ALIKE * np.sqrt(sizes[some, None] * sizes[None, start:])
        first, second = np.nonzero(rows[some] @ rows[start:].T >= bounds)
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            if a < b:
                yield ids[start + a], ids[start + b]


def _table(vectors: Mapping[int, bytes]) -> tuple[list[int], Rows, NDArray[np.float64]]:
    """The ids in their order, a row each, and the rows' squared lengths."""
    ids = sorted(vectors)
    joined = np.frombuffer(b"".join(vectors[one] for one in ids), np.int8)
    rows = joined.reshape(len(ids), -1).astype(np.float32) if ids else np.zeros((0, 1), np.float32)
    return ids, rows, np.square(rows).sum(axis=1).astype(np.float64)
