"""The page of all models against all rounds."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.web.downloads import attachment
from core.web.lists import list_page
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.views import build_sentence_response
from tasks.access import find_task
from tasks.models import Task
from tasks.selectors import find_opened_rounds
from validation.statistics.cache import all_numbers

PAGE_ROWS = 100
"""Models on a page."""


@login_not_required
@require_safe
def rounds_page(request: HttpRequest, code: str) -> HttpResponse:
    """Show the results of every model and of people on every round's set."""
    from leaderboard.board.matrix import score_matrix
    from leaderboard.rounds.matrix import build_rounds, draw_charts

    task = find_task(request, code)
    if "format" in request.GET:
        return _build_file(task, request.GET["format"])
    matrix = score_matrix(task, request.user if "mine" in request.GET else None)
    opened_rounds = find_opened_rounds([task])
    numbers = all_numbers(opened_rounds)
    table = build_rounds(matrix, opened_rounds, numbers)
    values = {
        "task": task,
        "matrix": matrix,
        "found": table,
        "page": list_page(request, table.lines, size=PAGE_ROWS),
        "charts": draw_charts(table, _("%(metric)s by round") % {"metric": in_words(matrix.main)}),
        "is_counting": len(numbers) < len(opened_rounds),
        "mine": "mine" in request.GET,
    }
    return render(request, "leaderboard/rounds.html", values)


@login_not_required
@require_safe
def training_dates(request: HttpRequest, code: str) -> HttpResponse:
    """Show each model's accuracy before and after its training date, and on held-back rows."""
    from leaderboard.board.matrix import score_matrix
    from leaderboard.rounds import held_back
    from leaderboard.rounds import training_dates as dates

    task = find_task(request, code)
    matrix = score_matrix(task)
    opened_rounds = find_opened_rounds([task])
    if "format" in request.GET:
        return JsonResponse(held_back.build_training_dates_body(matrix, opened_rounds))
    values = {
        "task": task,
        "metric": dates.find_share_metric(matrix),
        "lines": dates.build_dated_models(matrix, opened_rounds),
        "held": held_back.build_held_back_lines(matrix),
    }
    return render(request, "leaderboard/training_dates.html", values)


def _build_file(task: Task, format: str) -> HttpResponse:
    """Return the public numbers as a CSV or JSON file."""
    from leaderboard.board.matrix import score_matrix
    from leaderboard.rounds.matrix import build_rounds, build_rounds_body, write_rounds_csv

    if format not in ("csv", "json"):
        text = _("No format %(format)r: choose csv or json.") % {"format": format[:20]}
        return build_sentence_response(text, 400)
    opened_rounds = find_opened_rounds([task])
    numbers = all_numbers(opened_rounds)
    # A file is kept and cited, so it waits until all numbers are counted.
    if len(numbers) < len(opened_rounds):
        text = _("The numbers of people are being counted. Ask again in a minute.")
        answer = build_sentence_response(text, 503)
        answer["Retry-After"] = "60"
        return answer
    matrix = score_matrix(task)
    table = build_rounds(matrix, opened_rounds, numbers)
    if format == "json":
        return JsonResponse(build_rounds_body(matrix, table))
    return attachment(write_rounds_csv(table), f"{task.code}-rounds.csv", "text/csv")
