"""The style guide, /styleguide/: an example of every component. It exists only with DEBUG."""

from collections.abc import Iterator
from dataclasses import replace

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from core import charts
from core.charts import Point
from core.figures.figure import Figure, FigureTable, LegendItem
from core.figures.planes import PlaneDot, build_plane_scene
from core.figures.plots import (
    Bracket,
    ColumnPart,
    PlotLine,
    build_column_scene,
    build_line_legend,
    build_line_scene,
)
from core.figures.rows import PERCENT_AXIS, AxisRow, RowAxis, build_rows_scene
from core.figures.wins import WinCell, draw_wins
from dynabench.templatetags.icons import PATHS
from validation.rates.rates import Rate

ROUNDS = ("1", "2", "3")
LONG_NAME = "a-model-of-sixty-characters-that-nobody-would-ever-call-so-x"


def _build_points(*values: float) -> list[Point]:
    """Return one point per round, each with an interval of ten percentage points."""
    return [
        Point(label, value, max(value - 0.05, 0), min(value + 0.05, 1))
        for label, value in zip(ROUNDS, values, strict=True)
    ]


def _build_figures() -> Iterator[Figure]:
    """Yield a chart of each kind, with long names, small numbers of examples and shared ranks."""
    people_points, model_points = _build_points(0.93, 0.92, 0.94), _build_points(0.58, 0.46, 0.4)
    thin_points = [replace(point, is_thin=True) for point in _build_points(0.4, 0.43, 0.38)]
    lines = [
        PlotLine("People", people_points, "people"),
        PlotLine(LONG_NAME, model_points, "chosen"),
        PlotLine("lantern-7b", thin_points),
    ]
    yield Figure(
        name="lines",
        title="People still lead by 54 points in round 3",
        subtitle="Accuracy by round with 95% intervals, n = 223 examples, 29 Nov 2026",
        scene=build_line_scene(lines, top=1, bracket=Bracket(0.94, 0.4, "54 points (46 to 61)")),
        table=FigureTable(["People"], [("1", ["93.0"]), ("2", ["92.0"]), ("3", ["94.0"])]),
        legend=build_line_legend(lines),
        has_end_labels=True,
    )
    rows = []
    for number in range(30):
        rank = "1–3" if number < 3 else str(number + 1)
        name = LONG_NAME if number == 1 else f"model-{number + 1}"
        value = 90.0 - 2.5 * number
        rows.append(
            AxisRow(
                name, value, value - 6, value + 5, text=f"{value:.1f}", rank=rank, group=number < 3
            )
        )
    yield Figure(
        name="rows",
        title="The first 3 models can't be told apart yet",
        subtitle="Dynascore with 95% intervals, 30 models, 29 Nov 2026",
        scene=build_rows_scene(rows, RowAxis(0, 100, PERCENT_AXIS.ticks, band=(88, 94))),
    )
    parts = [
        ColumnPart("held bar", "model was right", [4, 6, 2, 0, 7]),
        ColumnPart("waiting bar", "wrong, waiting", [1, 0, 3, 0, 2]),
        ColumnPart("catch bar", "catch", [2, 5, 1, 0, 4]),
        ColumnPart("refuted bar", "refuted", [1, 1, 0, 0, 2]),
    ]
    yield Figure(
        name="columns",
        title="12 of 41 tries are catches",
        subtitle="Tries by day",
        scene=build_column_scene(("1", "2", "3", "4", "5"), parts, css_class="days"),
        legend=[LegendItem(part.role, part.name) for part in parts],
    )
    dots = [
        PlaneDot("fast", 40, 60, "#charts", None, (55, 65), True),
        PlaneDot("sure", 10, 88, "#charts", None, (84, 92), True),
        PlaneDot("neither", 9, 50, "#charts"),
    ]
    yield Figure(
        name="plane",
        title="2 models have the best measured balance of Accuracy and Throughput",
        subtitle="Accuracy (%) against Throughput (examples/s), 3 models",
        scene=build_plane_scene(dots, ("Throughput", "Accuracy"), (False, False)),
    )


@login_not_required
def show_styleguide(request: HttpRequest) -> HttpResponse:
    """Show every component with made-up numbers. Raises Http404 without DEBUG."""
    if not settings.DEBUG:
        raise Http404
    funnel = {"Tries": 214, "Model was wrong": 96, "Judged of these": 80, "Catches": 71}
    values = {
        "tasks": range(1, 7),
        "icons": PATHS,
        "states": ("draft", "ready", "open", "closed", "released"),
        "long_name": LONG_NAME,
        "columns": range(1, 15),
        "code": "from datasets import load_dataset",
        "funnel": charts.draw_bars(funnel, title="From tries to catches", is_funnel=True),
        "balance": charts.draw_stacked_bars(
            {"Round 1": [40, 25, 31]}, ("positive", "neutral", "negative"), title="Labels"
        ),
        "matrix": draw_wins(
            ("model-1", LONG_NAME),
            [
                [WinCell(None), WinCell(0.72)],
                [WinCell(0.28), WinCell(None)],
            ],
            title="How often the row beats the column",
            corner="Model",
        ),
        "figures": list(_build_figures()),
        "week": charts.draw_sparkline([3, 5, 2, 8, 7, 9]),
        "many": {"vmer": Rate(0.31, 0.22, 0.41, 96, "wilson", clusters=12), "decided": 80},
        "few": {"vmer": Rate(0.5, 0.2, 0.8, 14, "wilson", clusters=2), "decided": 12},
    }
    return render(request, "styleguide.html", values)
