"""Store what training changed in an encoder, in about a percent of its bytes, and restore it.

Restoring uses integers, and one multiplication and one addition for each weight. So the merged
weights have the same bytes on every processor.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[Any]]
MAX_INT8 = 127  # the largest absolute value of an int8


def compress_change(
    old_weights: Weights, new_weights: Weights, rank: int
) -> dict[str, NDArray[Any]]:
    """Return the change from old to new weights in compressed form.

    new_weights: may have more tensors. Keys are `<part>/<tensor>`. The change of a matrix is left
    [rows, rank] times right [rank, columns] times step; the change of a vector is change times
    step. left, right and change are int8, step is float32. New tensors are stored whole. Square
    ones, such as a pooler, are stored as the change from the identity instead.
    """
    compressed_weights: dict[str, NDArray[Any]] = {}
    for name, weights in new_weights.items():
        start = _find_start(old_weights, name, weights.shape)
        if start is None:
            compressed_weights[f"whole/{name}"] = weights
            continue
        change = weights.astype(np.float64) - start
        # Frozen layers take no bytes.
        if not change.any():
            continue
        if change.ndim == 1:
            compressed_weights[f"change/{name}"], step = _quantize(change)
        else:
            # The best approximation of this rank; the root splits each singular value.
            left_vectors, sizes, right_vectors = np.linalg.svd(change, full_matrices=False)
            root = np.sqrt(sizes[:rank])
            compressed_weights[f"left/{name}"], step = _quantize(left_vectors[:, :rank] * root)
            compressed_weights[f"right/{name}"], right_step = _quantize(
                root[:, None] * right_vectors[:rank]
            )
            step *= right_step
        compressed_weights[f"step/{name}"] = np.array([step], np.float32)
    return compressed_weights


def merge_change(old_weights: Weights, compressed_weights: Weights) -> dict[str, NDArray[Any]]:
    """Return the weights after a change: those passed to `compress_change`, but for its losses."""
    merged_weights = dict(old_weights)
    for key, values in compressed_weights.items():
        kind, _, name = key.partition("/")
        if kind == "whole":
            merged_weights[name] = values
            continue
        if kind == "left":
            # Sums of int8 products stay below 2**24, so float32 holds them exactly.
            change = values.astype(np.int32) @ compressed_weights[f"right/{name}"].astype(np.int32)
        elif kind == "change":
            change = values.astype(np.int32)
        else:
            continue
        start = _find_start(old_weights, name, change.shape)
        assert start is not None  # otherwise it was stored whole
        merged_weights[name] = (
            start + change.astype(np.float32) * compressed_weights[f"step/{name}"]
        )
    return merged_weights


def _find_start(old_weights: Weights, name: str, shape: tuple[int, ...]) -> NDArray[Any] | None:
    if name in old_weights:
        return old_weights[name]
    # A new square layer, such as a pooler, starts as the identity (`fine_tune._start_head`).
    is_square = len(shape) > 1 and len(set(shape)) == 1
    return np.eye(shape[0], dtype=np.float32) if is_square else None


def _quantize(values: NDArray[np.float64]) -> tuple[NDArray[np.int8], float]:
    # The largest value becomes 127, so that the others keep as many digits as possible.
    step = float(np.abs(values).max()) / MAX_INT8
    return np.rint(values / step).astype(np.int8), step
