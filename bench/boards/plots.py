"""The plots of docs/boards.md, from bench/boards.json.

python -m bench.boards.plots    # after a change of this file
"""

import json
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "bench" / "boards.json"
PICTURES = ROOT / "docs" / "pictures"
TASK_NAMES = {"sentiment": "Sentiment", "nli": "NLI", "hate-speech": "Hate speech"}
QUESTION_TITLES = {"next": "next round", "own": "its own round", "forgotten": "earlier round"}
SHADES = {
    "language-model": "c", "minilm": "a", "minilm-int8": "a", "frozen": "a", "starter": "a",
    "starter-int8": "a", "people": "d",
}  # fmt: skip
"""The colour of a kind's dot; others: b."""
LEFT, PLOT, RIGHT, LINE, TOP = 370, 340, 60, 20, 34
STYLE = """
text{font:13px system-ui,sans-serif;fill:#1f2328}.grid{stroke:#8886}.zero{stroke:#888}
.bar{stroke-width:2}.a{stroke:#0969da;fill:#0969da}.b{stroke:#7d5c00;fill:#7d5c00}
.c{stroke:#8250df;fill:#8250df}.d{stroke:#1a7f37;fill:#1a7f37}.end{text-anchor:end}
.middle{text-anchor:middle}.head{font-weight:600}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.a{stroke:#58a6ff;fill:#58a6ff}
.b{stroke:#d4a72c;fill:#d4a72c}.c{stroke:#bc8cff;fill:#bc8cff}.d{stroke:#3fb950;fill:#3fb950}}
"""
Cell = Mapping[str, float]


class Dot(NamedTuple):
    """A value with its interval; shade: a, b, c or d."""

    label: str
    cell: Cell
    shade: str


Panels = Mapping[str, Sequence[Dot]]
"""Dots under each other, by the heading above them."""


def write_plots(tasks: Mapping[str, Any]) -> None:
    """Replace the plots."""
    for name, plot in draw_plots(tasks).items():
        (PICTURES / name).write_text(plot)


def _format_value(value: float, *, sign: bool) -> str:
    return f"{value:{'+' if sign else ''}.1f}".replace("-", "−")


def draw_plots(tasks: Mapping[str, Any]) -> dict[str, str]:
    """Return the plots by file name."""
    models = {TASK_NAMES[task]: _build_model_dots(board) for task, board in tasks.items()}
    gains = {
        words: _build_gain_dots(tasks, question) for question, words in QUESTION_TITLES.items()
    }
    people = {
        TASK_NAMES[task]: _build_people_dots(board)
        for task, board in tasks.items()
        if board["people"]
    }
    return {
        "boards-models.svg": draw_svg(models, "Accuracy in percent (possible ranks)", (0, 100)),
        "boards-rounds.svg": draw_svg(
            gains, "Points of accuracy gained", _find_symmetric_scale(gains)
        ),
        "boards-people.svg": draw_svg(people, "Accuracy in percent", (0, 100)),
    }


def _build_model_dots(board: Mapping[str, Any]) -> list[Dot]:
    """Return the accuracy of each model of a task."""
    return [
        Dot(_format_rank(model), model["accuracy"], _choose_shade(model))
        for model in board["models"]
    ]


def _build_gain_dots(tasks: Mapping[str, Any], question: str) -> list[Dot]:
    """Return what each training gained on the sets that a question is about, over all tasks."""
    dots = []
    for task, board in tasks.items():
        for change in board["changes"]:
            if change["question"] == question:
                label = f"{TASK_NAMES[task]}, {change['sets'][0]}: {_shorten_change(change)}"
                dots.append(Dot(label, change["points"], "a"))
    return dots


def _build_people_dots(board: Mapping[str, Any]) -> list[Dot]:
    """Return people's accuracy on each set, and below it that of the best model."""
    dots = []
    for compared in board["people"]:
        name, best = compared["set"], _find_model(board, compared["best"])
        dots.append(Dot(f"{name}: people", compared["people"], SHADES["people"]))
        dots.append(Dot(compared["best"], best["sets"][name], _choose_shade(best)))
    return dots


def _choose_shade(model: Mapping[str, Any]) -> str:
    """Return the colour of a model's kind."""
    return SHADES.get(model["kind"], "b")


def _find_symmetric_scale(panels: Panels) -> tuple[float, float]:
    """A scale with 0 in the middle that has room for all whiskers, in steps of 20."""
    ends = [
        abs(dot.cell[end]) for dots in panels.values() for dot in dots for end in ("low", "high")
    ]
    most = 20 * ceil(max(ends, default=1) / 20)
    return -most, most


def _format_rank(model: Mapping[str, Any]) -> str:
    return f"{model['model']} ({model['first']}–{model['last']})"


def _shorten_change(change: Mapping[str, Any]) -> str:
    return f"{change['before']} → {change['after']}".replace("MiniLM, ", "")


def _find_model(board: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(model for model in board["models"] if model["model"] == name)


def draw_svg(panels: Panels, title: str, scale: tuple[float, float]) -> str:
    """Dots with whiskers in light and dark colours, readable without them: each has its label."""
    low, high = scale
    lines: list[str] = []
    y = TOP

    def x(value: float) -> float:
        inside = min(max(value, low), high)
        return round(LEFT + PLOT * (inside - low) / (high - low), 1)

    for heading, dots in panels.items():
        y += LINE
        lines.append(f'<text class="head" x="8" y="{y}">{escape(heading)}</text>')
        for dot in dots:
            y += LINE
            ends = x(dot.cell["low"]), x(dot.cell["high"])
            middle, value = y - 4, _format_value(dot.cell["value"], sign=low < 0)
            lines += [
                f'<text class="end" x="{LEFT - 10}" y="{y}">{escape(dot.label)}</text>',
                f'<g class="{dot.shade}"><path class="bar" d="M{ends[0]} {middle}H{ends[1]}"/>'
                f'<circle cx="{x(dot.cell["value"])}" cy="{middle}" r="4"/></g>',
                f'<text x="{LEFT + PLOT + 12}" y="{y}">{value}</text>',
            ]
        y += 6
    ticks = [low + part * (high - low) / 4 for part in range(5)]
    grid = []
    for tick in ticks:
        tick_text = _format_value(tick, sign=False)[:-2]
        grid.append(
            f'<path class="{"zero" if tick == 0 else "grid"}" d="M{x(tick)} {TOP}V{y}"/>'
            f'<text class="middle" x="{x(tick)}" y="{y + 16}">{tick_text}</text>'
        )
    size = f"{LEFT + PLOT + RIGHT} {y + 26}"
    head = f'<text class="head" x="8" y="18">{escape(title)}</text>'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>", head, *grid, *lines, "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    write_plots(json.loads(FIGURES.read_text()))
