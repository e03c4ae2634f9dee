"""An arena's board for other programs and for papers."""

from collections.abc import Mapping
from typing import Any

from core.files.tables import build_csv_text
from leaderboard.board.exports import escape_latex

Table = Mapping[str, Any]
COLUMNS = ("rank", "name", "strength", "low", "high", "battles", "wins", "ties")
STYLE_FIELDS = ("rank", "strength", "low", "high")
"""Columns that are repeated as `style_…`, with the style of answers held constant."""


def write_arena_csv(table: Table) -> str:
    """Return CSV with a row for each model; unknown values are empty."""
    styled_models = {}
    if table["style"]:
        styled_models = {model["name"]: model for model in table["style"]["models"]}
    rows: list[list[Any]] = [list(COLUMNS) + [f"style_{name}" for name in STYLE_FIELDS]]
    for model in table["models"]:
        cells = [model[name] for name in COLUMNS]
        cells += [styled_models.get(model["name"], {}).get(name) for name in STYLE_FIELDS]
        rows.append(cells)
    return build_csv_text(rows)


def write_arena_latex(table: Table, address: str = "") -> str:
    """Return a LaTeX table for a paper (package booktabs)."""
    lines = [
        rf"% {escape_latex(table['task']['code'])} on {table['date']}: "
        rf"{table['battles']} comparisons by {table['voters']} voters"
    ]
    if address:
        lines.append(f"% {escape_latex(address)}")
    lines += [
        r"\begin{tabular}{rlrrrr}",
        r"\toprule",
        r"Rank & Model & Strength & Battles & Wins & Ties \\",
        r"\midrule",
    ]
    lines += [_format_latex_line(model) for model in table["models"]]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _format_latex_line(model: Mapping[str, Any]) -> str:
    value, low, high = model["strength"], model["low"], model["high"]
    strength = "--" if value is None else f"${value:.2f}$"
    if low is not None and high is not None:
        strength += f" [${low:.2f}$, ${high:.2f}$]"
    cells = [str(model["rank"] or "--"), escape_latex(model["name"]), strength]
    cells += [str(model[name]) for name in ("battles", "wins", "ties")]
    return " & ".join(cells) + r" \\"
