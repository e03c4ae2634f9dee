"""Divide a set into shards whose answers together equal those to the whole set. Pure."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from evaluation.contract import Ending, Outcome
from evaluation.isolation.sandbox.limits import Limits

GOLDEN_FRACTION = 0.618033988749895
Shard = Sequence[Sequence[int]]
"""A shard of a set: batches of line numbers."""


def cut_batches(batches: Sequence[Sequence[int]], shard_size: int) -> Iterator[list[Sequence[int]]]:
    """Yield shards of whole batches, each with at least `shard_size` examples.

    Batches are sorted by length. They are taken in the order of the fractional parts of multiples
    of the golden ratio. This spreads batches that follow each other evenly over the lengths, so
    that each shard resembles the whole set. A shard ends with the batch that reaches its size. The
    last shard may be smaller.
    """
    shard: list[Sequence[int]] = []
    size = 0
    for index in sorted(range(len(batches)), key=lambda index: index * GOLDEN_FRACTION % 1):
        shard.append(batches[index])
        size += len(batches[index])
        if size >= shard_size:
            yield shard
            shard, size = [], 0
    if shard:
        yield shard


def cut_lines(size: int, shard_size: int) -> list[Sequence[int]]:
    """Return ranges of line numbers that divide `size` lines into shards.

    Each range has at most `shard_size` lines. Used for images, which choose their own batches.
    """
    return [range(start, min(size, start + shard_size)) for start in range(0, size, shard_size)]


class LineFile:
    """A file of JSON examples with an `id`, one per line. Only line positions stay in memory."""

    def __init__(self, path: Path) -> None:
        # Eight bytes per line: a set may have a million, and its texts stay on disk.
        self._path, self._starts = path, array("q", [0])
        with path.open("rb") as lines:
            for line in lines:
                self._starts.append(self._starts[-1] + len(line))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def build_batches(self, plan_lines: Iterable[bytes]) -> list[Sequence[int]]:
        """Return the batches that the harness plans, then a batch of the lines that it cannot read.

        Each batch is a list of line numbers.
        """
        line_by_id = {
            orjson.loads(self._read_line(number))["id"]: number for number in range(len(self))
        }
        batches: list[Sequence[int]] = []
        for line in plan_lines:
            ids = orjson.loads(line)["batch"]
            batches.append([line_by_id.pop(example_id) for example_id in ids])
        if line_by_id:
            batches.append(list(line_by_id.values()))
        return batches

    def build_shard_text(self, shard: Shard) -> bytes:
        """Return the lines of a shard in file order, each with the number of its batch."""
        batch_by_line = {}
        for batch, lines in enumerate(shard, 1):
            for line in lines:
                batch_by_line[line] = batch
        text = bytearray()
        for line in sorted(batch_by_line):
            example = orjson.loads(self._read_line(line))
            text += orjson.dumps({**example, "batch": batch_by_line[line]}) + b"\n"
        return bytes(text)

    def read_lines(self, lines: Sequence[int]) -> bytes:
        """Return the lines with these numbers, unchanged."""
        return b"".join(map(self._read_line, lines))

    def _read_line(self, number: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._starts[number])
            return file.read(self._starts[number + 1] - self._starts[number])


@dataclass
class MergedEnding:
    """The merged endings of a set's shards.

    measured_shard: the shard whose speed and memory count.
    """

    limits: Limits
    measured_shard: int = 0

    def __post_init__(self) -> None:
        self._endings: dict[int, Ending] = {}
        self._bytes = self._lines = 0

    def add(self, shard: int, ending: Ending, answers: Sequence[bytes]) -> None:
        """Add a shard that succeeded.

        Raises LimitExceeded if all shards together exceed a limit.
        """
        self._endings[shard] = ending
        self._lines += len(answers)
        self._bytes += sum(len(line) + 1 for line in answers)
        self.limits.check_output(self._bytes, self._lines)
        seconds = sum(shard_ending.usage.seconds for shard_ending in self._endings.values())
        self.limits.check_usage(seconds=seconds, memory_bytes=0, answers=self._lines)

    def merge_endings(self) -> Ending:
        """Return the combined ending of all shards.

        Pace, memory and latency are those of the measured shard; the other figures are sums.
        """
        endings = [self._endings[shard] for shard in sorted(self._endings)]
        warnings: dict[str, None] = {}  # without repetitions, in order
        for ending in endings:
            warnings.update(dict.fromkeys(ending.warnings))
        log = "\n".join(filter(None, (ending.log for ending in endings)))[-self.limits.log_bytes :]
        cpu_seconds: float | None = 0.0
        for ending in endings:
            if ending.usage.cpu_seconds is None or cpu_seconds is None:
                cpu_seconds = None  # a sum without one value would be wrong
            else:
                cpu_seconds += ending.usage.cpu_seconds
        usage = replace(
            self._endings[self.measured_shard].usage,
            seconds=sum(ending.usage.seconds for ending in endings),
            cpu_seconds=cpu_seconds,
            answers=sum(ending.usage.answers for ending in endings),
        )
        return Ending(Outcome.OK, usage, log=log, warnings=tuple(warnings))
