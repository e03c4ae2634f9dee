"""Recompute scores from raw answers: what `dynabench verify` runs on another machine.

    python -m evaluation.scoring.recompute [--intervals] task.yaml labels.jsonl answers.jsonl

Prints a JSON line with the digest of the set, and then one for each model, in the order of the
answers. Needs no database and no Django.
"""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import orjson

from evaluation.contract import SetRow
from evaluation.scoring.bootstrap import (
    EXAMPLES_PER_CHECK,
    compute_number,
    flush_large_tallies,
    make_tally,
)
from evaluation.scoring.metrics import Metric, MetricUnavailable, make_metric
from evaluation.scoring.metrics.base import Mean
from evaluation.set_lines import iterate_digested_lines
from evaluation.task_shape import get_labels
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig

MAX_KEPT_BYTES = 2**25
"""The maximum size of the lines whose statistics are kept, so that free texts fill no memory."""
ENTRY_BYTES = 200
"""About what an entry takes besides its line."""
Statistics = tuple[Hashable, ...]


class ModelScores(NamedTuple):
    """A model's scores on a set: by metric its value and the ends of its interval, as shares.

    An end is None without an interval, or where it was not recomputed. `error` says why there are
    no scores.
    """

    model: str
    scores: dict[str, tuple[float, float | None, float | None]]
    error: str = ""


def read_set_rows(lines: Iterable[bytes]) -> list[SetRow]:
    """Return the examples of a set from lines `{"id", "inputs", "gold", "slices"}`."""
    rows = []
    for line in map(orjson.loads, lines):
        gold, criteria = tuple(line["gold"]), tuple(line.get("criteria", ()))
        rows.append(SetRow(line["id"], line["inputs"], gold, line["slices"], criteria))
    return rows


def compute_set_digest(rows: Iterable[SetRow]) -> str:
    """Return the SHA-256 that a board shows for a set: of the lines of both its stored files."""
    digest = hashlib.sha256()
    for line in iterate_digested_lines(rows):
        digest.update(line)
    return digest.hexdigest()


class SetScorer:
    """Scores the answers of many models to one set.

    Most models give one of few answers to an example. So what an answer contributes to each metric
    is computed once, and looked up by the bytes of its line for all later models.
    """

    def __init__(self, config: TaskConfig, rows: Sequence[SetRow]) -> None:
        self._rows = rows
        self._metrics = _make_metrics(config)
        # By example: the statistics of each line that was met.
        self._known_lines: list[dict[bytes, Statistics]] = [{} for _ in rows]
        self._free_bytes = MAX_KEPT_BYTES

    def score(
        self, lines: Iterable[bytes], seed: int, *, with_intervals: bool
    ) -> dict[str, tuple[float, float | None, float | None]]:
        """Return the scores of one model by metric, as in `ModelScores`.

        lines: its answers `{"id", "answer"}` in the order of the rows. seed: that of its run.
        Raises ValueError if they are not answers to the rows of the set.
        """
        draws = None if with_intervals else 1
        tallies = [make_tally(metric, "", seed, draws) for metric in self._metrics]
        examples = zip(self._rows, self._known_lines, lines, strict=True)
        # Part by part, as the site counts, so that the tallies never have too many statistics.
        while part := list(islice(examples, EXAMPLES_PER_CHECK)):
            # Equal contributions are counted together, because labels give only a few of them.
            counts = Counter(self._find_statistics(*example) for example in part)
            for statistics, count in counts.items():
                for tally, statistic in zip(tallies, statistics, strict=True):
                    tally.counts[statistic] += count
            flush_large_tallies(tallies)
        scores = {}
        for metric, tally in zip(self._metrics, tallies, strict=True):
            number = compute_number(metric, tally)
            if number.value is None:
                continue
            ends: tuple[float | None, float | None] = (None, None)
            if with_intervals or isinstance(metric, Mean):
                ends = number.low, number.high
            scores[metric.name] = (number.value, *ends)
        return scores

    def _find_statistics(
        self, row: SetRow, known_lines: dict[bytes, Statistics], line: bytes
    ) -> Statistics:
        """Return what a line contributes to each metric. Raises ValueError for another example."""
        statistics = known_lines.get(line)
        if statistics is None:
            answer = orjson.loads(line)
            if answer["id"] != row.uid:
                raise ValueError(answer["id"])
            value = answer["answer"]
            statistics = tuple(metric.compute_statistic(value, row) for metric in self._metrics)
            # Free texts seldom repeat, so only some of them are kept.
            self._free_bytes -= len(line) + ENTRY_BYTES
            if self._free_bytes > 0:
                known_lines[line] = statistics
        return statistics


def _make_metrics(config: TaskConfig) -> list[Metric]:
    """Return the task's metrics that this machine can compute: spBLEU needs a model, for one."""
    labels, metrics = get_labels(config), []
    for name in dict.fromkeys(config.metrics.computed_names):
        with suppress(MetricUnavailable):
            metrics.append(make_metric(name, labels, language=config.language))
    return metrics


def recompute_scores(
    config: TaskConfig,
    rows: Sequence[SetRow],
    lines: Iterable[bytes],
    *,
    with_intervals: bool = False,
) -> Iterator[ModelScores]:
    """Yield the scores of each model.

    lines: for each model `{"model", "seed", "answers"}` and then as many lines `{"id", "answer"}`,
    in the order of the rows. with_intervals: whether to resample the intervals that only resampling
    gives. They take many times as long as all values. Those of means are always computed.
    """
    scorer, remaining_lines = SetScorer(config, rows), iter(lines)
    for header in map(orjson.loads, remaining_lines):
        answer_lines = islice(remaining_lines, header["answers"])
        try:
            scores = scorer.score(answer_lines, header["seed"], with_intervals=with_intervals)
        except ValueError:
            # Another version of the set, an added or missing answer, or a line that is no answer.
            yield ModelScores(header["model"], {}, "the answers are not those of the set")
            # The next line must be the header of the next model.
            for _line in answer_lines:
                pass
        else:
            yield ModelScores(header["model"], scores)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the three files, and print the scores of each model as a JSON line."""
    parser = argparse.ArgumentParser(description="Recompute scores from raw answers.")
    for name in ("config", "labels", "answers"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--intervals", action="store_true", help="resample intervals, too")
    args = parser.parse_args(arguments)
    config = load_config(args.config.read_text(encoding="utf-8"))
    with args.labels.open("rb") as lines:
        rows = read_set_rows(lines)
    sys.stdout.buffer.write(orjson.dumps({"sha256": compute_set_digest(rows)}) + b"\n")
    with args.answers.open("rb") as lines:
        for found in recompute_scores(config, rows, lines, with_intervals=args.intervals):
            sys.stdout.buffer.write(orjson.dumps(found._asdict()) + b"\n")


if __name__ == "__main__":
    main()
