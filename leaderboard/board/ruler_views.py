"""The leaderboard's page on one ruler: all models and rounds on one axis."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from core.days import get_today
from core.figures.figure import Figure
from core.figures.rows import PERCENT_AXIS, draw_axis
from core.web.downloads import respond_with_attachment
from core.web.lists import list_page
from evaluation.models import Ruler
from tasks.models import Task
from tasks.permissions import can_edit

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.matrix import Matrix

PAGE_ROWS = 25
"""Models on a page."""


def show_ruler_board(request: HttpRequest, task: Task, matrix: "Matrix") -> HttpResponse:
    """Show what each model is expected to score on each round, or why that isn't known.

    With `format`, return the public numbers as CSV or JSON: status 409 without a ruler.
    """
    from leaderboard.board.one_ruler import (
        build_ruler_board,
        build_ruler_body,
        find_obstacle,
        write_ruler_csv,
    )

    found, format = find_obstacle(task, matrix), request.GET.get("format", "")
    if format and format not in ("csv", "json"):
        text = _("Unknown format %(format)r. Use csv or json.") % {"format": format[:20]}
        return HttpResponse(f"{text}\n", status=400, content_type="text/plain; charset=utf-8")
    values = {"task": task, "matrix": matrix, "mine": "mine" in request.GET}
    if not isinstance(found, Ruler):
        if format:
            # Programs must not take an empty file for an answer.
            text = _("This task has no ruler with expected scores yet.")
            return HttpResponse(f"{text}\n", status=409, content_type="text/plain; charset=utf-8")
        values |= {"why": found.value, "may_edit": can_edit(request.user, task)}
        return render(request, "leaderboard/one_ruler.html", values)
    board = build_ruler_board(found, matrix)
    if format == "json":
        return JsonResponse(build_ruler_body(board))
    if format == "csv":
        return respond_with_attachment(write_ruler_csv(board), f"{task.code}-ruler.csv", "text/csv")
    # Only the page's scores: a thousand models on 20 sets have 20,000.
    page = list_page(request, board.lines, size=PAGE_ROWS)
    scores = board.read_scores(page.rows)
    values |= {"board": board, "page": page, "axis_plot": draw_axis(PERCENT_AXIS)}
    values["rows"] = [(line, scores[line.model.id]) for line in page]
    return render(request, "leaderboard/one_ruler.html", values)


def build_figure_of(task: Task, matrix: "Matrix") -> Figure | None:
    """Return the chart of the public models on the ruler; None without one."""
    from leaderboard.board.one_ruler import build_ruler_board, build_ruler_figure, find_obstacle

    found = find_obstacle(task, matrix)
    if not isinstance(found, Ruler):
        return None
    return build_ruler_figure(build_ruler_board(found, matrix), get_today())
