"""`dynabench results`, `leaderboard` and `compare`: models' scores."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dynabench.client.commands.shared import (
    USAGE,
    CommandError,
    add_command,
    format_table,
    open_client,
    parse_model_id,
    print_result,
)
from dynabench.client.errors import Invalid

JsonObject = Mapping[str, Any]
CORRECTION_NOTE = (
    "Note: a difference is clear if its p-value, corrected with Holm's method, is at most 0.05."
)
UNITS = {
    "throughput": "examples/s",
    "memory": "GiB",
    "memory_mean": "GiB",
    "latency_p95": "s",
    "fairness_gap": "points",
    "robustness_drop": "points",
}
"""The units of metrics. Metrics without an entry are in percent."""
UNSCALED_UNITS = frozenset({"examples/s", "GiB", "s"})
"""The units whose values are printed as they are. Other values are shares from 0 to 1."""


def add_commands(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = add_command(commands, "results", print_results, "show a model's results")
    parser.add_argument("model", type=parse_model_id, metavar="MODEL", help="the model's ID")
    parser.add_argument("--wait", action="store_true", help="wait until all evaluations have ended")
    parser = add_command(commands, "leaderboard", print_leaderboard, "show a task's leaderboard")
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument(
        "--weights",
        type=_parse_weights,
        metavar="accuracy=4,…",
        help="weights of metrics, 0 to 8; default: the owner's",
    )
    parser.add_argument(
        "--datasets",
        type=_parse_weights,
        metavar="round-1=5,…",
        help="weights of evaluation sets, 0 to 8; default: the owner's",
    )
    parser.add_argument(
        "--mode",
        choices=("anchored", "classic", "robust"),
        help=(
            "formula: on the reference pool's scale, as published, or with frozen exchange "
            "rates; default: the board's"
        ),
    )
    parser.add_argument("--mine", action="store_true", help="include your unpublished models")
    parser = add_command(commands, "compare", compare_models, "compare two models of a task")
    parser.add_argument(
        "models", nargs=2, type=parse_model_id, metavar="MODEL", help="the models' IDs"
    )


def _parse_weights(text: str) -> dict[str, float]:
    """Parse the weights in an option such as `accuracy=4,throughput=1`.

    Raises ArgumentTypeError.
    """
    try:
        # A part without "=" cannot be unpacked, which is a ValueError, too.
        pairs = [part.split("=") for part in text.split(",")]
        return {name.strip(): float(weight) for name, weight in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text}: enter names and numbers, such as accuracy=4,throughput=1"
        ) from None


def print_results(args: argparse.Namespace) -> int:
    """Print a model's results: so far, or with --wait after all evaluations have ended."""
    model_results = open_client(args).get_results(str(args.model), wait=args.wait)
    print_result(args, model_results, describe_results(model_results))
    return 0


def describe_results(results: JsonObject) -> str:
    """Return a model's results as text, with the reasons for missing ones."""
    lines = [f"{results['name']} ({results['task']}): {results['sentence']}"]
    # As a board's cell has it, so that both are shown alike.
    score = {"value": results["dynascore"]}
    for bound in ("low", "high", "least", "most"):
        score[bound] = results.get(f"dynascore_{bound}")
    score_text = _format_score(score)
    if score_text:
        line = f"Dynascore {score_text}"
        if score["low"] is not None:
            line += f" ({score['low']:.2f} to {score['high']:.2f})"
        if results["rank"]:
            line += f", rank {results['rank']}"
        lines.append(line)
    rows = []
    # Sets whose answers are secret: exact scores would tell about them.
    rounded_sets = []
    for set_name, metrics in results["scores"].items():
        for metric, number in metrics.items():
            value, interval_text = _format_result(metric, number)
            rows.append([set_name, _format_metric(metric), value, interval_text, number["n"]])
        if any(number.get("is_rounded") for number in metrics.values()):
            rounded_sets.append(set_name)
    if rows:
        lines.append(format_table(["set", "metric", "value", "95% interval", "n"], rows))
    lines += _list_sealed_notes(rounded_sets)
    lines += [f"Note: {text}" for text in results["notes"]]
    return "\n".join(lines)


def _format_result(metric: str, number: JsonObject) -> tuple[str, str | None]:
    """Return (number, interval or None) of a metric, formatted as on leaderboards."""
    # Boards show no interval of times and memory.
    if UNITS.get(metric) in UNSCALED_UNITS:
        return f"{number['value']:.4g}", None
    percent = {}
    for key in ("value", "low", "high"):
        share = number[key]
        percent[key] = None if share is None else 100 * share
    return f"{percent['value']:.2f}", _format_interval(percent)


def _list_sealed_notes(names: Iterable[str]) -> Iterator[str]:
    """Yield a note that the scores are rounded, for each of these sealed sets."""
    for name in names:
        yield f"Note: {name} is sealed (its answers are secret), so its scores are rounded."


def _format_interval(number: JsonObject) -> str | None:
    """Return the bounds of an interval as text, or None if there is none."""
    if number["low"] is None:
        return None
    return f"{number['low']:.2f} to {number['high']:.2f}"


