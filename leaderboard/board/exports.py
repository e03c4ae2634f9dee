"""A board, or a snapshot of one, for other programs and for papers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from core.files.tables import build_csv_text
from core.text.words import gettext_noop
from leaderboard.ranking.dynascore import MEMORY_BUDGET
from leaderboard.ranking.formula import describe_formula, describe_priced_formula
from tasks.config.schema import CUSTOM_PREFIX

Table = Mapping[str, Any]
NUMBER_PARTS = ("value", "low", "high")
VOLATILE_KEYS = ("date", "code", "config_sha256", "formula", "budgets")
"""Parts that are ignored when boards are compared; the last two follow from other parts."""
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
UNITS = {
    "throughput": "examples/s", "latency_p95": "s", "memory": "GiB", "memory_mean": "GiB",
    "robustness_drop": "points", "fairness_gap": "points",
}  # fmt: skip
METHOD_NOTE = gettext_noop(
    "Intervals (95%) come from a bootstrap over examples. A Dynascore's interval combines "
    "those of its metrics (MOVER)."
)
"""How the intervals of a board are computed; docs/statistics.md has the details."""
PRECISE_METRICS = ("memory", "memory_mean", "latency_p95")
"""Metrics with two digits after the point."""
AGREEMENT_COLUMNS = {
    "kappa_low": "low",
    "kappa": "kappa",
    "kappa_high": "high",
    "judged_by_both": "n",
    "is_calibrated": "is_calibrated",
}
"""Columns of a file about a judge, and the names of their values in a table."""


def have_same_values(before: Table, after: Table) -> bool:
    """Return whether two boards are the same in everything but VOLATILE_KEYS."""
    return _select_lasting_parts(before) == _select_lasting_parts(after)


def _select_lasting_parts(table: Table) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in VOLATILE_KEYS}


def write_table_json(table: Table) -> str:
    """Return the whole table as JSON."""
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def write_board_csv(table: Table) -> str:
    """Return CSV with a row for each model and intervals; unmeasured values are empty."""
    names = [metric["name"] for metric in table["metrics"]]
    scaled_metrics = _list_weighted_scales(table)
    shared_cells = [*_iter_judge_cells(table), *_iter_version_cells(table)]  # the same in each line
    heads = ["rank", "first", "last", "model", "owner", "team", "id"]
    heads += _list_number_heads("dynascore")
    heads += ["dynascore_least", "dynascore_most"]
    for name in names:
        heads += _list_number_heads(name)
    heads += [f"points_{name}" for name in scaled_metrics]
    heads += [head for head, _ in shared_cells]
    estimated_sets = _list_estimated_sets(table)
    for name in estimated_sets:
        heads += _list_number_heads(f"whole_{name}_estimated")
    heads += ["in_the_loop", "not_run", "provisional", "formula"]
    rows = [heads]
    # The same in each line, so that a line is complete even if it is copied elsewhere.
    early_note, words = _describe_early_sets(table), describe_table_formula(table)
    for row in table["rows"]:
        cells = [row[head] for head in ("rank", "first", "last", "model", "owner")]
        cells += [row.get("team", ""), row["id"]]  # snapshots of earlier releases have no teams
        cells += _list_score_cells(row["dynascore"])
        for name in names:
            cells += [row["metrics"][name][part] for part in NUMBER_PARTS]
        cells += [row.get("points", {}).get(name) for name in scaled_metrics]
        cells += [cell for _, cell in shared_cells]
        for name in estimated_sets:
            estimate = row["whole_rounds"].get(name, {})
            cells += [estimate.get(part) for part in NUMBER_PARTS]
        cells += ["; ".join(row["in_the_loop"]), "; ".join(row["missing"]), early_note, words]
        rows.append(cells)
    return build_csv_text(rows)


def _list_weighted_scales(table: Table) -> list[str]:
    """Return the metrics that add points to an anchored score."""
    if not table.get("anchors"):
        return []
    weights = table["weights"]["metrics"]
    return [name for name in table["anchors"].get("scales", {}) if weights.get(name)]


def _list_estimated_sets(table: Table) -> list[str]:
    """Return the sets on whose whole rounds scores are estimated; old snapshots have none."""
    names: set[str] = set()
    for row in table["rows"]:
        names.update(row.get("whole_rounds", ()))
    return sorted(names)


def _list_number_heads(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def _list_score_cells(score: Mapping[str, Any]) -> list[Any]:
    """Return a score with its interval and its range; old snapshots have no ranges."""
    cells = [score[part] for part in NUMBER_PARTS]
    cells += [score.get(end, score["value"]) for end in ("least", "most")]
    return cells


def _iter_judge_cells(table: Table) -> Iterator[tuple[str, Any]]:
    """Yield column names and values for a metric's judge and its agreement with people."""
    for metric in table["metrics"]:
        if judge := metric.get("judge"):
            yield f"{metric['name']}_judge", f"{judge['name']} ({judge['number']})"
            for head, name in AGREEMENT_COLUMNS.items():
                yield f"{metric['name']}_{head}", judge["agreement"][name]


