"""Scores of a table in a file: `python -m leaderboard.dynascore FILE.jsonl`.

A line is a row: {"task", "model", "perf", "throughput", "memory", "fairness", "robustness"}. A
metric that is null or absent was not run. Two kinds of optional fields provide
intervals. "perf_se" (and so on) is a standard error. "replicates" is a list of {"perf": 64.1, …},
one for each resample of the examples. All rows have the same resamples. Other fields are ignored.

`--mode anchored` prints scores from 0 to 100 on the scale of a reference pool. The pool is the rows
of the file that `--anchors` names, or by default the pool that Dynabench ships for the row's task.
"""

# This is the command: it reads and prints. The rules are those of leaderboard/ranking/, by which
# boards are scored, too (see leaderboard/ranking/dynascore.py).

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from leaderboard.ranking.anchored import (
    HIGHER_IS_BETTER_BY_COST,
    AnchorsError,
    compute_anchors,
    score_on_anchors,
)
from leaderboard.ranking.dynascore import (
    MEMORY_BUDGET,
    MIN_GAPS,
    WEIGHTS,
    Interval,
    Rule,
    ScoredModel,
    Table,
    compute_exchange_rates,
    find_order_changing_models,
    resample_scores,
    score_models,
)
from leaderboard.ranking.pools import read_shipped_pool

MAIN_METRIC = "perf"
DRAW_COUNT = 200
"""The number of resamples drawn for a table with standard errors."""
OPTIONAL_FIELDS = ("note", "least", "most")
"""Fields that only some printed rows have."""
TableRow = dict[str, float | None]


class TableError(ValueError):
    """Raised for a line that cannot be read; the message names it and says how to correct it."""


@dataclass
class TaskTable:
    """The rows of a file for one task, by model."""

    rows: dict[str, TableRow] = field(default_factory=dict)
    errors: dict[str, TableRow] = field(default_factory=dict)  # standard errors
    replicates: dict[str, list[TableRow]] = field(default_factory=dict)


def read_tables(lines: Iterable[bytes], name: str) -> dict[str, TaskTable]:
    """Read the tables of a JSON Lines file, by task; blank lines are skipped.

    name: the file's name, for messages. Raises TableError.
    """
    tables: dict[str, TaskTable] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            _add_row(tables, json.loads(line))
        except json.JSONDecodeError as error:
            where = f"{name}:{number}: invalid JSON at column {error.colno}"
            raise TableError(f"{where}: {error.msg}. Write one object per line.") from error
        except (ValueError, RecursionError) as error:
            raise TableError(f"{name}:{number}: {error}") from error
    if not tables:
        raise TableError(f"{name} contains no rows.")
    return tables


def _add_row(tables: dict[str, TaskTable], row: Any) -> None:
    """Add a line's row to the table of its task. Raises TableError."""
    if not isinstance(row, dict):
        raise TableError(
            'each row must be an object like {"task": "nli", "model": "BERT", "perf": 64.8, …}.'
        )
    task, model = _read_name(row, "task"), _read_name(row, "model")
    table = tables.setdefault(task, TaskTable())
    if model in table.rows:
        raise TableError(f"{model} has two rows in {task}; keep one.")
    table.rows[model] = {metric: _read_number(row, metric) for metric in WEIGHTS}
    table.errors[model] = errors = {metric: _read_number(row, f"{metric}_se") for metric in WEIGHTS}
    if any(error is not None and error < 0 for error in errors.values()):
        raise TableError("standard errors can't be negative.")
    table.replicates[model] = _read_replicates(row)
    # Replicates are paired across models by their number, so all models need the same number.
    counts = {len(replicates) for replicates in table.replicates.values() if replicates}
    if len(counts) > 1:
        number = len(table.replicates[model])
        raise TableError(
            f"{model} has {number} replicates; all models of {task} need the same number."
        )


def _read_replicates(row: dict[str, Any]) -> list[TableRow]:
    """Return a row's resamples, each with the metrics that it contains. Raises TableError."""
    replicates = row.get("replicates") or []
    if not isinstance(replicates, list) or not all(isinstance(each, dict) for each in replicates):
        raise TableError('replicates must be a list of objects like [{"perf": 64.1, …}, …].')
    rows = []
    for replicate in replicates:
        metrics = [metric for metric in WEIGHTS if metric in replicate]
        rows.append({metric: _read_number(replicate, metric) for metric in metrics})
    return rows


def _read_name(row: dict[str, Any], key: str) -> str:
    """Return the text under a key. Raises TableError."""
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise TableError(f'{key} is missing: write "{key}": "…".')
    return value


