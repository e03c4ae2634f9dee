"""The plots of docs/boards.md, from bench/boards.json.

python -m bench.boards.plots    # after a change of this file
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "bench" / "boards.json"
PICTURES = ROOT / "docs" / "pictures"
NAMES = {"sentiment": "Sentiment", "nli": "NLI", "hate-speech": "Hate speech"}
WORDS = {"next": "next round", "own": "its own round", "forgotten": "earlier round"}
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
    for name, plot in pictures(tasks).items():
        (PICTURES / name).write_text(plot)


def changes(tasks: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each change with its task."""
    for task, of in tasks.items():
        yield from ((task, one) for one in of["changes"])


def _text(value: float, *, sign: bool) -> str:
    return f"{value:{'+' if sign else ''}.1f}".replace("-", "−")


def pictures(tasks: Mapping[str, Any]) -> dict[str, str]:
    """The plots by file name."""
    models = {
        NAMES[task]: [
            Dot(_ranked(one), one["accuracy"], SHADES.get(one["kind"], "b")) for one in of["models"]
        ]
        for task, of in tasks.items()
    }
    asked = {
        WORDS[question]: [
            Dot(f"{NAMES[task]}, {one['sets'][0]}: {_short(one)}", one["points"], "a")
            for task, one in changes(tasks)
            if one["question"] == question
        ]
        for question in WORDS
    }
    people = {
        NAMES[task]: [
            dot
            for one in of["people"]
            for best in (_model(of, one["best"]),)
            for dot in (
                Dot(f"{one['set']}: people", one["people"], SHADES["people"]),
                Dot(one["best"], best["sets"][one["set"]], SHADES.get(best["kind"], "b")),
            )
        ]
        for task, of in tasks.items()
        if of["people"]
    }
    return {
        "boards-models.svg": svg(models, "Accuracy in percent (possible ranks)", (0, 100)),
        "boards-rounds.svg": svg(asked, "Points of accuracy gained", _around_0(asked)),
        "boards-people.svg": svg(people, "Accuracy in percent", (0, 100)),
    }  # fmt: skip


def _around_0(panels: Panels) -> tuple[float, float]:
    """A scale with 0 in the middle that has room for all whiskers, in steps of 20."""
    ends = [
        abs(dot.cell[end]) for dots in panels.values() for dot in dots for end in ("low", "high")
    ]
    most = 20 * ceil(max(ends, default=1) / 20)
    return -most, most


def _ranked(one: Mapping[str, Any]) -> str:
    return f"{one['model']} ({one['first']}–{one['last']})"


def _short(one: Mapping[str, Any]) -> str:
    return f"{one['before']} → {one['after']}".replace("MiniLM, ", "")


def _model(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(one for one in of["models"] if one["model"] == name)


def svg(panels: Panels, title: str, scale: tuple[float, float]) -> str:
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
            middle, value = y - 4, _text(dot.cell["value"], sign=low < 0)
            lines += [
                f'<text class="end" x="{LEFT - 10}" y="{y}">{escape(dot.label)}</text>',
                f'<g class="{dot.shade}"><path class="bar" d="M{ends[0]} {middle}H{ends[1]}"/>'
                f'<circle cx="{x(dot.cell["value"])}" cy="{middle}" r="4"/></g>',
                f'<text x="{LEFT + PLOT + 12}" y="{y}">{value}</text>',
            ]
        y += 6
    ticks = [low + part * (high - low) / 4 for part in range(5)]
    grid = [
        f'<path class="{"zero" if tick == 0 else "grid"}" d="M{x(tick)} {TOP}V{y}"/>'
        f'<text class="middle" x="{x(tick)}" y="{y + 16}">{_text(tick, sign=False)[:-2]}</text>'
        for tick in ticks
    ]
    size = f"{LEFT + PLOT + RIGHT} {y + 26}"
    head = f'<text class="head" x="8" y="18">{escape(title)}</text>'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>", head, *grid, *lines, "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    write_plots(json.loads(FIGURES.read_text()))
