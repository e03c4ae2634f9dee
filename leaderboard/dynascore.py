"""Scores of a table in a file: `python -m leaderboard.dynascore FILE.jsonl`.

A line is a row: {"task", "model", "perf", "throughput", "memory", "fairness", "robustness"}. A
metric that is null or absent was not run. Two kinds of further fields give intervals: "perf_se"
(and so on) is a standard error; "replicates" is a list of {"perf": 64.1, …}, one for each resample
of the examples, the same resamples in all rows. Other fields are ignored.

`--mode anchored` gives scores from 0 to 100 on the scale of a reference pool: the rows of the file
that `--anchors` names, or without it the pool that comes with the row's task.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from leaderboard.scoring import anchored
from leaderboard.scoring.anchored import AnchorsError
from leaderboard.scoring.dynascore import (
    GAPS,
    MEMORY_BUDGET,
    WEIGHTS,
    Interval,
    Rule,
    ScoredModel,
    Table,
    bootstrap,
    exchange_rates,
    moved_by,
    scored,
)
from leaderboard.scoring.pools import shipped

MAIN = "perf"
DRAWS = 200
"""Of a table with standard errors."""
TableRow = dict[str, float | None]


class TableError(ValueError):
    """A line that cannot be read; the message names it and says how to mend it."""


@dataclass
class TaskTable:
    """What a file says about one task, by model."""

    rows: dict[str, TableRow] = field(default_factory=dict)
    errors: dict[str, TableRow] = field(default_factory=dict)  # standard errors
    replicates: dict[str, list[TableRow]] = field(default_factory=dict)


def read(lines: Iterable[bytes], name: str) -> dict[str, TaskTable]:
    """The tables of a file in JSON lines, by task; blank lines are skipped. Raises TableError."""
    tables: dict[str, TaskTable] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                _add(tables, json.loads(line))
            except json.JSONDecodeError as error:
                where = f"{name}:{number}: no JSON at column {error.colno}"
                raise TableError(f"{where}: {error.msg}. Write one object a line.") from error
            except (ValueError, RecursionError) as error:
                raise TableError(f"{name}:{number}: {error}") from error
    if not tables:
        raise TableError(f"{name} holds no rows.")
    return tables


def _add(tables: dict[str, TaskTable], given: Any) -> None:
    if not isinstance(given, dict):
        raise TableError('a row is an object: {"task": "nli", "model": "BERT", "perf": 64.8, …}.')
    task, model = (_name(given, key) for key in ("task", "model"))
    table = tables.setdefault(task, TaskTable())
    if model in table.rows:
        raise TableError(f"{model} has a row in {task} already; give each model one.")
    table.rows[model] = {metric: _number(given, metric) for metric in WEIGHTS}
    table.errors[model] = errors = {m: _number(given, f"{m}_se") for m in WEIGHTS}
    if any(error is not None and error < 0 for error in errors.values()):
        raise TableError("a standard error is 0 or more.")
    replicates = given.get("replicates") or []
    if not isinstance(replicates, list) or not all(isinstance(one, dict) for one in replicates):
        raise TableError('replicates is a list of objects: [{"perf": 64.1, …}, …].')
    table.replicates[model] = [
        {m: _number(one, m) for m in WEIGHTS if m in one} for one in replicates
    ]
    numbers = {len(some) for some in table.replicates.values() if some}
    if len(numbers) > 1:
        raise TableError(
            f"{model} has {len(replicates)} replicates; give each model of {task} as many."
        )


def _name(given: dict[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value.strip():
        raise TableError(f'{key} is missing: write "{key}": "…".')
    return value


def _number(given: dict[str, Any], key: str) -> float | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = json.dumps(value, ensure_ascii=False)[:40]
        raise TableError(f"{key} is {shown}: write a number without quotes, or null if not run.")
    if not abs(value) < 1e100:  # nor NaN
        raise TableError(f"{key} is not a finite number: write null if it was not run.")
    return float(value)


def draws(table: TaskTable) -> Iterator[dict[str, TableRow]]:
    """Resamples of a table, none where the file tells of none; the order of rows is no matter.

    What `replicates` name is as they say, the rest is normal around its value, by its error.
    """
    count = max(map(len, table.replicates.values()))
    if not count and any(error for row in table.errors.values() for error in row.values()):
        count = DRAWS
    chance = Random(0)
    for number in range(count):
        drawn = {}
        for model, row in sorted(table.rows.items()):
            drawn[model] = {
                metric: None
                if value is None
                else chance.gauss(value, table.errors[model][metric] or 0)
                for metric, value in row.items()
            }
            if table.replicates[model]:
                drawn[model] |= table.replicates[model][number]
        yield drawn


def result(rule: Rule, table: TaskTable) -> tuple[dict[str, Any], list[str]]:
    """One task's rates and rows as they are printed, and what a reader should know about them."""
    errors = {model: row[rule.main] for model, row in table.errors.items()}
    rates = exchange_rates(rule, table.rows, errors)
    resamples = list(draws(table))
    intervals = bootstrap(rule, table.rows, resamples, errors=errors) if resamples else {}
    rows = _printed(scored(rule, table.rows, rates), intervals)
    notices = [*rates.notices]
    if moving := moved_by(rule, table.rows, errors=errors):
        notices.append(
            f"Without one of these the order of the others changes: {', '.join(moving)}."
        )
    return {"rates": dict(rates.values), "rows": rows}, notices