def print_leaderboard(args: argparse.Namespace) -> int:
    """Print the rows of a leaderboard in the order of its page, followed by notes."""
    try:
        board = open_client(args).leaderboard(
            args.task, weights=args.weights, datasets=args.datasets, mode=args.mode, mine=args.mine
        )
    except Invalid as error:  # of a metric, a set or a formula that the board lacks
        raise CommandError(str(error), USAGE) from None
    heads = ["rank", "model", "Dynascore", "95% interval"]
    heads += [_format_metric(metric["name"], metric.get("judge")) for metric in board["metrics"]]
    rows = []
    for row in board["rows"]:
        score = row["dynascore"]
        cells = [
            row["rank"] or "not run",
            row["model"],
            _format_score(score),
            _format_interval(score),
        ]
        for metric in board["metrics"]:
            cells.append(_format_number(row["metrics"].get(metric["name"])))
        rows.append(cells)
    lines = [format_table(heads, rows) if rows else f"{args.task} has no published models yet."]
    lines += _list_range_notes(board["rows"])
    lines += _list_provisional_notes(board["sets"])
    # A set that does not count has no score on this board.
    counted_sets = [each for each in board["sets"] if each.get("counts", True)]
    lines += _list_sealed_notes(each["name"] for each in counted_sets if each.get("is_sealed"))
    print_result(args, board, "\n".join(lines))
    return 0


def _list_provisional_notes(sets: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note for each set whose round was still being judged."""
    for evaluation_set in sets:
        # Servers of before send neither of these keys.
        if evaluation_set.get("is_provisional") and evaluation_set.get("counts", True):
            progress = ""
            if evaluation_set.get("to_judge"):
                progress = f", {evaluation_set['judged']} of {evaluation_set['to_judge']} judged"
            title = f"{evaluation_set['name']} v{evaluation_set['version']}"
            yield f"Note: {title} is provisional{progress}."


def _format_metric(name: str, judge: Mapping[str, Any] | None = None) -> str:
    """Return a metric's name with its unit; for an LLM judge, with its agreement."""
    if name != "llm_judge" or not judge:
        return f"{name} ({UNITS.get(name, '%')})"
    agreement = judge["agreement"]
    agreement_text = "not calibrated"
    if agreement["is_calibrated"]:
        agreement_text = f"κ at least {agreement['low']:.2f}"
    return f"{name} ({judge['name']}: {agreement_text})"


def compare_models(args: argparse.Namespace) -> int:
    """Print the scores of two models on each set, and which differences are larger than chance."""
    comparison = open_client(args).compare(*map(str, args.models))
    name_a, name_b = comparison["a"]["model"], comparison["b"]["model"]
    winner_names = {"a": name_a, "b": name_b, "": "not clear", "untested": "not tested"}
    judge = comparison.get("judge")
    rows = [
        [
            row["set"],
            _format_metric(row["metric"], judge),
            _format_number(row["a"]),
            _format_number(row["b"]),
            _format_number(row["difference"]),
            _format_interval(row["difference"]),
            winner_names[row["better"]],
            _format_p_value(row.get("p_uncorrected")),
            _format_p_value(row.get("p")),
            row.get("method"),
        ]
        for row in comparison["rows"]
    ]
    heads = ["set", "metric", name_a, name_b, "difference", "95% interval", "better"]
    heads += ["p", "corrected p", "test"]
    lines = [
        format_table(heads, rows) if rows else "These models have no evaluation set in common."
    ]
    if any(row.get("p") is not None for row in comparison["rows"]):
        lines.append(CORRECTION_NOTE)
    # A set has a row for each metric, and one note.
    sets = {row["set"]: {**row, "name": row["set"]} for row in comparison["rows"]}
    lines += _list_provisional_notes(sets.values())
    rounded_sets = dict.fromkeys(row["set"] for row in comparison["rows"] if row.get("is_rounded"))
    lines += _list_sealed_notes(rounded_sets)
    print_result(args, comparison, "\n".join(lines))
    return 0


def _format_p_value(value: float | None) -> str | None:
    """Return a p-value with two significant digits, or None if there is none."""
    return None if value is None else f"{value:.2g}"


def _list_range_notes(rows: Iterable[JsonObject]) -> Iterator[str]:
    """Yield a note for each score that is a range, naming what was not measured."""
    for row in rows:
        if row["dynascore"]["value"] is None and _format_score(row["dynascore"]):
            missing_names = ", ".join(row["missing"])
            yield (
                f"Note: {row['model']} has a range, because these metrics were not measured: "
                f"{missing_names}."
            )


def _format_score(cell: JsonObject) -> str | None:
    """Return a score, or its range from worst to best case; None if unknown."""
    worst, best = cell.get("least"), cell.get("most")
    if cell["value"] is None and worst is not None and best is not None:
        return f"{worst:.2f} to {best:.2f}"
    return _format_number(cell)


def _format_number(cell: JsonObject | None) -> str | None:
    """Return the value of a cell with two decimals; None if unknown."""
    if cell is None or cell["value"] is None:
        return None
    return f"{cell['value']:.2f}"
