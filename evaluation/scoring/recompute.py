"""Recompute scores from raw answers: what `dynabench verify` runs on another machine.

    python -m evaluation.scoring.recompute task.yaml labels.jsonl answers.jsonl [perturbed.jsonl]

Prints a JSON line with the digest of the set, and then one for each model, in the order of the
answers. Needs no database and no Django.
"""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import orjson

from evaluation.contract import Number, SetRow
from evaluation.scoring.bootstrap import (
    EXAMPLES_PER_CHECK,
    Tally,
    compute_number,
    flush_large_tallies,
    list_slice_names,
    make_tally,
)
from evaluation.scoring.groups import choose_group_metric, compute_group_numbers, read_groups
from evaluation.scoring.measured import compute_costs
from evaluation.scoring.metrics import Metric, MetricUnavailable, make_metric
from evaluation.scoring.metrics.base import Mean
from evaluation.scoring.recompute_perturbed import PerturbedScorer
from evaluation.scoring.worst import COLUMN_BY_SUITE
from evaluation.set_lines import iterate_digested_lines
from evaluation.task_shape import get_labels
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig

MAX_KEPT_BYTES = 2**25
"""The maximum size of the lines whose statistics are kept, so that free texts fill no memory."""
ENTRY_BYTES = 200
"""About what an entry takes besides its line."""
Statistics = tuple[Hashable, ...]
Score = tuple[float, float | None, float | None]


class ModelScores(NamedTuple):
    """A model's numbers on a set, by the columns of a board.

    scores: the value and the ends of its interval, as shares. An end is None without an interval,
    or where it was not recomputed. costs: speed and memory, in the board's units. error: why there
    are no scores.
    """

    model: str
    scores: dict[str, Score]
    costs: dict[str, float]
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
        self._groups = read_groups(config)
        self._group_metric = _find_group_metric(config, self._metrics)
        self._row_groups: list[tuple[str, ...]] = [()] * len(rows)
        if self._group_metric is not None:
            self._row_groups = _find_row_groups(config, rows)
        # By example: the statistics of each line that was met.
        self._known_lines: list[dict[bytes, Statistics]] = [{} for _ in rows]
        self._free_bytes = MAX_KEPT_BYTES

    def score(self, lines: Iterable[bytes], seed: int, *, with_intervals: bool) -> dict[str, Score]:
        """Return the scores of one model by column, as in `ModelScores`.

        lines: its answers `{"id", "answer"}` in the order of the rows. seed: that of its run.
        Raises ValueError if they are not answers to the rows of the set.
        """
        draws = None if with_intervals else 1
        tallies = [make_tally(metric, "", seed, draws) for metric in self._metrics]
        group_tallies: dict[str, Tally] = {}
        examples = zip(self._rows, self._row_groups, self._known_lines, lines, strict=True)
        # Part by part, as the site counts, so that the tallies never have too many statistics.
        while part := list(islice(examples, EXAMPLES_PER_CHECK)):
            # Equal contributions are counted together, because labels give only a few of them.
            counts = Counter(
                (groups, self._find_statistics(row, known_lines, line))
                for row, groups, known_lines, line in part
            )
            for (groups, statistics), count in counts.items():
                for tally, statistic in zip(tallies, statistics, strict=True):
                    tally.counts[statistic] += count
                self._count_groups(group_tallies, groups, statistics, count, seed, draws)
            flush_large_tallies([*tallies, *group_tallies.values()])
        scores = {}
        for metric, tally in zip(self._metrics, tallies, strict=True):
            number = compute_number(metric, tally)
            if number.value is not None:
                scores[metric.name] = _select_ends(number, metric, with_intervals)
        return scores | self._compute_group_scores(group_tallies, with_intervals)

    def _count_groups(
        self,
        tallies: dict[str, Tally],
        groups: tuple[str, ...],
        statistics: Statistics,
        count: int,
        seed: int,
        draws: int | None,
    ) -> None:
        """Add equal contributions to the tallies of the groups that their examples belong to."""
        if self._group_metric is None:
            return
        for name in groups:
            if name not in tallies:
                tallies[name] = make_tally(self._metrics[self._group_metric], name, seed, draws)
            tallies[name].counts[statistics[self._group_metric]] += count

    def _compute_group_scores(
        self, tallies: Mapping[str, Tally], with_intervals: bool
    ) -> dict[str, Score]:
        """Return the columns of fairness, which compare groups; empty without them."""
        if self._group_metric is None:
            return {}
        metric = self._metrics[self._group_metric]
        numbers = [compute_number(metric, tally, name) for name, tally in tallies.items()]
        scores = {}
        for number in compute_group_numbers(numbers, self._groups, metric.name):
            if number.value is not None:
                column = COLUMN_BY_SUITE["plain", number.metric]
                scores[column] = _select_ends(number, metric, with_intervals)
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


