"""A board, or a snapshot of one, for other programs and for papers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.files.tables import csv_text
from core.text.words import gettext_noop
from leaderboard.scoring.dynascore import MEMORY_BUDGET
from leaderboard.scoring.formula import formula, priced_formula
from tasks.config.schema import CUSTOM_PREFIX

Table = Mapping[str, Any]
PARTS = ("value", "low", "high")
PASSING = ("date", "code", "formula", "budgets")
"""What alone makes no board another one; the last two follow from the rest and from the code."""
LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
UNITS = {
    "throughput": "examples/s", "latency_p95": "s", "memory": "GiB", "memory_mean": "GiB",
    "robustness_drop": "points", "fairness_gap": "points",
}  # fmt: skip
METHOD = gettext_noop(
    "Intervals (95%) are those of a bootstrap of the examples. A Dynascore's interval combines "
    "those of its metrics (MOVER)."
)
"""How the intervals of a board are made; docs/statistics.md tells it whole."""
FINE = ("memory", "memory_mean", "latency_p95")
"""Metrics with two digits after the point."""


def shows_same(before: Table, after: Table) -> bool:
    """Return whether two boards show the same."""
    left, right = (
        {k: v for k, v in table.items() if k not in PASSING} for table in (before, after)
    )
    return left == right


def table_json(table: Table) -> str:
    """Write the whole table as JSON."""
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def board_csv(table: Table) -> str:
    """Write a line for each model, with intervals; what was not run is empty."""
    names = [metric["name"] for metric in table["metrics"]]
    numbers = [
        name if part == "value" else f"{name}_{part}"
        for name in ("dynascore", *names)
        for part in PARTS
    ]
    numbers[len(PARTS) : len(PARTS)] = ["dynascore_least", "dynascore_most"]
    scales = (table.get("anchors") or {}).get("scales", {})
    parts = [name for name in scales if table["weights"]["metrics"].get(name)]
    judged = [*_judge_cells(table), *_version_cells(table)]
    added = [*(f"points_{name}" for name in parts), *(name for name, _ in judged)]
    heads = ["rank", "first", "last", "model", "owner", "team", "id", *numbers, *added]
    rows = [[*heads, "in_the_loop", "not_run", "provisional", "formula"]]
    early, words = _early_of(table), formula_of(table)
    for row in table["rows"]:
        score, cells = row["dynascore"], [row["metrics"][name] for name in names]
        rows.append(
            [
                row["rank"], row["first"], row["last"], row["model"],
                row["owner"], row.get("team", ""), row["id"],
                *(score[part] for part in PARTS),
                *(score.get(end, score["value"]) for end in ("least", "most")),
                *(cell[part] for cell in cells for part in PARTS),
                *(row.get("points", {}).get(name) for name in parts),
                *(cell for _, cell in judged),
                "; ".join(row["in_the_loop"]), "; ".join(row["missing"]),
                early, words,
            ]
        )  # fmt: skip
    return csv_text(rows)


def _judge_cells(table: Table) -> Iterator[tuple[str, Any]]:
    """Yield columns that name the judge of a metric and how far it agrees with people."""
    for metric in table["metrics"]:
        if judge := metric.get("judge"):
            found = {
                "judge": f"{judge['name']} ({judge['number']})",
                **{
                    part: judge["agreement"][name]
                    for part, name in (
                        ("kappa_low", "low"),
                        ("kappa", "kappa"),
                        ("kappa_high", "high"),
                        ("judged_by_both", "n"),
                        ("is_calibrated", "is_calibrated"),
                    )
                },
            }
            yield from ((f"{metric['name']}_{part}", cell) for part, cell in found.items())


def _version_cells(table: Table) -> Iterator[tuple[str, int]]:
    """Yield columns that name which version of an owners' metric scored."""
    for metric in table["metrics"]:
        if metric["name"].startswith(CUSTOM_PREFIX):
            yield f"{metric['name']}_version", metric["version"]


def judge_words(judge: Mapping[str, Any]) -> str:
    """Describe a judge and its agreement with people in plain letters."""
    agreement = judge["agreement"]
    found = (
        f"kappa at least {agreement['low']:.2f}, measured {agreement['kappa']:.2f}"
        if agreement["is_calibrated"]
        else "not calibrated"
    )
    return f"judge {judge['number']}, {judge['name']}: {found} on {agreement['n']} examples"


def early_words(one: Table) -> str:
    """Describe how far a set's round was judged when it was taken, in English; "" when wholly."""
    if not one.get("is_provisional"):
        return ""
    far = f", {one['judged']:,} of {one['to_judge']:,} judged" if one.get("to_judge") else ""
    return f"provisional{far}"


def provisional_of(sets: Iterable[Table]) -> list[Table]:
    """Return the sets of a table that count and whose rounds were still being judged."""
    return [one for one in sets if one.get("counts", True) and one.get("is_provisional")]


def _early_of(table: Table) -> str:
    """List the sets behind the scores that may still change, each with how far it was judged."""
    found = provisional_of(table["sets"])
    return "; ".join(f"{one['name']} v{one['version']}: {early_words(one)}" for one in found)


