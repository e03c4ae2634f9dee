"""What a file would bring into an evaluation set, before anything is stored."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.contract import SetRow
from evaluation.sets.parsing import SetFile, WrongLines
from tasks.line_files import LineError

SHOWN = 5
VALUES = 20
"""Answers, and values of a slice, that are counted one by one."""


@dataclass(frozen=True)
class Preview:
    """What was found; of answers and slices the most frequent values."""

    size: int
    rows: Sequence[SetRow]
    answers: Sequence[tuple[str, int]]
    slices: Mapping[str, Sequence[tuple[str, int]]]
    left_out: Mapping[str, int]
    errors: Sequence[LineError]


def preview_of(file: SetFile) -> Preview:
    """Read a file once and keep little of it. Raises FileError for one that cannot be read."""
    rows: list[SetRow] = []
    answers: Counter[str] = Counter()
    slices: dict[str, Counter[str]] = defaultdict(Counter)
    size = 0
    try:
        for row in file:
            size += 1
            rows += [row] if size <= SHOWN else []
            answers[_words(row.gold[0])] += 1
            for name, values in row.slices.items():
                slices[name].update(values)
    except WrongLines:
        pass  # they are in `file.errors`
    most = {name: count.most_common(VALUES) for name, count in slices.items()}
    return Preview(size, rows, answers.most_common(VALUES), most, file.left_out, file.errors)


def _words(answer: Any) -> str:
    text = ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer)
    return text[:100]