def _iter_version_cells(table: Table) -> Iterator[tuple[str, int]]:
    """Yield column names and values for the versions of the owners' metrics."""
    for metric in table["metrics"]:
        if metric["name"].startswith(CUSTOM_PREFIX):
            yield f"{metric['name']}_version", metric["version"]


def describe_judge(judge: Mapping[str, Any]) -> str:
    """Describe a judge and its agreement with people in plain English."""
    agreement = judge["agreement"]
    words = "not calibrated"
    if agreement["is_calibrated"]:
        words = f"kappa at least {agreement['low']:.2f}, measured {agreement['kappa']:.2f}"
    return f"judge {judge['number']}, {judge['name']}: {words} on {agreement['n']} examples"


def describe_early_set(board_set: Table) -> str:
    """Describe in English how much of a set's round was judged when the set was taken.

    Returns "" if the round was completely judged.
    """
    if not board_set.get("is_provisional"):
        return ""
    if not board_set.get("to_judge"):
        return "provisional"
    return f"provisional, {board_set['judged']:,} of {board_set['to_judge']:,} judged"


def select_provisional_sets(sets: Iterable[Table]) -> list[Table]:
    """Return the counting sets of a table whose rounds were still being judged."""
    return [each for each in sets if each.get("counts", True) and each.get("is_provisional")]


def _describe_early_sets(table: Table) -> str:
    """List the sets whose scores may still change, each with the judged share of its round."""
    sentences = []
    for each in select_provisional_sets(table["sets"]):
        sentences.append(f"{each['name']} v{each['version']}: {describe_early_set(each)}")
    return "; ".join(sentences)


def write_board_latex(table: Table, address: str = "") -> str:
    """Return a LaTeX table (package booktabs) of the counting metrics, intervals in brackets."""
    metrics = _select_counting_metrics(table)
    sets = ", ".join(f"{each['name']} v{each['version']}" for each in table["sets"])
    comments = [address, describe_table_formula(table)]
    comments += [notice for notice in table.get("notices", ()) if notice == METHOD_NOTE]
    lines = [rf"% {escape_latex(table['task']['code'])} on {table['date']}: {escape_latex(sets)}"]
    lines += [f"% {escape_latex(comment)}" for comment in comments if comment]
    lines += [r"\begin{tabular}{ll" + "r" * (1 + len(metrics)) + "}", r"\toprule"]
    heads = ["Rank", "Model", "Dynascore"]
    heads += [_format_latex_head(metric) for metric in metrics]
    lines += [_format_latex_row([escape_latex(head) for head in heads]), r"\midrule"]
    for row in table["rows"]:
        cells = [escape_latex(row["rank"]) or "--", escape_latex(row["model"])]
        cells.append(_format_latex_cell("dynascore", row["dynascore"]))
        for metric in metrics:
            cells.append(_format_latex_cell(metric["name"], row["metrics"][metric["name"]]))
        lines.append(_format_latex_row(cells))
    lines.append(r"\bottomrule")
    for note in (_describe_early_sets(table), _explain_ranges(table)):
        if note:
            text = rf"\multicolumn{{{3 + len(metrics)}}}{{l}}{{{escape_latex(note)}}}"
            lines.append(_format_latex_row([text]))
    lines.append(r"\end{tabular}")
    return "\n".join(lines) + "\n"