def board_latex(table: Table, address: str = "") -> str:
    """Write a table for a paper (package booktabs): metrics that count, intervals in brackets."""
    metrics = _counting(table)
    names = [metric["name"] for metric in metrics]
    heads = ["Rank", "Model", "Dynascore", *map(_latex_head, metrics)]
    sets = ", ".join(f"{one['name']} v{one['version']}" for one in table["sets"])
    words, below = formula_of(table), [*filter(None, (_early_of(table), _ranges_of(table)))]
    lines = [
        rf"% {escape_latex(table['task']['code'])} on {table['date']}: {escape_latex(sets)}",
        *([f"% {escape_latex(address)}"] if address else []),
        *([f"% {escape_latex(words)}"] if words else []),
        *(f"% {escape_latex(notice)}" for notice in table.get("notices", ()) if notice == METHOD),
        r"\begin{tabular}{ll" + "r" * (1 + len(names)) + "}",
        r"\toprule",
        " & ".join(map(escape_latex, heads)) + r" \\",
        r"\midrule",
        *(
            " & ".join(
                [
                    escape_latex(row["rank"]) or "--",
                    escape_latex(row["model"]),
                    _latex_cell("dynascore", row["dynascore"]),
                    *(_latex_cell(name, row["metrics"][name]) for name in names),
                ]
            )
            + r" \\"
            for row in table["rows"]
        ),
        r"\bottomrule",
        *(rf"\multicolumn{{{3 + len(names)}}}{{l}}{{{escape_latex(note)}}} \\" for note in below),
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _counting(table: Table) -> list[Mapping[str, Any]]:
    """Return the metrics with a weight, and the main one."""
    weights = table.get("weights", {}).get("metrics")
    return [
        metric
        for metric in table["metrics"]
        if weights is None or weights.get(metric["name"]) or metric["name"] == table.get("main")
    ]


def _ranges_of(table: Table) -> str:
    """Explain that scores are ranges where something was not measured; "" when none is."""
    is_range = any(
        row["dynascore"]["value"] is None and row["dynascore"].get("least") is not None
        for row in table["rows"]
    )
    return "Ranges: not every metric was measured; from the worst case to the best." * is_range


def _latex_head(metric: Mapping[str, Any]) -> str:
    name, judge = metric["name"], metric.get("judge")
    more = f"; {judge_words(judge)}" if judge else ""
    if name.startswith(CUSTOM_PREFIX):
        more = f"; version {metric['version']}"
    return f"{name} ({UNITS.get(name, '%')}{more})"


def formula_of(table: Table, **language: Any) -> str:
    """Return how the scores of a table are made, with its anchors or exchange rates, in a sentence.

    Empty for a table without either. language: as of `formula`.
    """
    if anchors := table.get("anchors"):
        return formula(table["weights"]["metrics"], table["main"], anchors, **language)
    if not table.get("rates"):
        return ""
    # Snapshots of former releases do not say them; memory alone had one then.
    budgets = table.get("budgets", {"memory": MEMORY_BUDGET})
    return priced_formula(
        table["weights"]["metrics"], table["main"], table["rates"], budgets, **language
    )


def digits_of(name: str, value: float) -> int:
    """Return how many digits after the point people read of a metric's value."""
    if name in FINE:
        return 2
    return 0 if name == "throughput" and value >= 100 else 1


def _latex_cell(name: str, cell: Mapping[str, float | None]) -> str:
    value, low, high = (cell[part] for part in PARTS)
    least, most = (cell.get(end, value) for end in ("least", "most"))
    if least is None or most is None:
        return "--"
    digits = digits_of(name, least)
    shown = f"{least:.{digits}f}" + (f"--{most:.{digits}f}" if value is None else "")
    if low is None or high is None:
        return shown
    return f"{shown} [{low:.{digits}f}, {high:.{digits}f}]"


def escape_latex(text: str) -> str:
    r"""Escape a text for LaTeX, on one line.

    >>> latex("50 % of a_b\n")
    '50 \\% of a\\_b'
    """
    return "".join(LATEX.get(letter, letter) for letter in " ".join(text.split()))


def snapshot_bibtex(table: Table, number: int, title: str, sha256: str, address: str) -> str:
    """Write an entry that cites a snapshot."""
    code = table["task"]["code"]
    year, month, _ = table["date"].split("-")
    name = title or f"Leaderboard of {table['task']['name']}, snapshot {number}"
    key = re.sub(r"[^a-z0-9-]", "", f"dynabench-{code}-{number}")
    fields = {
        "title": f"{{{escape_latex(name)}}}",
        "author": "{Dynabench}",
        "year": year,
        "month": str(int(month)),
        "howpublished": rf"\url{{{address}}}",
        "note": f"Snapshot {number} of {table['date']}, SHA-256 {sha256}",
    }
    inner = ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items())
    return f"@misc{{{key},\n{inner}\n}}\n"