def _read_number(row: dict[str, Any], key: str) -> float | None:
    """Return the number under a key; None if it was not measured. Raises TableError."""
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = json.dumps(value, ensure_ascii=False)[:40]
        raise TableError(f"{key} is {text}: write a number without quotes, or null if not run.")
    # Written so that NaN, for which no comparison is true, fails too.
    if not abs(value) < 1e100:  # also excludes NaN
        raise TableError(f"{key} is not a finite number: write null if it was not run.")
    return float(value)


def draw_tables(table: TaskTable) -> Iterator[dict[str, TableRow]]:
    """Yield resamples of a table; none if the file has neither replicates nor errors.

    Metrics in `replicates` take those values; the others are drawn from a normal distribution with
    their standard error. The order of the rows does not matter.
    """
    count = max(map(len, table.replicates.values()))
    if not count and any(any(row.values()) for row in table.errors.values()):
        count = DRAW_COUNT
    # A fixed seed, so that the same file gives the same intervals.
    rng = Random(0)
    for number in range(count):
        drawn_table: dict[str, TableRow] = {}
        # Sorted by name, so that the order of lines in the file does not change the draws.
        for model, row in sorted(table.rows.items()):
            drawn_table[model] = {}
            for metric, value in row.items():
                if value is not None:
                    value = rng.gauss(value, table.errors[model][metric] or 0)
                drawn_table[model][metric] = value
            if table.replicates[model]:
                drawn_table[model] |= table.replicates[model][number]
        yield drawn_table


def score_task(rule: Rule, table: TaskTable) -> tuple[dict[str, Any], list[str]]:
    """Return one task's rates and rows as they are printed, and notices about them."""
    errors = {model: row[rule.main] for model, row in table.errors.items()}
    rates = compute_exchange_rates(rule, table.rows, errors)
    resamples = list(draw_tables(table))
    intervals: dict[str, Interval] = {}
    if resamples:
        intervals = resample_scores(rule, table.rows, resamples, errors=errors)
    rows = _format_rows(score_models(rule, table.rows, rates), intervals)
    notices = list(rates.notices)
    if moving := find_order_changing_models(rule, table.rows, errors=errors):
        notices.append(
            f"Without one of these, the order of the others changes: {', '.join(moving)}."
        )
    return {"rates": dict(rates.values), "rows": rows}, notices


def _format_rows(
    rows: Iterable[ScoredModel], intervals: Mapping[str, Interval]
) -> list[dict[str, Any]]:
    """Return the rows as they are printed, without empty optional fields."""
    printed_rows = []
    for row in rows:
        line = asdict(row)
        for name in OPTIONAL_FIELDS:
            if line[name] in ("", None):
                del line[name]
        line["low"] = line["high"] = None
        if interval := intervals.get(row.model):
            line["low"], line["high"] = interval.low, interval.high
        printed_rows.append(line)
    return printed_rows


def score_anchored_task(
    weights: Mapping[str, float], table: TaskTable, pool: Table
) -> tuple[dict[str, Any], list[str]]:
    """Return one task's rows on the scale of a pool, as they are printed, and notices about them.

    The result has the same keys as that of `score_task`, but all rates are None, because no metric
    has a price in units of another. Raises AnchorsError.
    """
    anchors = compute_anchors(_convert_to_percent(pool), MAIN_METRIC, WEIGHTS)
    unit = 100 if _is_in_fractions(table.rows) else 1
    rows = score_on_anchors(anchors, weights, _scale_shares(unit, table.rows))
    drawn_scores: dict[str, list[float]] = {}
    for draw in draw_tables(table):
        for row in score_on_anchors(anchors, weights, _scale_shares(unit, draw)):
            if row.dynascore is not None:
                drawn_scores.setdefault(row.model, []).append(row.dynascore)
    printed_rows = _format_rows(rows, _compute_intervals(rows, drawn_scores))
    return {"rates": dict.fromkeys(WEIGHTS), "rows": printed_rows}, list(anchors.notices)


def _compute_intervals(
    rows: Iterable[ScoredModel], drawn_scores: Mapping[str, Sequence[float]]
) -> dict[str, Interval]:
    """Return the intervals of the scores; the table itself is one of the draws."""
    import numpy as np

    from evaluation.scoring.bootstrap import compute_quantile_interval

    intervals = {}
    for row in rows:
        scores = drawn_scores.get(row.model)
        if row.dynascore is not None and row.rank and scores:
            _value, low, high = compute_quantile_interval(np.array([row.dynascore, *scores]))
            intervals[row.model] = Interval(low, high, row.rank, row.rank)
    return intervals


def _is_in_fractions(table: Table) -> bool:
    """Return whether a table's shares are from 0 to 1: none is above 1, and some are fractions."""
    shares = []
    for row in table.values():
        for metric, value in row.items():
            if metric not in HIGHER_IS_BETTER_BY_COST and value is not None:
                shares.append(value)
    return all(value <= 1 for value in shares) and any(0 < value < 1 for value in shares)


