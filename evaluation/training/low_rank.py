"""Store what training changed in an encoder, in about a percent of its bytes, and restore it.

Restoring takes integers and one multiplication and one addition for each weight, so that the merged
weights are the same bytes on every processor.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[Any]]
LARGEST_INT8 = 127  # of an int8, either sign


def compress_change(before: Weights, after: Weights, rank: int) -> dict[str, NDArray[Any]]:
    """Return the change from `before` to `after` in compressed form; `after` may have more tensors.

    Keys are `<part>/<tensor>`. The change of a matrix is left [rows, rank] times right [rank,
    columns] times step; the change of a vector is change times step. left, right and change are
    int8, step is float32. New tensors are stored whole, except square ones such as a pooler, which
    are stored as the change from the identity.
    """
    parts: dict[str, NDArray[Any]] = {}
    for name, weights in after.items():
        start = _find_start(before, name, weights.shape)
        if start is None:
            parts[f"whole/{name}"] = weights
            continue
        change = weights.astype(np.float64) - start
        # Frozen layers take no bytes.
        if not change.any():
            continue
        if change.ndim == 1:
            parts[f"change/{name}"], step = _quantize(change)
        else:
            # The best approximation of this rank; the root shares each size between both factors.
            left, sizes, right = np.linalg.svd(change, full_matrices=False)
            root = np.sqrt(sizes[:rank])
            parts[f"left/{name}"], step = _quantize(left[:, :rank] * root)
            parts[f"right/{name}"], other = _quantize(root[:, None] * right[:rank])
            step *= other
        parts[f"step/{name}"] = np.array([step], np.float32)
    return parts


def merge_change(before: Weights, parts: Weights) -> dict[str, NDArray[Any]]:
    """Return the weights that `compress_change` got as `after`, minus what compression lost."""
    merged_weights = dict(before)
    for key, values in parts.items():
        kind, _, name = key.partition("/")
        if kind == "whole":
            merged_weights[name] = values
            continue
        if kind == "left":
            # Sums of int8 products stay below 2**24, so float32 holds them exactly.
            change = values.astype(np.int32) @ parts[f"right/{name}"].astype(np.int32)
        elif kind == "change":
            change = values.astype(np.int32)
        else:
            continue
        start = _find_start(before, name, change.shape)
        assert start is not None  # otherwise it was stored whole
        merged_weights[name] = start + change.astype(np.float32) * parts[f"step/{name}"]
    return merged_weights


def _find_start(before: Weights, name: str, shape: tuple[int, ...]) -> NDArray[Any] | None:
    if name in before:
        return before[name]
    is_square = len(shape) > 1 and len(set(shape)) == 1
    return np.eye(shape[0], dtype=np.float32) if is_square else None


def _quantize(values: NDArray[np.float64]) -> tuple[NDArray[np.int8], float]:
    # The largest value becomes 127, so that the others keep as many digits as possible.
    step = float(np.abs(values).max()) / LARGEST_INT8
    return np.rint(values / step).astype(np.int8), step
