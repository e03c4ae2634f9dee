"""`dynabench results`, `leaderboard` and `compare`: what models reached."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dynabench.client.commands.shared import (
    USAGE,
    CommandError,
    client_for,
    command,
    model_id,
    table,
    tell,
)
from dynabench.client.errors import Invalid

Numbers = Mapping[str, Any]
CORRECTED = "Note: a difference is clear if its p, corrected by Holm's method, is at most 0.05."
UNITS = {
    "throughput": "examples/s",
    "memory": "GiB",
    "memory_mean": "GiB",
    "latency_p95": "s",
    "fairness_gap": "points",
    "robustness_drop": "points",
}
"""By metric; all others are in percent."""
AS_MEASURED = frozenset({"examples/s", "GiB", "s"})
"""Units of what a model's results give as they are; shares they give from 0 to 1."""


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = command(commands, "results", results, "what a model reached")
    parser.add_argument("model", type=model_id, metavar="MODEL", help="its id")
    parser.add_argument("--wait", action="store_true", help="until all evaluations are over")
    parser = command(commands, "leaderboard", leaderboard, "the models of a task, ranked")
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument(
        "--weights",
        type=_weights,
        metavar="accuracy=4,…",
        help="of metrics, 0 to 8; the owner's by default",
    )
    parser.add_argument(
        "--datasets", type=_weights, metavar="round-1=5,…", help="of evaluation sets, likewise"
    )
    parser.add_argument(
        "--mode",
        choices=("anchored", "classic", "robust"),
        help="the formula: on the scale of the reference pool, as published, or by frozen exchange "
        "rates; what the board opens with by default",
    )
    parser.add_argument("--mine", action="store_true", help="your unpublished models too")
    parser = command(commands, "compare", compare, "compare two models of a task")
    parser.add_argument("models", nargs=2, type=model_id, metavar="MODEL", help="their ids")


def _weights(text: str) -> dict[str, float]:
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {name.strip(): float(weight) for name, weight in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text}: write names and numbers, such as accuracy=4,throughput=1"
        ) from None


def results(args: argparse.Namespace) -> int:
    """What there is of a model's numbers; with --wait all of it."""
    found = client_for(args).get_results(str(args.model), wait=args.wait)
    tell(args, found, shown(found))
    return 0


def shown(results: Numbers) -> str:
    """A model's numbers, and why some are missing, in words."""
    lines = [f"{results['name']} ({results['task']}): {results['sentence']}"]
    score = {
        part: results.get(f"dynascore_{part}") for part in ("low", "high", "least", "most")
    } | {"value": results["dynascore"]}
    if shown_score := _score(score):
        place = f", rank {results['rank']}" if results["rank"] else ""
        low, high = score["low"], score["high"]
        sure = f" ({low:.2f} to {high:.2f})" if low is not None else ""
        lines.append(f"Dynascore {shown_score}{sure}{place}")
    rows = [
        [name, _metric(metric), *_result(metric, number), number["n"]]
        for name, metrics in results["scores"].items()
        for metric, number in metrics.items()
    ]
    if rows:
        lines.append(table(["set", "metric", "value", "95 % interval", "n"], rows))
    rounded = [
        name
        for name, metrics in results["scores"].items()
        if any(number.get("is_rounded") for number in metrics.values())
    ]
    return "\n".join([*lines, *_sealed(rounded), *(f"Note: {text}" for text in results["notes"])])


def _result(metric: str, number: Numbers) -> tuple[str, str | None]:
    """A number of a model's results and its interval, in the units of boards."""
    if UNITS.get(metric) in AS_MEASURED:
        return f"{number['value']:.4g}", None
    shares = {part: number[part] for part in ("value", "low", "high")}
    percent = {part: None if one is None else 100 * one for part, one in shares.items()}
    return f"{percent['value']:.2f}", _interval(percent)


def _sealed(names: Iterable[str]) -> Iterator[str]:
    """That the scores on these sets are rounded."""
    for name in names:
        yield f"Note: {name} is sealed (its answers are secret), so its scores are rounded."


def _interval(number: Numbers) -> str | None:
    if number["low"] is None:
        return None
    return f"{number['low']:.2f} to {number['high']:.2f}"


