"""The leaderboard's page."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.figures.figure import index_figures
from core.web.downloads import respond_with_attachment
from core.web.figure_files import respond_with_figure
from core.web.htmx import is_htmx_partial, render_page
from leaderboard.board import every_eval_ever, exports
from leaderboard.board.editions import describe_edition, describe_today
from leaderboard.board.exports import Table, have_same_values
from leaderboard.board.opening import find_start_weights
from leaderboard.board.query import (
    BoardRequest,
    Query,
    build_typed_sliders,
    read_former_weighting,
    read_request,
)
from leaderboard.board.ruler_views import build_figure_of, show_ruler_board
from leaderboard.ranking.weights import METRIC_PREFIX, SET_PREFIX, Weighting, WeightsError
from tasks.access import ALL_KINDS, find_task
from tasks.models import Task

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.matrix import Matrix

Files = Mapping[str, tuple[Callable[[Table, str], str], str, str]]
FILES: Files = {
    "csv": (lambda table, _: exports.write_board_csv(table), "csv", "text/csv"),
    "json": (lambda table, _: exports.write_table_json(table), "json", "application/json"),
    "latex": (exports.write_board_latex, "tex", "application/x-tex"),
    "every-eval-ever": (every_eval_ever.write_records, "jsonl", "application/jsonlines"),
}
"""The file formats by their name in a URL: writer, file extension and content type."""


@login_not_required
@require_safe
def show_board(request: HttpRequest, code: str) -> HttpResponse:
    """Show the models of a task, ranked with the weights in the URL; with `format`, return a file.

    With `ruler`, show them on one ruler instead.

    Redirects to the arena's page if the task is an arena.
    """
    from leaderboard.board.matrix import read_matrix

    task = find_task(request, code, kinds=ALL_KINDS)
    if task.config.kind == "arena":
        return redirect("leaderboard:arena", code)
    matrix = read_matrix(task, request.user if _wants_own_models(request) else None)
    if "ruler" in request.GET:
        return show_ruler_board(request, task, matrix)
    query, start = (
        dict(request.GET.lists()),
        find_start_weights(task, matrix, request.GET.get("fork")),
    )
    try:
        board_request = read_request(query, start, matrix.modes)
        previous_weighting = read_former_weighting(query, start)
    except WeightsError as error:
        return _show_refused_weights(request, {"task": task, "matrix": matrix}, query, start, error)
    if "format" in board_request.options:
        return _build_file_response(request, task, matrix, board_request)
    if previous_weighting and not is_htmx_partial(
        request
    ):  # a short form of the form's fields, for sharing
        opened = board_request.options.get("open", "")
        return HttpResponseRedirect(request.path + board_request.link(open=opened))
    return _render_page(request, task, matrix, board_request, previous_weighting)


@login_not_required
@require_safe
def download_board_chart(request: HttpRequest, code: str, name: str, format: str) -> HttpResponse:
    """Return a chart of the board, ranked with the weights in the URL, as a file.

    Invalid weights give status 422.
    """
    from leaderboard.board.figures import build_ranking_figure, build_trend_figure
    from leaderboard.board.matrix import read_matrix
    from leaderboard.board.page import draw_plane
    from leaderboard.board.ranked import rank_board

    task = find_task(request, code)
    matrix = read_matrix(task)
    query = dict(request.GET.lists())
    try:
        start = find_start_weights(task, matrix, request.GET.get("fork"))
        board_request = read_request(query, start, matrix.modes)
        ranked_board = rank_board(matrix, board_request.weighting, board_request.mode)
    except WeightsError as error:
        return build_sentence_response(_(str(error)), 422)
    # All charts of the page; the URL names one of them.
    day = describe_today()
    figures = [
        build_ranking_figure(ranked_board, matrix, day),
        build_trend_figure(ranked_board, matrix, day),
        draw_plane(ranked_board, matrix, board_request)["figure"],
    ]
    # Only if it is wanted: it has queries of its own.
    if name == "one-ruler":
        figures = [build_figure_of(task, matrix)]
    return respond_with_figure(
        request,
        index_figures(figures),
        name,
        format,
        prefix=task.code,
        page=reverse("leaderboard:board", args=[code]) + board_request.link(),
        edition=describe_edition(task),
    )


def _render_page(
    request: HttpRequest,
    task: Task,
    matrix: "Matrix",
    board_request: BoardRequest,
    previous_weighting: Weighting | None,
) -> HttpResponse:
    """Render the page; for htmx only the rows, or the results of one model."""
    from leaderboard.board.page import build_page_values

    values = {
        "task": task,
        "here": request.path,
        **build_page_values(matrix, board_request, previous_weighting),
    }
    opened_id = board_request.options.get("open", "")
    part = (
        "opened" if opened_id and not previous_weighting else "rows"
    )  # the row whose form was sent stays open
    response = render_page(request, "leaderboard/board.html", values, block_name=part)
    if part == "rows" and is_htmx_partial(request):
        page = board_request.options.get("page", "")
        response["HX-Replace-Url"] = request.path + board_request.link(page=page, open=opened_id)
    return response


def _build_file_response(
    request: HttpRequest, task: Task, matrix: "Matrix", board_request: BoardRequest
) -> HttpResponse:
    from leaderboard.board.ranked import rank_board
    from leaderboard.board.tables import build_board_table

    table = build_board_table(
        task, matrix, rank_board(matrix, board_request.weighting, board_request.mode)
    )
    # A paper should cite a URL whose contents never change.
    lasting_address = (
        _find_lasting_address(task, table) if board_request.options["format"] == "latex" else ""
    )
    address = request.build_absolute_uri(lasting_address or request.path + board_request.link())
    return build_file_response(
        table, board_request.options["format"], f"{task.code}-leaderboard", address
    )


def _find_lasting_address(task: Task, table: Table) -> str:
    """Return the URL of the newest snapshot if it equals this table, else ""."""
    newest_snapshot = task.snapshots.first()
    if newest_snapshot is None or not have_same_values(newest_snapshot.table, table):
        return ""
    return reverse("leaderboard:snapshot", args=[task.code, newest_snapshot.number])


def build_file_response(
    table: Table, format: str, name: str, address: str, files: Files = FILES
) -> HttpResponse:
    """Return a board in one of the file formats, or an error text for an unknown format."""
    if format not in files:
        text = _("Unknown format %(format)r. Use one of: %(names)s.")
        return build_sentence_response(
            text % {"format": format[:20], "names": ", ".join(files)}, 400
        )
    write, suffix, kind = files[format]
    return respond_with_attachment(write(table, address), f"{name}.{suffix}", kind)


def build_sentence_response(text: str, status: int) -> HttpResponse:
    """Return a plain-text response that explains why there is no file."""
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")


def _wants_own_models(request: HttpRequest) -> bool:
    """Return whether unpublished models were requested; files never contain them."""
    return "mine" in request.GET and "format" not in request.GET


def _show_refused_weights(
    request: HttpRequest,
    values: dict[str, Any],
    query: Query,
    start: Weighting,
    error: WeightsError,
) -> HttpResponse:
    """Return the form with the submitted values; for a file, only the error text.

    With htmx, the former rows are kept on the page.
    """
    text = _(str(error))
    if "format" in query:
        return build_sentence_response(text, 422)
    metrics, sets = (
        build_typed_sliders(query, METRIC_PREFIX, start.metrics),
        build_typed_sliders(query, SET_PREFIX, start.sets),
    )
    values |= {
        "here": request.path,
        "error": text,
        "error_field": next(
            (slider.field for slider in metrics + sets if slider.field in error.fields), ""
        ),
        "metric_sliders": metrics,
        "set_sliders": sets,
        "sliders": metrics + sets,
    }
    page = render_page(request, "leaderboard/board.html", values, block_name="problem", status=422)
    if is_htmx_partial(request):
        # The rows on the page stay; only the message is inserted.
        page["HX-Retarget"] = "#problem"
    return page
