"""Check a safetensors file by its header, without a model library.

The file begins with 8 bytes for the header's length, followed by the header in JSON. The tensors'
bytes follow one after another without gaps (github.com/huggingface/safetensors, README, "Format").
"""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from core.files.damage import describe_damage
from evaluation.contract import MIB

MAX_HEADER_BYTES = 16 * MIB
BITS_PER_VALUE = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32"), 4),
    **dict.fromkeys(("I64", "U64", "F64"), 8),
}


class _Tensor(NamedTuple):
    """The start offset, end offset and shape of a tensor."""

    start: int
    end: int
    shape: tuple[int, ...]


class BadTensors(ValueError):
    """Raised when a file is not a valid safetensors file. The message says where it is invalid."""


def read_tensor_names(path: Path) -> list[str]:
    """Return the names of the tensors in a file. Raises BadTensors."""
    return sorted(read_shapes(path))


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor in a file, by name. Raises BadTensors."""
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or not 2 <= length <= MAX_HEADER_BYTES:
            raise BadTensors(f"its first 8 bytes name a header of {length} bytes")
        header = _parse_header(file.read(length))
    data_size = path.stat().st_size - 8 - length
    end = 0
    for name, (tensor_start, tensor_end, _) in sorted(header.items(), key=lambda tensor: tensor[1]):
        if tensor_start != end:
            problem = "leaves a hole before it"
            if tensor_start < end:
                problem = "overlaps the one before it"
            raise BadTensors(f"the tensor {name[:100]!r} {problem}")
        end = tensor_end
    if end != data_size:
        raise BadTensors(f"its tensors take {end} bytes, but {data_size} follow the header")
    return {name: tensor.shape for name, tensor in header.items()}


def _parse_header(data: bytes) -> dict[str, "_Tensor"]:
    """Return the tensors of a header, by name. Raises BadTensors."""
    try:
        header = json.loads(data, object_pairs_hook=_refuse_repeated_names)
    except BadTensors:
        raise
    except (ValueError, RecursionError) as error:
        raise BadTensors(f"its header isn't JSON: {describe_damage(error)}") from None
    if not isinstance(header, dict):
        raise BadTensors("its header isn't an object")
    if not isinstance(header.pop("__metadata__", {}), dict):
        raise BadTensors("its `__metadata__` isn't an object")
    if not header:
        raise BadTensors("it contains no tensor")
    return {name: _read_tensor(name, header) for name, header in header.items()}


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """Return a JSON object of the header. Raises BadTensors if a name occurs twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise BadTensors("a name in its header is there twice")
    return values


def _read_tensor(name: str, header: Any) -> "_Tensor":
    """Parse a tensor's description in the header. Raises BadTensors."""
    if not isinstance(header, Mapping):
        header = {}
    dtype, shape, offsets = (header.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in BITS_PER_VALUE:
        raise BadTensors(
            f"the tensor {name[:100]!r} has an unknown dtype; use {', '.join(BITS_PER_VALUE)}"
        )
    if not _are_whole_numbers(shape) or not _are_whole_numbers(offsets) or len(offsets) != 2:
        raise BadTensors(f"the tensor {name[:100]!r} lacks a shape or its two offsets")
    if offsets[1] - offsets[0] != prod(shape) * BITS_PER_VALUE[dtype]:
        raise BadTensors(f"the tensor {name[:100]!r} has offsets that do not fit its shape")
    return _Tensor(offsets[0], offsets[1], tuple(shape))


def _are_whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 2**63 for value in values
    )