OPTIONAL = ("note", "least", "most")
"""What only some rows have."""


def _printed(
    rows: Iterable[ScoredModel], intervals: Mapping[str, Interval]
) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        interval = intervals.get(row.model)
        line = asdict(row) | {
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
        }
        found.append({k: v for k, v in line.items() if k not in OPTIONAL or v not in ("", None)})
    return found


def anchored_result(
    weighted: Mapping[str, float], table: TaskTable, pool: Table
) -> tuple[dict[str, Any], list[str]]:
    """As `result`, on the scale of a pool. No rates: no metric has a price in units of another.

    Raises AnchorsError.
    """
    anchors = anchored.anchors_of(_in_percent(pool), MAIN, WEIGHTS)
    unit = 100 if _is_in_fractions(table.rows) else 1
    rows = anchored.scored(anchors, weighted, _times(unit, table.rows))
    drawn: dict[str, list[float]] = {}
    for draw in draws(table):
        for row in anchored.scored(anchors, weighted, _times(unit, draw)):
            if row.dynascore is not None:
                drawn.setdefault(row.model, []).append(row.dynascore)
    printed = _printed(rows, _intervals(rows, drawn))
    return {"rates": dict.fromkeys(WEIGHTS), "rows": printed}, [*anchors.notices]


def _intervals(
    rows: Iterable[ScoredModel], drawn: Mapping[str, Sequence[float]]
) -> dict[str, Interval]:
    """Of the scores, the table itself being one of the draws."""
    import numpy as np

    from evaluation.scoring.bootstrap import interval

    return {
        row.model: Interval(*interval(np.array([row.dynascore, *some]))[1:], row.rank, row.rank)
        for row in rows
        if row.dynascore is not None and row.rank and (some := drawn.get(row.model))
    }


def _is_in_fractions(table: Table) -> bool:
    """Whether its shares are from 0 to 1: none is above 1, and one is no whole number."""
    shares = [
        value
        for row in table.values()
        for metric, value in row.items()
        if metric not in anchored.COSTS and value is not None
    ]
    return all(value <= 1 for value in shares) and any(0 < value < 1 for value in shares)


def _in_percent(table: Table) -> Table:
    return _times(100 if _is_in_fractions(table) else 1, table)


