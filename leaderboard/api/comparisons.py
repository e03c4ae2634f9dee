"""Two models of a leaderboard compared."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import Refused
from core.web.api import versioned
from leaderboard.api.asking import MINE, matrix_for, version_of
from leaderboard.api.schemas import Compared
from leaderboard.board.columns import OF_RUNS
from leaderboard.compare.views import SAME, SIDES, model_places, requested_page
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_edit, can_take

if TYPE_CHECKING:  # it loads numpy
    from leaderboard.board.matrix import Matrix
    from leaderboard.compare.models import ComparedMetric, Comparison

BETTER: Mapping[str, str] = {"first": "a", "second": "b"}


class CompareView(APIView):
    is_public = True
    reads_query = ("GET",)

    @extend_schema(
        operation_id="leaderboard_compare",
        parameters=[
            OpenApiParameter("a", required=True, description="The first model's id."),
            OpenApiParameter("b", required=True, description="The second model's id."),
            OpenApiParameter("set", description="A set whose examples are included."),
            OpenApiParameter("page", int, description="Of these examples."),
            MINE,
        ],
        responses=Compared,
    )
    def get(self, request: Request, code: str) -> Response:
        """Differences with intervals and tests, by metric and by slice; examples of one set.

        Examples are those to which the two answer differently; where one may read what models got
        wrong, those that one of the two has right alone. It has an ETag.
        """
        task = find_task(request, code)
        matrix = matrix_for(request, task, "a", "b", "set", "page")
        pair = _pair(request, matrix)
        is_editor, takes = can_edit(request.user, task), can_take(request.user, task)
        name, page = request.query_params.get("set", ""), requested_page(request.query_params)

        def body() -> dict[str, Any]:
            return _body(task, matrix, pair, name, page, is_editor=is_editor, takes=takes)

        return versioned(request, version_of(task, matrix, is_editor, takes), body)


def _pair(request: Request, matrix: "Matrix") -> tuple[int, int]:
    """Return the places of the two models in the matrix. Raises Refused."""
    places = model_places(matrix)
    asked = {side: request.query_params.get(side, "") for side in SIDES}
    for side, text in asked.items():
        if not text:
            raise Refused("Name two models, as a and b.", code="invalid", status=422, field=side)
        if text not in places:
            message = (
                f"{text} is not on the leaderboard of {matrix.task}: it has no score there, or it "
                "is not published and not yours."
            )
            raise Refused(message, code="not_on_board", status=404, field=side)
    first, second = (places[text] for text in asked.values())
    if first == second:
        raise Refused(SAME, code="invalid", status=422, field="b")
    return first, second


def _body(
    task: Task,
    matrix: "Matrix",
    pair: tuple[int, int],
    name: str,
    page: int,
    *,
    is_editor: bool,
    takes: bool,
) -> dict[str, Any]:
    from leaderboard.compare.models import compare_models, example_page, shared_runs

    pairs = shared_runs(matrix, *pair)
    found = compare_models(task, matrix, *pair, pairs)
    shown = example_page(task, pairs if takes else {}, name, page, is_editor=is_editor)
    return {
        "a": _model(matrix, pair[0]),
        "b": _model(matrix, pair[1]),
        "judge": matrix.judge.told if matrix.judge else None,
        **_tested(found),
        "readable": shown.readable,
        "examples": [
            {
                "uid": one.uid,
                "inputs": dict(one.fields),
                "a": one.answers[0],
                "b": one.answers[1],
                "gold": one.gold,
            }
            for one in shown.examples
        ],
        "next_page": shown.next,
    }


def _model(matrix: "Matrix", at: int) -> dict[str, str]:
    model = matrix.models[at]
    return {"id": str(model.id), "model": model.name, "owner": model.owner, "team": model.team}


def _tested(found: "Comparison") -> dict[str, Any]:
    return {
        "rows": [_row(row) for row in found.rows],
        "slices": [_row(row) for row in found.slices],
        "tested_slices": found.tested_slices,
        "small_slices": found.small_slices,
        "unread": [*found.unread],
        "in_the_loop": [{"model": "ab"[which], "set": name} for which, name in found.in_the_loop],
    }


def _row(row: "ComparedMetric") -> dict[str, Any]:
    return {
        "set": row.set.name,
        "version": row.set.version,
        "is_provisional": row.set.is_provisional,
        "judged": row.set.judged,
        "to_judge": row.set.to_judge,
        "metric": row.metric,
        "is_rounded": row.set.is_sealed and row.metric not in OF_RUNS,
        "slice": row.slice,
        "a": row.values[0]._asdict(),
        "b": row.values[1]._asdict(),
        "difference": row.cell._asdict(),
        "p": row.adjusted,
        "p_uncorrected": row.found.p if row.found else None,
        "correction": row.correction if row.found else "",
        "n": row.found.n if row.found else None,
        "better": BETTER.get(row.better, row.better),
        "method": row.method,
    }