def _format_latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _select_counting_metrics(table: Table) -> list[Mapping[str, Any]]:
    """Return the main metric and those with a weight; all if the table has no weights."""
    weights = table.get("weights", {}).get("metrics")
    if weights is None:
        return list(table["metrics"])
    counting_metrics = []
    for metric in table["metrics"]:
        if weights.get(metric["name"]) or metric["name"] == table.get("main"):
            counting_metrics.append(metric)
    return counting_metrics


def _explain_ranges(table: Table) -> str:
    """Explain that scores are ranges if a metric was not measured; return "" if none is a range."""
    for row in table["rows"]:
        score = row["dynascore"]
        if score["value"] is None and score.get("least") is not None:
            return "Ranges from the worst to the best case: not every metric was measured."
    return ""


def _format_latex_head(metric: Mapping[str, Any]) -> str:
    name = metric["name"]
    notes = [UNITS.get(name, "%")]
    if not metric.get("higher_is_better", True):
        notes.append("lower is better")
    if name.startswith(CUSTOM_PREFIX):
        notes.append(f"version {metric['version']}")
    if judge := metric.get("judge"):
        notes.append(describe_judge(judge))
    return f"{name} ({'; '.join(notes)})"


def describe_table_formula(table: Table, **language: Any) -> str:
    """Return a sentence that explains a table's scores, with its anchors or exchange rates.

    Empty for a table without either. language: arguments for `describe_formula`.
    """
    if anchors := table.get("anchors"):
        return describe_formula(table["weights"]["metrics"], table["main"], anchors, **language)
    if not table.get("rates"):
        return ""
    # Snapshots of earlier releases have no budgets; only memory had one then.
    budgets = table.get("budgets", {"memory": MEMORY_BUDGET})
    return describe_priced_formula(
        table["weights"]["metrics"], table["main"], table["rates"], budgets, **language
    )


def choose_digits(name: str, value: float) -> int:
    """Return the number of decimals to show of a metric's value."""
    if name in PRECISE_METRICS:
        return 2
    return 0 if name == "throughput" and value >= 100 else 1


def _format_latex_cell(name: str, cell: Mapping[str, float | None]) -> str:
    value, low, high = (cell[part] for part in NUMBER_PARTS)
    lowest, highest = cell.get("least", value), cell.get("most", value)
    if lowest is None or highest is None:
        return "--"
    # Chosen once, so that both ends of a range have the same number of decimals.
    digits = choose_digits(name, lowest)
    text = f"{lowest:.{digits}f}"
    if value is None:
        text += f"--{highest:.{digits}f}"
    if low is None or high is None:
        return text
    return f"{text} [{low:.{digits}f}, {high:.{digits}f}]"


def escape_latex(text: str) -> str:
    r"""Escape a text for LaTeX and join its lines.

    >>> escape_latex("50 % of a_b\n")
    '50 \\% of a\\_b'
    """
    # A line break in a name would end the comment or the row.
    one_line = " ".join(text.split())
    return "".join(LATEX_ESCAPES.get(letter, letter) for letter in one_line)


def write_snapshot_bibtex(table: Table, number: int, title: str, sha256: str, address: str) -> str:
    """Return a BibTeX entry that cites a snapshot."""
    code = table["task"]["code"]
    year, month, _ = table["date"].split("-")
    name = title or f"Leaderboard of {table['task']['name']}, snapshot {number}"
    # BibTeX keys allow few characters.
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
