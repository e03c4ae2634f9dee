"""/styleguide/: every component of the pages with one example, while DEBUG is on."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from core import charts
from core.charts import Dot, Heat, Point
from validation.rates.rates import Rate

ROUNDS = ("1", "2", "3")
WEEKS = [Point(f"week {n}", n) for n in range(1, 13)]


def _build_points(*values: float) -> list[Point]:
    """Return one point per round, each with an interval of ten percentage points."""
    return [
        Point(label, value, max(value - 0.05, 0), min(value + 0.05, 1))
        for label, value in zip(ROUNDS, values, strict=True)
    ]


@login_not_required
def styleguide(request: HttpRequest) -> HttpResponse:
    """Show every component with made-up numbers. Raises Http404 without DEBUG."""
    if not settings.DEBUG:
        raise Http404
    people, model = _build_points(0.93, 0.92, 0.94), _build_points(0.58, 0.66, 0.75)
    funnel = {"Tries": 214, "Fooled": 96, "Judged": 80, "Valid": 71}
    values = {
        "tasks": range(1, 7),
        "line_chart": charts.line_chart({"People": people, "Model": model}, title="By round"),
        "funnel": charts.bars(funnel, title="From tries to valid examples", is_funnel=True),
        "balance": charts.stacked_bars(
            {"Round 1": [40, 25, 31]}, ("positive", "neutral", "negative"), title="Labels"
        ),
        "matrix": charts.matrix(
            ("A", "B"),
            [("A", [Heat("–"), Heat("62%", 0.62)]), ("B", [Heat("38%", 0.38), Heat("–")])],
            title="How often the row beats the column",
            corner="Model",
        ),
        "columns": charts.column_chart({"Tries": WEEKS, "Valid": WEEKS[::-1]}, title="By week"),
        "scatter": charts.scatter(
            [Dot("A", 10, 0.8, "#charts", on_line=True), Dot("B", 40, 0.6, "#charts")],
            title="Accuracy and speed",
            axes=("Speed", "Accuracy"),
        ),
        "whisker": charts.whisker(Point("", 0.6, 0.5, 0.75), (0, 1)),
        "week": charts.sparkline([3, 5, 2, 8, 7, 9]),
        "many": {"vmer": Rate(0.31, 0.22, 0.41, 96, "wilson", clusters=12), "decided": 80},
        "few": {"vmer": Rate(0.5, 0.2, 0.8, 14, "wilson", clusters=2), "decided": 12},
    }
    return render(request, "styleguide.html", values)
