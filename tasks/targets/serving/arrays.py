"""From the encodings of a batch to the arrays that a model takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .codecs import Logits, Piece, Sight
from .tokens import Tokens

Array = NDArray[Any]
NO_ROW = -1


def arrays_of(batch: Sequence[Piece], tokens: Tokens) -> dict[str, Array]:
    """The arrays that the model takes, by name."""
    sizes = [len(encoding) for encoding in batch]
    real = np.arange(max(sizes)) < np.array(sizes)[:, None]
    made: dict[str, Array] = {
        "input_ids": np.full(real.shape, tokens.pad),
        "attention_mask": real.astype(np.int64),
        "token_type_ids": np.zeros(real.shape, np.int64),
    }
    for row, encoding in enumerate(batch):
        made["input_ids"][row, : sizes[row]] = encoding.ids
        made["token_type_ids"][row, : sizes[row]] = encoding.type_ids
    if tokens.is_packed:
        made |= packed_rows(sizes)
    if sights := [piece for piece in batch if isinstance(piece, Sight)]:
        made["pixel_values"] = np.stack([sight.pixels for sight in sights])
    return {name: made[name] for name in tokens.inputs}


def packed_rows(sizes: Sequence[int]) -> dict[str, Array]:
    """Where the tokens of a batch stand when short rows share a line as wide as the longest row.

    `places` [tokens] among batch x longest, `spots` [tokens] among lines x longest, and `owners`
    [lines, longest], the row of the token that stands there or NO_ROW. Rows are laid by first fit,
    the longest first, as in Krell et al. 2021 (arXiv 2107.02027), section 3.
    """
    width = max(sizes)
    room: list[int] = []  # left on each line
    starts = [0] * len(sizes)
    for row in sorted(range(len(sizes)), key=lambda row: -sizes[row]):
        line = next((line for line, left in enumerate(room) if left >= sizes[row]), len(room))
        if line == len(room):
            room.append(width)
        starts[row] = (line + 1) * width - room[line]
        room[line] -= sizes[row]
    spots = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, sizes, strict=True)])
    rows = np.repeat(np.arange(len(sizes)), sizes)
    owners = np.full(len(room) * width, NO_ROW)
    owners[spots] = rows
    firsts = np.cumsum(sizes) - sizes
    places = np.arange(len(rows)) + (np.arange(len(sizes)) * width - firsts)[rows]
    return {"places": places, "spots": spots, "owners": owners.reshape(-1, width)}


def cut(logits: Logits, batch: Sequence[Piece]) -> list[Logits]:
    """One array an encoding, without the columns of the padding."""
    if logits.ndim == 2:
        return list(logits)
    return [row[:, : len(encoding)] for row, encoding in zip(logits, batch, strict=True)]
