"""The page that compares two models of a leaderboard."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_safe

from core.figures.figure import index_figures
from core.web.figure_files import respond_with_figure
from core.web.lists import RowStream, list_page
from leaderboard.board.editions import describe_edition
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_download, can_edit

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.matrix import Matrix

SIDES = {"a": gettext_noop("First model"), "b": gettext_noop("Second model")}
UNKNOWN_MODEL_MESSAGE = gettext_noop(
    "This model isn't on the leaderboard. Choose a model from the list."
)
SAME_MODEL_MESSAGE = gettext_noop("Choose two different models.")


@login_not_required
@require_safe
def show_comparison(request: HttpRequest, code: str) -> HttpResponse:
    """Compare two models on every set: differences, slices, and examples of one set.

    If none are chosen, compare the two best models.
    """
    from leaderboard.board.matrix import read_matrix
    from leaderboard.compare.wins import draw_win_matrix

    task = find_task(request, code)
    wants_own = "mine" in request.GET
    matrix = read_matrix(task, request.user if wants_own else None)
    index_by_model = index_models(matrix)
    ids_by_side = {side: request.GET.get(side, "") for side in SIDES}
    chosen_indices = [
        index_by_model[text] for text in ids_by_side.values() if text in index_by_model
    ]
    errors = _find_errors(ids_by_side, index_by_model)
    status = 404 if errors else 200
    if len(chosen_indices) == 2 and chosen_indices[0] == chosen_indices[1]:
        errors, status = {"b": gettext(SAME_MODEL_MESSAGE)}, 422
    values: dict[str, Any] = {
        "task": task,
        "matrix": matrix,
        "sides": list(_iter_sides(matrix, index_by_model, ids_by_side, errors)),
        "errors": errors,
        "mine": wants_own,
    }
    if len(chosen_indices) == 2 and not errors:
        values |= _build_comparison(request, task, matrix, (chosen_indices[0], chosen_indices[1]))
    else:
        # If no pair is chosen, the page compares the best two and offers all pairs.
        if not any(ids_by_side.values()) and (best_pair := _find_best_pair(task, matrix)):
            ids_by_side = dict(
                zip(SIDES, (str(matrix.models[place].id) for place in best_pair), strict=True)
            )
            values["sides"] = list(_iter_sides(matrix, index_by_model, ids_by_side, errors))
            values |= _build_comparison(request, task, matrix, best_pair)
        values["wins"] = draw_win_matrix(matrix, "&mine=1" if wants_own else "")
    return render(request, "leaderboard/compare.html", values, status=status)


@login_not_required
@require_safe
def download_comparison_chart(request: HttpRequest, code: str, format: str) -> HttpResponse:
    """Return a chart of the differences between two published models as a file.

    If none are chosen, of the two best models. Raises Http404 for other models.
    """
    from leaderboard.board.matrix import read_matrix
    from leaderboard.compare.figures import build_difference_figure
    from leaderboard.compare.models import compare_models, find_shared_runs

    task = find_task(request, code)
    matrix = read_matrix(task)
    index_by_model = index_models(matrix)
    pair = [index_by_model.get(request.GET.get(side, "")) for side in SIDES]
    # Without a choice the page compares these, too.
    if not any(side in request.GET for side in SIDES):
        pair = list(_find_best_pair(task, matrix) or (None, None))
    first, second = pair
    # One of them may be hidden or deleted, which the page does not reveal.
    if first is None or second is None or first == second:
        raise Http404
    names = matrix.models[first].name, matrix.models[second].name
    shared_runs = find_shared_runs(matrix, first, second)
    model_comparison = compare_models(task, matrix, first, second, shared_runs)
    page = reverse("leaderboard:compare", args=[code])
    return respond_with_figure(
        request,
        index_figures([build_difference_figure(model_comparison, names)]),
        "differences",
        format,
        prefix=task.code,
        page=f"{page}?{_build_query(matrix, (first, second))}",
        edition=describe_edition(task),
    )


def _find_best_pair(task: Task, matrix: "Matrix") -> tuple[int, int] | None:
    """Return the indices of the first two ranked models; None if fewer are ranked."""
    from leaderboard.board.opening import choose_opening_weights
    from leaderboard.board.ranked import rank_board

    board = rank_board(matrix, choose_opening_weights(task, matrix))
    ranked = [row for row in board.rows if row.rank]
    return (ranked[0].model_index, ranked[1].model_index) if len(ranked) > 1 else None


def _find_errors(
    ids_by_side: Mapping[str, str], index_by_model: Mapping[str, int]
) -> dict[str, str]:
    """Return an error message for each side whose model is not on the board."""
    errors = {}
    for side, text in ids_by_side.items():
        if text and text not in index_by_model:
            errors[side] = gettext(UNKNOWN_MODEL_MESSAGE)
    return errors


def _iter_sides(
    matrix: "Matrix",
    index_by_model: Mapping[str, int],
    ids_by_side: Mapping[str, str],
    errors: Mapping[str, str],
) -> Iterator[tuple[str, str, UUID | None, str | None]]:
    """Yield field, label, selected model's id and error of each side.

    If none is selected, the first model by name that the other side does not have is used.
    """
    chosen_ids = {}
    for side, text in ids_by_side.items():
        if text in index_by_model:
            chosen_ids[side] = matrix.models[index_by_model[text]].id
    by_name = sorted(matrix.models, key=lambda model: model.name)
    free_ids = (model.id for model in by_name if model.id not in chosen_ids.values())
    for side, title in SIDES.items():
        yield side, gettext(title), chosen_ids.get(side) or next(free_ids, None), errors.get(side)


def index_models(matrix: "Matrix") -> dict[str, int]:
    """Return the indices of models in the matrix, by the ids of all their submissions."""
    index_by_model = {}
    for place, model in enumerate(matrix.models):
        for pk in model.files:
            index_by_model[str(pk)] = place
    return index_by_model


def _build_query(matrix: "Matrix", pair: tuple[int, int]) -> str:
    """Return the query string that selects two models, without other parameters of the request."""
    return urlencode({"a": matrix.models[pair[0]].id, "b": matrix.models[pair[1]].id})


def _build_comparison(
    request: HttpRequest, task: Task, matrix: "Matrix", pair: tuple[int, int]
) -> dict[str, Any]:
    """Return the template values for two models, with examples of the set that the query names."""
    from core.figures.rows import draw_axis
    from leaderboard.compare.figures import (
        build_difference_axis,
        build_difference_figure,
        describe_slices,
        draw_outcome_bars,
        draw_rows,
    )
    from leaderboard.compare.models import (
        MIN_SLICE_EXAMPLES,
        PAGE_EXAMPLES,
        choose_set,
        compare_models,
        find_differing_examples,
        find_shared_runs,
    )

    pairs = find_shared_runs(matrix, *pair)
    # Examples are for readers who may download the task's data.
    readable = pairs if can_download(request.user, task) else {}
    is_editor = can_edit(request.user, task)
    chosen_set = choose_set(
        readable, request.GET.get("set", ""), request.GET.get("part", ""), is_editor=is_editor
    )
    # Counting them would require reading all answers.
    examples = RowStream(partial(find_differing_examples, task, chosen_set))
    model_comparison = compare_models(task, matrix, *pair, pairs)
    loops = [
        (matrix.models[pair[which]].name, name) for which, name in model_comparison.in_the_loop
    ]
    names = matrix.models[pair[0]].name, matrix.models[pair[1]].name
    query = _build_query(matrix, pair)
    # Only links; people who may not see right answers get none.
    readable_queries = {}
    for set_name in chosen_set.with_gold_sets:
        readable_queries[set_name] = f"?{query}&{urlencode({'set': set_name})}"
    axis = build_difference_axis(model_comparison.rows, names)
    figure = build_difference_figure(model_comparison, names)
    rows = list(draw_rows(model_comparison, axis, names))
    tested_rows = [drawn for drawn in rows if drawn.row.better != "untested"]
    return {
        "rows": rows,
        # Without any test, the numbers of both models are all that there is to see.
        "shown_rows": tested_rows or rows,
        "untested_rows": [drawn for drawn in rows if drawn not in tested_rows]
        if tested_rows
        else [],
        "slices": list(describe_slices(model_comparison, names)),
        # Each set once, although it has a row for each metric.
        "provisional": list(
            {
                row.set.name: row.set for row in model_comparison.rows if row.set.is_provisional
            }.values()
        ),
        "axis": draw_axis(axis),
        "figure": figure,
        "files": reverse("leaderboard:compare-chart", args=[task.code, "svg"]).removesuffix(
            "differences.svg"
        ),
        "file_query": f"?{query}",
        "outcomes": list(draw_outcome_bars(model_comparison.outcomes, names, readable_queries)),
        "part": chosen_set.part,
        "first": matrix.models[pair[0]],
        "second": matrix.models[pair[1]],
        "found": model_comparison,
        "tested": len(model_comparison.rows) - model_comparison.count_rows("untested"),
        "firsts": model_comparison.count_rows("first"),
        "seconds": model_comparison.count_rows("second"),
        "least": MIN_SLICE_EXAMPLES,
        "loops": loops,
        "readable": chosen_set.readable,
        "set": chosen_set.set,
        "with_gold": chosen_set.with_gold,
        "page": list_page(request, examples, size=PAGE_EXAMPLES),
    }
