"""The page of all models against all rounds."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.days import get_today
from core.web.downloads import respond_with_attachment
from core.web.figure_files import respond_with_figure
from core.web.lists import list_page
from leaderboard.board.editions import describe_edition
from leaderboard.board.views import build_sentence_response
from tasks.access import find_task
from tasks.models import Task
from tasks.selectors import find_opened_rounds
from validation.statistics.cache import get_all_numbers

PAGE_ROWS = 100
"""Models on a page."""


@login_not_required
@require_safe
def show_rounds(request: HttpRequest, code: str) -> HttpResponse:
    """Show the results of every model and of people on every round's set.

    With `format`, return a file instead.
    """
    from leaderboard.board.matrix import read_matrix
    from leaderboard.rounds.falls import find_last_fall
    from leaderboard.rounds.figures import build_round_figures
    from leaderboard.rounds.matrix import build_rounds
    from leaderboard.rounds.worn import build_worn_meters

    task = find_task(request, code)
    if "format" in request.GET:
        return _build_file_response(task, request.GET["format"])
    matrix = read_matrix(task, request.user if "mine" in request.GET else None)
    opened_rounds = find_opened_rounds([task])
    numbers = get_all_numbers(opened_rounds)
    table = build_rounds(matrix, opened_rounds, numbers)
    values = {
        "task": task,
        "matrix": matrix,
        "found": table,
        "meters": build_worn_meters(matrix, opened_rounds),
        "page": list_page(request, table.lines, size=PAGE_ROWS),
        "figures": build_round_figures(table, matrix.main, get_today()),
        "files": reverse("leaderboard:rounds-chart", args=[code, "x", "svg"]).removesuffix("x.svg"),
        # Tables without a single number would only say so once for each model.
        "has_sets": any(column.set for column in table.columns),
        "has_numbers": any(
            column.people.value is not None or column.vmer.value is not None
            for column in table.columns
        ),
        "loops": any(each.in_the_loop for line in table.lines for each in line.cells),
        "is_counting": len(numbers) < len(opened_rounds),
        "last_fall": find_last_fall(task, matrix),
        "mine": "mine" in request.GET,
    }
    return render(request, "leaderboard/rounds.html", values)


@login_not_required
@require_safe
def download_rounds_chart(request: HttpRequest, code: str, name: str, format: str) -> HttpResponse:
    """Return one of the page's charts as a file. It shows only published models."""
    from leaderboard.board.matrix import read_matrix
    from leaderboard.rounds.figures import build_round_figures
    from leaderboard.rounds.matrix import build_rounds

    task = find_task(request, code)
    matrix = read_matrix(task)
    opened_rounds = find_opened_rounds([task])
    table = build_rounds(matrix, opened_rounds, get_all_numbers(opened_rounds))
    # Only published models, because files are passed on.
    return respond_with_figure(
        request,
        build_round_figures(table, matrix.main, get_today()),
        name,
        format,
        prefix=task.code,
        page=reverse("leaderboard:rounds", args=[code]),
        edition=describe_edition(task),
    )


@login_not_required
@require_safe
def show_training_dates(request: HttpRequest, code: str) -> HttpResponse:
    """Show each model's accuracy before and after its training date, and on held-back rows.

    With `format`, return JSON, or the trials of leaks as CSV instead.
    """
    from leaderboard.board.matrix import read_matrix
    from leaderboard.rounds import held_back
    from leaderboard.rounds import training_dates as dates

    task = find_task(request, code)
    matrix = read_matrix(task)
    opened_rounds = find_opened_rounds([task])
    if request.GET.get("format") == "csv":
        text = held_back.write_trials_csv(held_back.find_named_trials(matrix))
        return respond_with_attachment(text, f"{task.code}-leaks.csv", "text/csv")
    if "format" in request.GET:
        return JsonResponse(held_back.build_training_dates_body(matrix, opened_rounds))
    held_lines = held_back.build_held_back_lines(matrix)
    values = {
        "task": task,
        "trials": held_back.find_named_trials(matrix),
        "metric": dates.find_share_metric(matrix),
        "lines": dates.build_dated_models(matrix, opened_rounds),
        "held": held_lines,
        "provisional": held_back.list_provisional_sets(held_lines),
    }
    return render(request, "leaderboard/training_dates.html", values)


def _build_file_response(task: Task, format: str) -> HttpResponse:
    """Return the public numbers as a CSV or JSON file.

    Status 400 for another format, 503 while numbers about people are still being counted.
    """
    from leaderboard.board.matrix import read_matrix
    from leaderboard.rounds.falls import find_last_fall
    from leaderboard.rounds.matrix import build_rounds, build_rounds_body, write_rounds_csv
    from leaderboard.rounds.worn import build_worn_meters

    if format not in ("csv", "json"):
        text = _("Unknown format %(format)r. Use csv or json.") % {"format": format[:20]}
        return build_sentence_response(text, 400)
    opened_rounds = find_opened_rounds([task])
    numbers = get_all_numbers(opened_rounds)
    # Files are stored and cited, so wait until all numbers are counted.
    if len(numbers) < len(opened_rounds):
        text = _("We're still calculating these numbers. Try again in a minute.")
        answer = build_sentence_response(text, 503)
        answer["Retry-After"] = "60"
        return answer
    matrix = read_matrix(task)
    table = build_rounds(matrix, opened_rounds, numbers)
    meters = build_worn_meters(matrix, opened_rounds)
    if format == "json":
        fall = find_last_fall(task, matrix)
        body = build_rounds_body(matrix, table)
        body |= {
            "worn": [meter.build_json() for meter in meters],
            "last_fall": fall and fall.build_json(),
        }
        return JsonResponse(body)
    return respond_with_attachment(
        write_rounds_csv(table, meters), f"{task.code}-rounds.csv", "text/csv"
    )
