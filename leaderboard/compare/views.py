"""The page that compares two models of a leaderboard."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_safe

from core.web.lists import RowStream, list_page
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_edit, can_take

if TYPE_CHECKING:  # it loads numpy
    from leaderboard.board.matrix import Matrix

SIDES = {"a": gettext_noop("First model"), "b": gettext_noop("Second model")}
UNKNOWN_MODEL = gettext_noop("No such model is on this leaderboard. Choose one from the list.")
SAME_MODEL = gettext_noop("Choose two different models.")


@login_not_required
@require_safe
def comparison(request: HttpRequest, code: str) -> HttpResponse:
    """Compare two models on every set: differences, slices, and examples of one set."""
    from leaderboard.board.matrix import score_matrix
    from leaderboard.compare.wins import draw_win_matrix

    task = find_task(request, code)
    wants_own = "mine" in request.GET
    matrix = score_matrix(task, request.user if wants_own else None)
    places = index_models(matrix)
    ids = {side: request.GET.get(side, "") for side in SIDES}
    chosen_places = [places[text] for text in ids.values() if text in places]
    errors = _find_errors(ids, places)
    status = 404 if errors else 200
    if len(chosen_places) == 2 and chosen_places[0] == chosen_places[1]:
        errors, status = {"b": gettext(SAME_MODEL)}, 422
    values: dict[str, Any] = {
        "task": task,
        "matrix": matrix,
        "sides": list(_iter_sides(matrix, places, ids, errors)),
        "errors": errors,
        "mine": wants_own,
    }
    if len(chosen_places) == 2 and not errors:
        values |= _build_comparison(request, task, matrix, (chosen_places[0], chosen_places[1]))
    else:
        # Where no pair is chosen, the page offers all pairs.
        values["wins"] = draw_win_matrix(matrix, "&mine=1" if wants_own else "")
    return render(request, "leaderboard/compare.html", values, status=status)


def _find_errors(ids: Mapping[str, str], places: Mapping[str, int]) -> dict[str, str]:
    """Return an error message for each side whose model is not on the board."""
    errors = {}
    for side, text in ids.items():
        if text and text not in places:
            errors[side] = gettext(UNKNOWN_MODEL)
    return errors


def _iter_sides(
    matrix: "Matrix",
    places: Mapping[str, int],
    ids: Mapping[str, str],
    errors: Mapping[str, str],
) -> Iterator[tuple[str, str, UUID | None, str | None]]:
    """Yield field, label, selected model's id and error of each side.

    If none is selected, the first model by name that the other side does not have is used.
    """
    chosen_ids = {}
    for side, text in ids.items():
        if text in places:
            chosen_ids[side] = matrix.models[places[text]].id
    by_name = sorted(matrix.models, key=lambda model: model.name)
    free_ids = (model.id for model in by_name if model.id not in chosen_ids.values())
    for side, title in SIDES.items():
        yield side, gettext(title), chosen_ids.get(side) or next(free_ids, None), errors.get(side)


def index_models(matrix: "Matrix") -> dict[str, int]:
    """Return the indices of models by the id of any of their files."""
    places = {}
    for place, model in enumerate(matrix.models):
        for pk in model.files:
            places[str(pk)] = place
    return places


def _build_comparison(
    request: HttpRequest, task: Task, matrix: "Matrix", pair: tuple[int, int]
) -> dict[str, Any]:
    """Return the template values for two models, with examples of the set that the query names."""
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
    readable = pairs if can_take(request.user, task) else {}
    is_editor = can_edit(request.user, task)
    chosen_set = choose_set(readable, request.GET.get("set", ""), is_editor=is_editor)
    # Nobody knows how many there are without reading all answers.
    examples = RowStream(partial(find_differing_examples, task, chosen_set))
    model_comparison = compare_models(task, matrix, *pair, pairs)
    loops = [
        (matrix.models[pair[which]].name, name) for which, name in model_comparison.in_the_loop
    ]
    return {
        "first": matrix.models[pair[0]],
        "second": matrix.models[pair[1]],
        "found": model_comparison,
        "tested": len(model_comparison.rows) - model_comparison.count("untested"),
        "firsts": model_comparison.count("first"),
        "seconds": model_comparison.count("second"),
        "least": MIN_SLICE_EXAMPLES,
        "loops": loops,
        "readable": chosen_set.readable,
        "set": chosen_set.set,
        "with_gold": chosen_set.with_gold,
        "page": list_page(request, examples, size=PAGE_EXAMPLES),
    }
