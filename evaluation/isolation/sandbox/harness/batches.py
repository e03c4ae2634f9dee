"""The batches of examples that go through the model together. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

BATCH_TOKENS = 1024  # padded; more gains nothing on a CPU
BATCH_PIECES = 64


class Example(NamedTuple):
    """An example: size counts tokens of its longest piece, pieces the windows it is read in.

    batch: the one that it is in, where it comes in a shard of a set.
    """

    size: int
    pieces: int
    texts: tuple[str, ...]  # of the model's fields, in order
    id: str
    batch: int = 0


def pieces_at_once(size: int) -> int:
    """Return how many encodings of this size one call of the model takes."""
    return max(1, min(BATCH_PIECES, BATCH_TOKENS // size))


def make_batches(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Yield full batches of similar sizes, the longest first.

    Padding changes the last digits of an answer, so the contents of a batch depend only on sizes
    and texts: the same examples make the same batches in any order and under any ids. Batches that
    the whole set would make stay the same in its shards.
    """
    batch: list[Example] = []
    pieces = 0
    # By size, then texts: the id comes last, and equal texts have equal answers.
    for example in sorted(examples, reverse=True):
        is_full = batch and pieces + example.pieces > pieces_at_once(batch[0].size)
        if is_full or (batch and example.batch != batch[0].batch):
            yield batch
            batch, pieces = [], 0
        batch.append(example)
        pieces += example.pieces
    if batch:
        yield batch


def planned(examples: Sequence[Example]) -> Iterator[bytes]:
    """Yield a line for each batch: the ids in it."""
    for batch in make_batches(examples):
        yield json.dumps({"batch": [example.id for example in batch]}).encode() + b"\n"
