"""Group the examples that go through the model together into batches. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

BATCH_TOKENS = 1024  # including padding; more does not help on a CPU
BATCH_PIECES = 64


class Example(NamedTuple):
    """An example. size: tokens of its longest piece. pieces: the number of windows it is read in.

    batch: the number of its batch if it is part of a shard.
    """

    size: int
    pieces: int
    texts: tuple[str, ...]  # texts of the model's fields, in order
    id: str
    batch: int = 0


def count_fitting_pieces(size: int) -> int:
    """Return how many encodings of `size` tokens fit in one call of the model; at least 1."""
    return max(1, min(BATCH_PIECES, BATCH_TOKENS // size))


def make_batches(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Yield full batches of similar sizes, the longest first.

    Padding changes the last digits of an answer, so the contents of a batch depend only on sizes
    and texts: the same examples make the same batches, whatever their order and ids. Shards keep
    the batches that the whole set would make.
    """
    batch: list[Example] = []
    pieces = 0
    # By size, then texts, so that equal texts get equal answers; ids come last.
    for example in sorted(examples, reverse=True):
        is_full = batch and pieces + example.pieces > count_fitting_pieces(batch[0].size)
        if is_full or (batch and example.batch != batch[0].batch):
            yield batch
            batch, pieces = [], 0
        batch.append(example)
        pieces += example.pieces
    if batch:
        yield batch


def iterate_plan_lines(examples: Sequence[Example]) -> Iterator[bytes]:
    """Yield one line per batch with the ids of its examples."""
    for batch in make_batches(examples):
        yield json.dumps({"batch": [example.id for example in batch]}).encode() + b"\n"
