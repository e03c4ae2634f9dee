"""Two models of a leaderboard compared."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField, IntegerField, Serializer
from rest_framework.views import APIView

from core.errors import Refused
from core.web.api import versioned
from leaderboard.api.asking import MINE, compute_version, read_requested_matrix
from leaderboard.api.schemas import Compared
from leaderboard.board.columns import RUN_COLUMNS
from leaderboard.compare.views import SAME_MODEL, SIDES, index_models
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_edit, can_take

if TYPE_CHECKING:  # it loads numpy
    from leaderboard.board.matrix import Matrix
    from leaderboard.compare.models import ComparedMetric, Comparison, Example

SIDE_BY_OUTCOME: Mapping[str, str] = {"first": "a", "second": "b"}


class ExamplesQuery(Serializer[Any]):
    """The page number for the examples of a set."""

    set = CharField(default="", allow_blank=True)
    page = IntegerField(min_value=1, max_value=99_999, default=1)


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
        """Return differences with intervals and tests, by metric and slice, and examples of a set.

        The examples are those to which the two models answer differently. Readers who may see
        models' mistakes get the examples that only one of the two answers correctly. Has an ETag.
        """
        task = find_task(request, code)
        matrix = read_requested_matrix(request, task, "a", "b", "set", "page")
        pair = _find_pair(request, matrix)
        is_editor, may_take = can_edit(request.user, task), can_take(request.user, task)
        query = ExamplesQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        name, page = query.validated_data["set"], query.validated_data["page"]

        def body() -> dict[str, Any]:
            return _build_body(
                task, matrix, pair, name, page, is_editor=is_editor, may_take=may_take
            )

        return versioned(request, compute_version(task, matrix, is_editor, may_take), body)


def _find_pair(request: Request, matrix: "Matrix") -> tuple[int, int]:
    """Return the indices of the two models in the matrix. Raises Refused."""
    places = index_models(matrix)
    pair = []
    for side in SIDES:
        text = request.query_params.get(side, "")
        if not text:
            raise Refused("Name two models, as a and b.", code="invalid", status=422, field=side)
        if text not in places:
            message = (
                f"{text} is not on the leaderboard of {matrix.task}: it has no score there, or it "
                "is not published and not yours."
            )
            raise Refused(message, code="not_on_board", status=404, field=side)
        pair.append(places[text])
    first, second = pair
    if first == second:
        raise Refused(SAME_MODEL, code="invalid", status=422, field="b")
    return first, second


def _build_body(
    task: Task,
    matrix: "Matrix",
    pair: tuple[int, int],
    name: str,
    page: int,
    *,
    is_editor: bool,
    may_take: bool,
) -> dict[str, Any]:
    """Compare two models, and add a page of examples of the set `name`.

    may_take: whether the reader may download the task's data, and so may see examples.
    """
    from leaderboard.compare.models import (
        PAGE_EXAMPLES,
        choose_set,
        compare_models,
        find_differing_examples,
        find_shared_runs,
    )

    pairs = find_shared_runs(matrix, *pair)
    comparison = compare_models(task, matrix, *pair, pairs)
    chosen_set = choose_set(pairs if may_take else {}, name, is_editor=is_editor)
    start = (page - 1) * PAGE_EXAMPLES
    # One more than the page shows tells whether there is a next one.
    examples = find_differing_examples(task, chosen_set, start, start + PAGE_EXAMPLES + 1)
    return {
        "a": _build_model(matrix, pair[0]),
        "b": _build_model(matrix, pair[1]),
        "judge": matrix.judge.told if matrix.judge else None,
        **_build_comparison_body(comparison),
        "readable": chosen_set.readable,
        "examples": [_build_example(example) for example in examples[:PAGE_EXAMPLES]],
        "next_page": page + 1 if len(examples) > PAGE_EXAMPLES else None,
    }


def _build_example(example: "Example") -> dict[str, Any]:
    first, second = example.answers
    return {
        "uid": example.uid,
        "inputs": dict(example.fields),
        "a": first,
        "b": second,
        "gold": example.gold,
    }


def _build_model(matrix: "Matrix", place: int) -> dict[str, str]:
    model = matrix.models[place]
    return {"id": str(model.id), "model": model.name, "owner": model.owner, "team": model.team}


def _build_comparison_body(comparison: "Comparison") -> dict[str, Any]:
    loops = []
    for which, name in comparison.in_the_loop:
        loops.append({"model": "ab"[which], "set": name})
    return {
        "rows": [_build_row(row) for row in comparison.rows],
        "slices": [_build_row(row) for row in comparison.slices],
        "tested_slices": comparison.tested_slices,
        "small_slices": comparison.small_slices,
        "unread": list(comparison.unread),
        "in_the_loop": loops,
    }


def _build_row(row: "ComparedMetric") -> dict[str, Any]:
    first, second = row.values
    test = row.found  # None: not tested
    return {
        "set": row.set.name,
        "version": row.set.version,
        "is_provisional": row.set.is_provisional,
        "judged": row.set.judged,
        "to_judge": row.set.to_judge,
        "metric": row.metric,
        "is_rounded": row.set.is_sealed and row.metric not in RUN_COLUMNS,
        "slice": row.slice,
        "a": first._asdict(),
        "b": second._asdict(),
        "difference": row.cell._asdict(),
        "p": row.adjusted,
        "p_uncorrected": test.p if test else None,
        "correction": row.correction if test else "",
        "n": test.n if test else None,
        "better": SIDE_BY_OUTCOME.get(row.better, row.better),
        "method": row.method,
    }