def _select_ends(number: Number, metric: Metric, with_intervals: bool) -> Score:
    """Return a number's value with the ends of its interval, if these were computed."""
    assert number.value is not None
    if with_intervals or isinstance(metric, Mean):
        return number.value, number.low, number.high
    return number.value, None, None


def _find_group_metric(config: TaskConfig, metrics: Sequence[Metric]) -> int | None:
    """Return the index of the metric that compares groups; None without groups or this metric."""
    if not read_groups(config).fields:
        return None
    names = [metric.name for metric in metrics]
    name = choose_group_metric(config.metrics.computed_names)
    return names.index(name) if name in names else None


def _find_row_groups(config: TaskConfig, rows: Sequence[SetRow]) -> list[tuple[str, ...]]:
    """Return the names of the groups that each row belongs to, such as `mentions=women`."""
    groups = read_groups(config)
    # The values of a field are limited, so those that are met first count, as on the site.
    values: dict[str, set[str]] = {field: set() for field in groups.fields}
    row_groups = []
    for row in rows:
        names = list_slice_names(groups.add_mentions(row), values, Counter())
        row_groups.append(tuple(name for name in names if name))
    return row_groups


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
    perturbed_lines: Iterable[bytes] = (),
    *,
    with_intervals: bool = False,
) -> Iterator[ModelScores]:
    """Yield the scores of each model.

    Parameters
    ----------
    config
        The task's configuration.
    rows
        The examples of the set.
    lines
        For each model `{"model", "seed", "answers", "measurements"}` and then as many lines
        `{"id", "answer"}`, in the order of the rows.
    perturbed_lines
        In the same order of the models, for each suite `{"model", "suite", "seed", "examples"}` and
        then as many lines `{"id", "answers": [[kind, answer], …]}`.
    with_intervals
        Whether to resample the intervals that only resampling gives. They take many times as long
        as all values. Those of means are always computed.
    """
    scorer, remaining_lines = SetScorer(config, rows), iter(lines)
    perturbed_scorer = PerturbedScorer(config, rows, perturbed_lines)
    for header in map(orjson.loads, remaining_lines):
        model, measurements = header["model"], header.get("measurements") or {}
        # All of them now, because the next line must be the header of the next model.
        answer_lines = list(islice(remaining_lines, header["answers"]))
        costs = compute_costs(measurements)
        try:
            scores = scorer.score(answer_lines, header["seed"], with_intervals=with_intervals)
            scores |= perturbed_scorer.score(model, answer_lines, with_intervals=with_intervals)
            scores |= _average_judged(header)
        except ValueError:
            # Another version of the set, an added or missing answer, or a line that is no answer.
            perturbed_scorer.skip(model)
            yield ModelScores(model, {}, costs, "the answers are not those of the set")
        else:
            yield ModelScores(model, scores, costs)


def _average_judged(header: Mapping[str, Any]) -> dict[str, Score]:
    """Return the columns of a judge and of the owners' own metrics.

    The header has what these said of each answer: a number (0-1), or null if nothing was said.
    """
    scores: dict[str, Score] = {}
    for column, values in (header.get("judged") or {}).items():
        if values and None not in values:
            scores[column] = fmean(values), None, None
    return scores


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the files, and print the scores of each model as a JSON line."""
    parser = argparse.ArgumentParser(description="Recompute scores from raw answers.")
    for name in ("config", "labels", "answers"):
        parser.add_argument(name, type=Path)
    parser.add_argument("perturbed", type=Path, nargs="?", help="answers to perturbed examples")
    parser.add_argument("--intervals", action="store_true", help="resample intervals, too")
    args = parser.parse_args(arguments)
    config = load_config(args.config.read_text(encoding="utf-8"))
    with args.labels.open("rb") as lines:
        rows = read_set_rows(lines)
    sys.stdout.buffer.write(orjson.dumps({"sha256": compute_set_digest(rows)}) + b"\n")
    with ExitStack() as files:
        lines = files.enter_context(args.answers.open("rb"))
        perturbed_lines: Iterable[bytes] = ()
        if args.perturbed:
            perturbed_lines = files.enter_context(args.perturbed.open("rb"))
        for found in recompute_scores(
            config, rows, lines, perturbed_lines, with_intervals=args.intervals
        ):
            sys.stdout.buffer.write(orjson.dumps(found._asdict()) + b"\n")


if __name__ == "__main__":
    main()
