"""The board of an arena."""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.data.adaptive_cache import CachedResult
from core.figures.figure import Figure, index_figures
from core.web.figure_files import respond_with_figure
from core.web.lists import list_page
from leaderboard.arena.board import (
    Table,
    build_arena_lines,
    build_report_body,
    build_style_values,
    list_arena_notices,
    read_cached_table,
)
from leaderboard.arena.exports import write_arena_csv, write_arena_latex
from leaderboard.arena.figures import (
    build_strength_axis,
    build_strength_figure,
    draw_arena_wins,
    draw_strength_axis,
    draw_strengths,
)
from leaderboard.arena.findings import describe_arena
from leaderboard.arena.judges.page import build_judge_cards
from leaderboard.arena.judges.selectors import find_arena_judges
from leaderboard.board.editions import describe_edition, describe_today
from leaderboard.board.exports import write_table_json
from leaderboard.board.views import Files, build_file_response, build_sentence_response
from tasks.access import find_task
from tasks.models import Task

PAGE_ROWS = 100
"""Models per page."""
FILES: Files = {
    "csv": (lambda table, _: write_arena_csv(table), "csv", "text/csv"),
    "json": (lambda table, _: write_table_json(table), "json", "application/json"),
    "latex": (write_arena_latex, "tex", "application/x-tex"),
}
"""The file formats of an arena; see `FILES` in `leaderboard.board.views`."""


@login_not_required
@require_safe
def show_arena(request: HttpRequest, code: str) -> HttpResponse:
    """Show the models of an arena by strength, and the win matrix; with `format`, return a file."""
    task = find_task(request, code, kinds=("arena",))
    cached_table = read_cached_table(task)
    if "format" in request.GET:
        return _build_file_response(request, task, cached_table)
    values: dict[str, Any] = {"task": task, "kept": cached_table, "here": "leaderboard"}
    if cached_table and cached_table.numbers["models"]:
        values |= build_board_values(cached_table.numbers)
        values["page"] = list_page(request, values["page"], size=PAGE_ROWS)
        values["judges"] = build_judge_cards(find_arena_judges(task, only_shown=True))
        address = reverse("leaderboard:arena-chart", args=[code, "svg"])
        values["files"] = address.removesuffix("strengths.svg")
    return render(request, "leaderboard/arena.html", values)


def build_board_values(table: Table) -> dict[str, Any]:
    """Return the template values of a ranking. `page` has all lines."""
    lines = build_arena_lines(table)
    axis = build_strength_axis(lines)
    names = [line.model["name"] for line in lines]
    return {
        "page": draw_strengths(lines, axis),
        "axis": draw_strength_axis(axis),
        "finding": describe_arena(names, [line.model["rank"] for line in lines]),
        "notices": list_arena_notices(table),
        "style": build_style_values(table),
        "wins": draw_arena_wins(table),
    }


@login_not_required
@require_safe
def download_arena_chart(request: HttpRequest, code: str, format: str) -> HttpResponse:
    """Return a chart of an arena's ranking as a file."""
    task = find_task(request, code, kinds=("arena",))
    cached_table = read_cached_table(task)
    # None while a large arena is ranked for the first time.
    figures: list[Figure | None] = []
    if cached_table:
        table = cached_table.numbers
        lines = build_arena_lines(table)
        figures.append(build_strength_figure(table, lines, describe_today()))
    return respond_with_figure(
        request,
        index_figures(figures),
        "strengths",
        format,
        prefix=task.code,
        page=reverse("leaderboard:arena", args=[code]),
        edition=describe_edition(task),
    )


def _build_file_response(
    request: HttpRequest, task: Task, cached_table: CachedResult | None
) -> HttpResponse:
    if cached_table is None:
        text = _("We're still ranking the models. Try again in a minute.")
        answer = build_sentence_response(text, 503)
        answer["Retry-After"] = "60"
        return answer
    address = request.build_absolute_uri(request.path)
    table, name = build_report_body(task, cached_table), f"{task.code}-leaderboard"
    return build_file_response(table, request.GET["format"], name, address, FILES)
