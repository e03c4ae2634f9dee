"""Which examples go through the model together. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

BATCH_TOKENS = 1024  # padded; more gains nothing on a CPU
BATCH_PIECES = 64


class Example(NamedTuple):
    """An example: size counts tokens of its longest piece, pieces the windows it is read in."""

    size: int
    pieces: int
    texts: tuple[str, ...]  # of the model's fields, in order
    id: str


def pieces_at_once(size: int) -> int:
    """How many encodings of this size one call of the model is given."""
    return max(1, min(BATCH_PIECES, BATCH_TOKENS // size))


def batches(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Full batches of similar sizes, the longest first.

    Padding changes the last digits of an answer, so what is in a batch depends on sizes and texts
    alone: the same examples make the same batches in any order and under any ids.
    """
    batch: list[Example] = []
    pieces = 0
    for example in sorted(examples, reverse=True):
        if batch and pieces + example.pieces > pieces_at_once(batch[0].size):
            yield batch
            batch, pieces = [], 0
        batch.append(example)
        pieces += example.pieces
    if batch:
        yield batch
