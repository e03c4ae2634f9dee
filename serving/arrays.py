"""From the encodings of a batch to the arrays that a model takes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .codecs import Logits, Piece, Sight
from .tokens import Fill, Tokens

Array = NDArray[Any]
Row = TypeVar("Row")
NO_ROW = -1


def arrays_of(batch: Sequence[Piece], tokens: Tokens) -> dict[str, Array]:
    """Return the model's input arrays for a batch, by name."""
    sizes = [len(encoding) for encoding in batch]
    longest = max(sizes)
    real = np.arange(longest) < np.array(sizes)[:, None]
    if tokens.fill == "left":
        real = real[:, ::-1]
    arrays: dict[str, Array] = {
        "input_ids": np.full(real.shape, tokens.pad),
        "attention_mask": real.astype(np.int64),
        "token_type_ids": np.zeros(real.shape, np.int64),
    }
    for row, encoding in enumerate(batch):
        arrays["input_ids"][row, real[row]] = encoding.ids
        arrays["token_type_ids"][row, real[row]] = encoding.type_ids
    if tokens.is_packed:
        arrays |= packed_rows(sizes)
    pixels = [piece.pixels for piece in batch if isinstance(piece, Sight)]
    if pixels:
        arrays["pixel_values"] = np.stack(pixels)
    return {name: arrays[name] for name in tokens.inputs}


def run_in_parts(
    batch: Sequence[Piece], tokens: Tokens, run: Callable[[Sequence[Piece]], Iterable[Row]]
) -> list[Row]:
    """Return the logits of each encoding, in order.

    run: called with encodings that may share a batch.
    """
    logits: dict[int, Row] = {}
    for numbers in batch_parts([len(encoding) for encoding in batch], tokens.fill):
        rows = run([batch[number] for number in numbers])
        logits |= zip(numbers, rows, strict=True)
    return [logits[number] for number in range(len(batch))]


def batch_parts(sizes: Sequence[int], fill: Fill) -> list[list[int]]:
    """Return groups of rows that may share a batch: all, those of equal size, or single rows."""
    numbers = list(range(len(sizes)))
    if fill == "alone":
        return [[number] for number in numbers]
    if fill != "equal":
        return [numbers]
    by_size: dict[int, list[int]] = {}
    for number in numbers:
        by_size.setdefault(sizes[number], []).append(number)
    return list(by_size.values())


def packed_rows(sizes: Sequence[int]) -> dict[str, Array]:
    """Arrange the tokens of a batch on lines as wide as the longest row; short rows share a line.

    Returns `places` [tokens], indices into batch x longest; `spots` [tokens], indices into lines x
    longest; and `owners` [lines, longest], the row of each token on the lines, or NO_ROW. Rows are
    placed by first fit, the longest first, as in Krell et al. 2021 (arXiv 2107.02027), section 3.
    """
    width = max(sizes)
    room: list[int] = []  # left on each line
    starts = [0] * len(sizes)
    longest_first = sorted(range(len(sizes)), key=lambda row: -sizes[row])
    for row in longest_first:
        line = _first_fit(room, sizes[row])
        if line == len(room):
            room.append(width)
        starts[row] = (line + 1) * width - room[line]
        room[line] -= sizes[row]
    # The spots of each row are consecutive, and rows follow each other as in the batch.
    spots = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, sizes, strict=True)])
    rows = np.repeat(np.arange(len(sizes)), sizes)
    owners = np.full(len(room) * width, NO_ROW)
    owners[spots] = rows
    firsts = np.cumsum(sizes) - sizes
    places = np.arange(len(rows)) + (np.arange(len(sizes)) * width - firsts)[rows]
    return {"places": places, "spots": spots, "owners": owners.reshape(-1, width)}


def _first_fit(room: Sequence[int], size: int) -> int:
    """Return the index of the first line with room for a row, or that of a new line."""
    for line, left in enumerate(room):
        if left >= size:
            return line
    return len(room)


def cut_padding(logits: Logits, batch: Sequence[Piece], fill: Fill) -> list[Logits]:
    """Return one array per encoding, without the padding's columns."""
    if logits.ndim == 2:
        return list(logits)
    width = logits.shape[-1]
    starts = [width - len(encoding) if fill == "left" else 0 for encoding in batch]
    return [
        row[:, start : start + len(encoding)]
        for row, start, encoding in zip(logits, starts, batch, strict=True)
    ]