def leaderboard(args: argparse.Namespace) -> int:
    """The rows of a board, as its page has them."""
    try:
        board = client_for(args).leaderboard(
            args.task, weights=args.weights, datasets=args.datasets, mode=args.mode, mine=args.mine
        )
    except Invalid as error:  # a weight of what is not there, or a formula
        raise CommandError(str(error), USAGE) from None
    metrics = [metric["name"] for metric in board["metrics"]]
    rows = [
        [
            row["rank"] or "not run",
            row["model"],
            _score(row["dynascore"]),
            _interval(row["dynascore"]),
            *(_number(row["metrics"].get(name)) for name in metrics),
        ]
        for row in board["rows"]
    ]
    columns = [_metric(metric["name"], metric.get("judge")) for metric in board["metrics"]]
    heads = ["rank", "model", "Dynascore", "95 % interval", *columns]
    shown = table(heads, rows) if rows else f"{args.task} has no published model yet."
    sealed = _sealed(
        one["name"] for one in board["sets"] if one.get("is_sealed") and one.get("counts", True)
    )
    notes = [*_ranges(board["rows"]), *_early(board["sets"]), *sealed]
    tell(args, board, "\n".join([shown, *notes]))
    return 0


def _early(sets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The sets behind the scores whose rounds were still judged."""
    for one in sets:
        if one.get("is_provisional") and one.get("counts", True):
            far = f", {one['judged']} of {one['to_judge']} judged" if one.get("to_judge") else ""
            yield f"Note: {one['name']} v{one['version']} is provisional{far}."


def _metric(name: str, judge: Mapping[str, Any] | None = None) -> str:
    """A metric's name with its unit; of a language model as judge with its agreement."""
    if name != "llm_judge" or not judge:
        return f"{name} ({UNITS.get(name, '%')})"
    found = judge["agreement"]
    words = f"κ at least {found['low']:.2f}" if found["is_calibrated"] else "not calibrated"
    return f"{name} ({judge['name']}: {words})"


def compare(args: argparse.Namespace) -> int:
    """Two models on each set, and which differences are more than chance."""
    found = client_for(args).compare(*map(str, args.models))
    names = {"a": found["a"]["model"], "b": found["b"]["model"]}
    better = {**names, "": "not clear", "untested": "not tested"}
    judge = found.get("judge")
    rows = [
        [
            *(row["set"], _metric(row["metric"], judge), _number(row["a"]), _number(row["b"])),
            *(_number(row["difference"]), _interval(row["difference"]), better[row["better"]]),
            *(_p(row.get("p_uncorrected")), _p(row.get("p")), row.get("method")),
        ]
        for row in found["rows"]
    ]
    heads = ["set", "metric", *names.values(), "difference", "95 % interval", "better"]
    heads += ["p", "corrected p", "test"]
    shown = table(heads, rows) if rows else "They have no set in common."
    sets = {row["set"]: {**row, "name": row["set"]} for row in found["rows"]}
    sealed = dict.fromkeys(row["set"] for row in found["rows"] if row.get("is_rounded"))
    notes = [*_early([*sets.values()]), *_sealed(sealed)]
    if any(row.get("p") is not None for row in found["rows"]):
        notes.insert(0, CORRECTED)
    tell(args, found, "\n".join([shown, *notes]))
    return 0


def _p(value: float | None) -> str | None:
    return None if value is None else f"{value:.2g}"


def _ranges(rows: Iterable[Numbers]) -> Iterator[str]:
    """That some scores are ranges, and by what each of them is."""
    for row in rows:
        if row["dynascore"]["value"] is None and _score(row["dynascore"]):
            lacking = ", ".join(row["missing"])
            yield f"Note: {row['model']} has a range, as it was not measured on: {lacking}."


def _score(cell: Numbers) -> str | None:
    """A score, or the range from its worst case to its best."""
    least, most = cell.get("least"), cell.get("most")
    if cell["value"] is None and least is not None and most is not None:
        return f"{least:.2f} to {most:.2f}"
    return _number(cell)


def _number(cell: Numbers | None) -> str | None:
    return None if cell is None or cell["value"] is None else f"{cell['value']:.2f}"