def _convert_to_percent(table: Table) -> Table:
    return _scale_shares(100 if _is_in_fractions(table) else 1, table)


def _scale_shares(unit: float, table: Table) -> Table:
    """Return the table with its shares multiplied by `unit`."""
    scaled_table: dict[str, TableRow] = {}
    for model, row in table.items():
        scaled_table[model] = {}
        for metric, value in row.items():
            if value is not None and metric not in HIGHER_IS_BETTER_BY_COST:
                value = unit * value
            scaled_table[model][metric] = value
    return scaled_table


def find_pool(task: str, tables: Mapping[str, TaskTable] | None) -> Table | None:
    """Return the reference models of a task, from a file's tables or else the shipped ones.

    None if there are none.
    """
    if tables is not None:
        return tables[task].rows if task in tables else None
    pool = read_shipped_pool(task)
    if pool is None:
        return None
    rows: dict[str, TableRow] = {}
    for model, row in pool.rows.items():
        rows[model] = {metric: row.get(metric) for metric in WEIGHTS}
        rows[model][MAIN_METRIC] = row.get(pool.main)  # whatever its name in the task
    return rows


def parse_weights(text: str) -> dict[str, float]:
    """Parse `perf=4,memory=0.5`; metrics that are left out keep their default weight."""
    weights = dict(WEIGHTS)
    for setting in text.split(","):
        metric, _, number = setting.partition("=")
        if metric.strip() not in WEIGHTS:
            names = ", ".join(WEIGHTS)
            raise argparse.ArgumentTypeError(f"{metric!r} is not a metric; use one of: {names}.")
        try:
            weights[metric.strip()] = float(number)
        except ValueError as error:
            message = f"{setting!r} is not a weight; write for example {metric.strip()}=1."
            raise argparse.ArgumentTypeError(message) from error
    return weights


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m leaderboard.dynascore", description=__doc__)
    add = parser.add_argument
    add("file", type=Path, help="JSON lines")
    add("--mode", choices=sorted([*MIN_GAPS, "anchored"]), default="robust")
    add(
        "--anchors",
        type=Path,
        metavar="FILE",
        help="reference models for --mode anchored; default: the pool of the row's task",
    )
    add(
        "--memory-budget",
        type=float,
        metavar="GB",
        help="memory is subtracted from this budget; not for --mode anchored",
    )
    add(
        "--min-gap",
        type=float,
        metavar="X",
        help="ignore pairs that differ by X or less in perf; not for --mode anchored",
    )
    add(
        "--weights",
        type=parse_weights,
        default=WEIGHTS,
        metavar="perf=4,…",
        help="default: 4 for perf, 1 for others",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the result as JSON; notices and errors go to stderr.

    Exits with 1 for an error in the file, and with 2 for one in the arguments.
    """
    parser = _build_parser()
    options = parser.parse_args(arguments)
    is_anchored = options.mode == "anchored"
    for name in ("memory_budget", "min_gap") if is_anchored else ("anchors",):
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            parser.error(f"{option} can't be used with --mode {options.mode}.")
    budget = options.memory_budget
    try:
        rule = Rule(
            mode="robust" if is_anchored else options.mode,  # its weights are checked for all
            weights=options.weights,
            budgets={"memory": MEMORY_BUDGET if budget is None else budget},
            min_gap=options.min_gap,
        )
        tables = _read_file(options.file)
        pools = _read_file(options.anchors) if options.anchors else None
    except (OSError, ValueError) as error:
        sys.exit(f"{parser.prog}: {error}")
    tasks = {}
    for task, table in tables.items():
        if not is_anchored:
            tasks[task], notices = score_task(rule, table)
        elif (pool := find_pool(task, pools)) is None:
            parser.error(_explain_missing_pool(task, options.anchors))
        else:
            try:
                tasks[task], notices = score_anchored_task(rule.weights, table, pool)
            except AnchorsError as error:
                parser.error(f"--anchors, task {task}: {error}")
        for notice in notices:
            print(f"{task}: {notice}", file=sys.stderr)
    print(json.dumps({"mode": options.mode, "tasks": tasks}, allow_nan=False))


def _read_file(path: Path) -> dict[str, TaskTable]:
    return read_tables(path.read_bytes().splitlines(), str(path))


def _explain_missing_pool(task: str, file: Path | None) -> str:
    """Explain why a task has no anchors, and how to provide them."""
    if file:
        return f"--anchors: {file} has no rows of {task}; add rows of its reference models."
    return (
        f"{task} has no built-in reference pool. Use --anchors to name a file of reference models."
    )


if __name__ == "__main__":
    main()
