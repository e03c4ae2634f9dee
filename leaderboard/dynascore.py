"""Scores of a table in a file: `python -m leaderboard.dynascore FILE.jsonl`.

A line is a row: {"task", "model", "perf", "throughput", "memory", "fairness", "robustness"}. A
metric that is null or absent was not run. Two kinds of further fields give intervals: "perf_se"
(and so on) is a standard error; "replicates" is a list of {"perf": 64.1, …}, one for each resample
of the examples, the same resamples in all rows. Other fields are ignored.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from leaderboard.scoring.dynascore import (
    GAPS,
    MEMORY_BUDGET,
    WEIGHTS,
    Rule,
    bootstrap,
    exchange_rates,
    moved_by,
    scored,
)

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
    rows = []
    for row in scored(rule, table.rows, rates):
        interval = intervals.get(row.model)
        line = asdict(row) | {
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
        }
        rows.append({key: value for key, value in line.items() if key != "note" or value})
    notices = [*rates.notices]
    if moving := moved_by(rule, table.rows, errors=errors):
        notices.append(
            f"Without one of these the order of the others changes: {', '.join(moving)}."
        )
    return {"rates": dict(rates.values), "rows": rows}, notices


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the result as JSON; notices and mistakes go to stderr. A mistake exits with 1 or 2."""
    parser = argparse.ArgumentParser("python -m leaderboard.dynascore", description=__doc__)
    add = parser.add_argument
    add("file", type=Path, help="JSON lines")
    add("--mode", choices=sorted(GAPS), default="robust")
    add(
        "--memory-budget",
        type=float,
        default=MEMORY_BUDGET,
        metavar="GB",
        help="memory is taken from it",
    )
    add(
        "--min-gap",
        type=float,
        metavar="X",
        help="pairs that differ by X or less in perf do not count",
    )
    add(
        "--weights",
        type=weights,
        default=WEIGHTS,
        metavar="perf=4,…",
        help="usual: 4 for perf, else 1",
    )
    given = parser.parse_args(arguments)
    try:
        rule = Rule(
            mode=given.mode,
            weights=given.weights,
            budgets={"memory": given.memory_budget},
            min_gap=given.min_gap,
        )
        lines = given.file.read_bytes().splitlines()
        tables = read(lines, str(given.file))
    except (OSError, ValueError) as error:
        sys.exit(f"{parser.prog}: {error}")
    found = {}
    for task, table in tables.items():
        found[task], notices = result(rule, table)
        for notice in notices:
            print(f"{task}: {notice}", file=sys.stderr)
    print(json.dumps({"mode": rule.mode, "tasks": found}, allow_nan=False))


if __name__ == "__main__":
    main()
