"""The board of an arena."""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.charts import matrix, reach
from core.data.adaptive_cache import Kept
from core.web.lists import list_page
from leaderboard.arena.board import (
    Table,
    build_arena_lines,
    build_report_body,
    build_style_values,
    iter_win_rows,
    list_arena_notices,
    read_cached_table,
)
from leaderboard.arena.exports import write_arena_csv, write_arena_latex
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
"""As those of `leaderboard.board.views`."""


@login_not_required
@require_safe
def arena(request: HttpRequest, code: str) -> HttpResponse:
    """Show the models of an arena by strength, and the win matrix."""
    task = find_task(request, code, kinds=("arena",))
    cached_table = read_cached_table(task)
    if "format" in request.GET:
        return _build_file(request, task, cached_table)
    values: dict[str, Any] = {"task": task, "kept": cached_table, "here": "leaderboard"}
    if cached_table and cached_table.numbers["models"]:
        values |= build_board_values(cached_table.numbers)
        values["page"] = list_page(request, values["page"], size=PAGE_ROWS)
    return render(request, "leaderboard/arena.html", values)


def build_board_values(table: Table) -> dict[str, Any]:
    """Return the template values of a ranking. `page` has all lines."""
    lines, names = build_arena_lines(table), [model["name"] for model in table["models"]]
    matrix_names = names[: len(table["wins"])]
    interval_ends: list[float | None] = []
    for line in lines:
        interval_ends += [line.value, line.low, line.high]
    return {
        "page": lines,
        "scale": reach(interval_ends),
        "notices": list_arena_notices(table),
        "style": build_style_values(table),
        "wins": matrix(matrix_names, iter_win_rows(table), title=_("Wins"), corner=_("Model")),
    }


def _build_file(request: HttpRequest, task: Task, cached_table: Kept | None) -> HttpResponse:
    if cached_table is None:
        text = _("The models are being ranked. Ask again in a minute.")
        answer = build_sentence_response(text, 503)
        answer["Retry-After"] = "60"
        return answer
    address = request.build_absolute_uri(request.path)
    table, name = build_report_body(task, cached_table), f"{task.code}-leaderboard"
    return build_file_response(table, request.GET["format"], name, address, FILES)