def _times(unit: float, table: Table) -> Table:
    """The table with its shares in another unit."""
    return {
        model: {
            metric: value if value is None or metric in anchored.COSTS else unit * value
            for metric, value in row.items()
        }
        for model, row in table.items()
    }


def pool_of(task: str, given: Mapping[str, TaskTable] | None) -> Table | None:
    """The anchors of a task: of a file, or those that are shipped; None: there are none."""
    if given is not None:
        return given[task].rows if task in given else None
    if (pool := shipped(task)) is None:
        return None
    return {
        model: {MAIN: row.get(pool.main)} | {m: row.get(m) for m in WEIGHTS if m != MAIN}
        for model, row in pool.rows.items()
    }


def weights(text: str) -> dict[str, float]:
    """`perf=4,memory=0.5`; what is not named keeps its usual weight."""
    given = dict(WEIGHTS)
    for part in text.split(","):
        metric, _, number = part.partition("=")
        if metric.strip() not in WEIGHTS:
            known = ", ".join(WEIGHTS)
            raise argparse.ArgumentTypeError(f"{metric!r} is none of the metrics: {known}.")
        try:
            given[metric.strip()] = float(number)
        except ValueError as error:
            what = f"{part!r} is no weight: write {metric.strip()}=1."
            raise argparse.ArgumentTypeError(what) from error
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m leaderboard.dynascore", description=__doc__)
    add = parser.add_argument
    add("file", type=Path, help="JSON lines")
    add("--mode", choices=sorted([*GAPS, "anchored"]), default="robust")
    add(
        "--anchors",
        type=Path,
        metavar="FILE",
        help="of --mode anchored: rows of reference models; usual: the pool of the row's task",
    )
    add(
        "--memory-budget",
        type=float,
        metavar="GB",
        help="memory is taken from it; not of --mode anchored",
    )
    add(
        "--min-gap",
        type=float,
        metavar="X",
        help="pairs that differ by X or less in perf do not count; not of --mode anchored",
    )
    add(
        "--weights",
        type=weights,
        default=WEIGHTS,
        metavar="perf=4,…",
        help="usual: 4 for perf, else 1",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the result as JSON; notices and mistakes go to stderr. A mistake exits with 1 or 2."""
    parser = _parser()
    given = parser.parse_args(arguments)
    is_anchored = given.mode == "anchored"
    for name in ("memory_budget", "min_gap") if is_anchored else ("anchors",):
        if getattr(given, name) is not None:
            option = f"--{name.replace('_', '-')}"
            parser.error(f"--mode {given.mode} has no {option}.")
    budget = given.memory_budget
    try:
        rule = Rule(
            mode="robust" if is_anchored else given.mode,
            weights=given.weights,
            budgets={"memory": MEMORY_BUDGET if budget is None else budget},
            min_gap=given.min_gap,
        )
        tables = _tables(given.file)
        pools = _tables(given.anchors) if given.anchors else None
    except (OSError, ValueError) as error:
        sys.exit(f"{parser.prog}: {error}")
    found = {}
    for task, table in tables.items():
        if not is_anchored:
            found[task], notices = result(rule, table)
        elif (pool := pool_of(task, pools)) is None:
            parser.error(_without(task, given.anchors))
        else:
            try:
                found[task], notices = anchored_result(rule.weights, table, pool)
            except AnchorsError as error:
                parser.error(f"--anchors: of {task}, {error}")
        for notice in notices:
            print(f"{task}: {notice}", file=sys.stderr)
    print(json.dumps({"mode": given.mode, "tasks": found}, allow_nan=False))


def _tables(path: Path) -> dict[str, TaskTable]:
    return read(path.read_bytes().splitlines(), str(path))


def _without(task: str, file: Path | None) -> str:
    """Why a task has no anchors, and how to mend it."""
    if file:
        return f"--anchors: {file} has no row of {task}; add rows of its reference models."
    return f"No reference pool comes with {task}: name a file of reference models by --anchors."


if __name__ == "__main__":
    main()
