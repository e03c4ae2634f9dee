"""An arena's board for other programs and for papers."""

from collections.abc import Mapping
from typing import Any

from core.files.tables import csv_text
from leaderboard.board.exports import escape_latex

Table = Mapping[str, Any]
COLUMNS = ("rank", "name", "strength", "low", "high", "battles", "wins", "ties")
STYLED = ("rank", "strength", "low", "high")
"""Columns that are there once more, `style_…`, with the style of answers held constant."""


def arena_csv(table: Table) -> str:
    """Write a line for each model; unknown values are empty."""
    styled = {model["name"]: model for model in (table["style"] or {"models": ()})["models"]}
    return csv_text(
        [
            [*COLUMNS, *(f"style_{name}" for name in STYLED)],
            *(_cells(model, styled.get(model["name"], {})) for model in table["models"]),
        ]
    )


def _cells(model: Mapping[str, Any], styled: Mapping[str, Any]) -> list[Any]:
    return [*(model[name] for name in COLUMNS), *(styled.get(name) for name in STYLED)]


def arena_latex(table: Table, address: str = "") -> str:
    """Write a table for a paper (package booktabs)."""
    lines = [
        rf"% {escape_latex(table['task']['code'])} on {table['date']}: "
        rf"{table['battles']} comparisons by {table['voters']} voters",
        *([f"% {escape_latex(address)}"] if address else []),
        r"\begin{tabular}{rlrrrr}",
        r"\toprule",
        r"Rank & Model & Strength & Battles & Wins & Ties \\",
        r"\midrule",
        *(_latex_line(model) for model in table["models"]),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_line(model: Mapping[str, Any]) -> str:
    value, low, high = (model[part] for part in ("strength", "low", "high"))
    strength = "--" if value is None else f"${value:.2f}$"
    if low is not None and high is not None:
        strength += f" [${low:.2f}$, ${high:.2f}$]"
    counts = (str(model[part]) for part in ("battles", "wins", "ties"))
    return (
        " & ".join([str(model["rank"] or "--"), escape_latex(model["name"]), strength, *counts])
        + r" \\"
    )
