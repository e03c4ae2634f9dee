"""Two models of a leaderboard compared."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField, IntegerField, Serializer
from rest_framework.views import APIView

from core.errors import Refused
from core.web.api import respond_with_version
from leaderboard.api.asking import MINE_PARAMETER, compute_version, read_requested_matrix
from leaderboard.api.schemas import ModelComparison
from leaderboard.board.columns import RUN_COLUMNS
from leaderboard.compare.views import SAME_MODEL_MESSAGE, SIDES, index_models
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_download, can_edit

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.matrix import Matrix
    from leaderboard.compare.models import ComparedExample, ComparedMetric, Comparison

SIDE_BY_OUTCOME: Mapping[str, str] = {"first": "a", "second": "b"}


class ExamplesQuery(Serializer[Any]):
    """The query parameters that select a set and a page of its examples."""

    set = CharField(default="", allow_blank=True)
    page = IntegerField(min_value=1, max_value=99_999, default=1)


class CompareView(APIView):
    is_public = True
    reads_query = ("GET",)

    @extend_schema(
        operation_id="leaderboard_compare",
        parameters=[
            OpenApiParameter("a", required=True, description="ID of the first model."),
            OpenApiParameter("b", required=True, description="ID of the second model."),
            OpenApiParameter("set", description="Test set whose examples are included."),
            OpenApiParameter("page", int, description="Slice of these examples."),
            MINE_PARAMETER,
        ],
        responses=ModelComparison,
    )
    def get(self, request: Request, code: str) -> Response:
        """Return differences with intervals and tests, by metric and slice, and examples of a set.

        The examples are those to which the two models answer differently. Readers who may see
        models' mistakes get the examples that only one of the two answers correctly. Has an ETag.
        """
        task = find_task(request, code)
        matrix = read_requested_matrix(request, task, "a", "b", "set", "page")
        pair = _find_pair(request, matrix)
        is_editor, may_download = can_edit(request.user, task), can_download(request.user, task)
        query = ExamplesQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        name, page = query.validated_data["set"], query.validated_data["page"]

        def build_body() -> dict[str, Any]:
            return _build_body(
                task, matrix, pair, name, page, is_editor=is_editor, may_download=may_download
            )

        return respond_with_version(
            request, compute_version(task, matrix, is_editor, may_download), build_body
        )


def _find_pair(request: Request, matrix: "Matrix") -> tuple[int, int]:
    """Return the indices of the two models in the matrix. Raises Refused."""
    index_by_model = index_models(matrix)
    pair = []
    for side in SIDES:
        text = request.query_params.get(side, "")
        if not text:
            raise Refused("Give two models, as a and b.", code="invalid", status=422, field=side)
        if text not in index_by_model:
            message = (
                f"{text} is not on the leaderboard of {matrix.task}. It has no score "
                "there, or it is not published."
            )
            raise Refused(message, code="not_on_board", status=404, field=side)
        pair.append(index_by_model[text])
    first, second = pair
    if first == second:
        raise Refused(SAME_MODEL_MESSAGE, code="invalid", status=422, field="b")
    return first, second


def _build_body(
    task: Task,
    matrix: "Matrix",
    pair: tuple[int, int],
    name: str,
    page: int,
    *,
    is_editor: bool,
    may_download: bool,
) -> dict[str, Any]:
    """Return the comparison of two models as JSON, with a page of examples from the set `name`.

    may_download: whether the reader may download the task's data, and so may see examples.
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
    chosen_set = choose_set(pairs if may_download else {}, name, is_editor=is_editor)
    start = (page - 1) * PAGE_EXAMPLES
    # One more than the page shows, to know whether there is a next page.
    examples = find_differing_examples(task, chosen_set, start, start + PAGE_EXAMPLES + 1)
    return {
        "a": _build_model(matrix, pair[0]),
        "b": _build_model(matrix, pair[1]),
        "judge": matrix.judge.public_fields if matrix.judge else None,
        **_build_comparison_body(comparison),
        "readable": chosen_set.readable,
        "examples": [_build_example(example) for example in examples[:PAGE_EXAMPLES]],
        "next_page": page + 1 if len(examples) > PAGE_EXAMPLES else None,
    }


def _build_example(example: "ComparedExample") -> dict[str, Any]:
    first, second = example.answers
    return {
        "uid": example.uid,
        "inputs": dict(example.fields),
        "a": first,
        "b": second,
        "gold": example.gold,
    }


def _build_model(matrix: "Matrix", model_index: int) -> dict[str, str]:
    model = matrix.models[model_index]
    return {"id": str(model.id), "model": model.name, "owner": model.owner, "team": model.team}


def _build_comparison_body(comparison: "Comparison") -> dict[str, Any]:
    loops = []
    for model_index, name in comparison.in_the_loop:
        loops.append({"model": "ab"[model_index], "set": name})
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
    test = row.test_result  # None: not tested
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
        "p": row.adjusted_p,
        "p_uncorrected": test.p if test else None,
        "correction": row.correction if test else "",
        "n": test.n if test else None,
        "better": SIDE_BY_OUTCOME.get(row.better, row.better),
        "method": row.method,
    }
