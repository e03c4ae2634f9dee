"""Leaderboards of models, and of models by round."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.web.api import build_weights_parameter, respond_with_version
from evaluation.models import Ruler
from leaderboard.api.asking import (
    MINE_PARAMETER,
    compute_version,
    read_board_request,
    read_requested_matrix,
)
from leaderboard.api.ruler_schemas import OneRuler
from leaderboard.api.schemas import CurrentBoard, RoundsMatrix, TrainingDates
from leaderboard.board.query import BoardRequest
from leaderboard.ranking.weights import METRIC_PREFIX, SET_PREFIX
from tasks.access import find_task
from tasks.models import Round, Task
from tasks.selectors import find_opened_rounds
from validation.statistics.cache import get_all_numbers

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.matrix import Matrix
    from leaderboard.rounds.worn import WornMeter


class LeaderboardView(APIView):
    is_public = True
    reads_query = ("GET",)

    @extend_schema(
        operation_id="leaderboard_get",
        parameters=[
            MINE_PARAMETER,
            build_weights_parameter(
                "Weights: `w_` with a metric, `d_` with a set. For example "
                "w_accuracy=4&d_round-1=5."
            ),
            OpenApiParameter(
                "mode",
                enum=["anchored", "robust", "classic"],
                description="The formula. Default: the board's first.",
            ),
            OpenApiParameter("fork", description="Name of a saved weighting."),
        ],
        responses=CurrentBoard,
    )
    def get(self, request: Request, code: str) -> Response:
        """Return the models in the order of their Dynascore, with an ETag.

        Give weights from 0 to 8 in the query, as on the page: `w_accuracy=4` for a metric,
        `d_round-1=5` for a set. Parameters that are left out keep the weights of the owner or
        the fork.
        """
        task = find_task(request, code)
        matrix = read_requested_matrix(
            request, task, "mode", "fork", prefixes=(METRIC_PREFIX, SET_PREFIX)
        )
        board_request = read_board_request(request, task, matrix)
        version = compute_version(task, matrix, board_request.weighting.query, board_request.mode)
        return respond_with_version(
            request, version, lambda: _build_board_body(task, matrix, board_request)
        )


def _build_board_body(task: Task, matrix: "Matrix", board_request: BoardRequest) -> dict[str, Any]:
    from leaderboard.board.ranked import rank_board
    from leaderboard.board.tables import build_board_table

    table = build_board_table(
        task, matrix, rank_board(matrix, board_request.weighting, board_request.mode)
    )
    published = {str(model.id) for model in matrix.models if model.is_published}
    rows = [{**row, "is_published": row["id"] in published} for row in table["rows"]]
    return {**table, "rows": rows}


class TrainingDatesView(APIView):
    is_public = True

    @extend_schema(operation_id="leaderboard_training_dates", responses=TrainingDates)
    def get(self, request: Request, code: str) -> Response:
        """Return accuracies before and after each model's training date, and on held-back rows."""
        from leaderboard.board.matrix import read_matrix
        from leaderboard.rounds.held_back import build_training_dates_body

        task = find_task(request, code)
        body = build_training_dates_body(read_matrix(task), find_opened_rounds([task]))
        return Response(TrainingDates(body).data)


class OneRulerView(APIView):
    is_public = True
    reads_query = ("GET",)

    @extend_schema(
        operation_id="leaderboard_ruler", parameters=[MINE_PARAMETER], responses=OneRuler
    )
    def get(self, request: Request, code: str) -> Response:
        """Return what each model is expected to score on each round, beside what was measured.

        Without a ruler, `why` says what is missing, and both lists are empty.
        """
        from leaderboard.board.one_ruler import build_ruler_board, build_ruler_body, find_obstacle

        task = find_task(request, code)
        matrix = read_requested_matrix(request, task)
        found = find_obstacle(task, matrix)
        # Not an error: whether a task has a ruler is the answer.
        if isinstance(found, Ruler):
            body = {**build_ruler_body(build_ruler_board(found, matrix)), "why": None}
        else:
            missing = dict.fromkeys(("metric", "ruler", "anchors"))
            body = {"task": code, "why": found.value, **missing, "is_rounded": False}
            body |= {"sets": [], "models": []}
        return Response(OneRuler(body).data)


class RoundsMatrixView(APIView):
    is_public = True
    reads_query = ("GET",)

    @extend_schema(
        operation_id="leaderboard_rounds", parameters=[MINE_PARAMETER], responses=RoundsMatrix
    )
    def get(self, request: Request, code: str) -> Response:
        """Return the results of models and people on each round's newest set, with an ETag."""
        from leaderboard.rounds.falls import find_last_fall

        task = find_task(request, code)
        matrix, opened_rounds = read_requested_matrix(request, task), find_opened_rounds([task])
        numbers = get_all_numbers(opened_rounds)
        meters = _build_meters(matrix, opened_rounds)
        fall = find_last_fall(task, matrix)

        def build_body() -> dict[str, Any]:
            from leaderboard.rounds.matrix import build_rounds, build_rounds_body

            table = build_rounds_body(matrix, build_rounds(matrix, opened_rounds, numbers))
            worn = [meter.build_json() for meter in meters]
            # Numbers of large rounds are counted in the background.
            table |= {"worn": worn, "last_fall": fall and fall.build_json()}
            return {**table, "is_counting": len(numbers) < len(opened_rounds)}

        states = [(round.number, round.state) for round in opened_rounds]
        people = [(pk, counted.numbers) for pk, counted in sorted(numbers.items())]
        return respond_with_version(
            request, compute_version(task, matrix, states, people, meters, fall), build_body
        )


def _build_meters(matrix: "Matrix", rounds: Sequence[Round]) -> "list[WornMeter]":
    """Return how worn out the rounds are."""
    from leaderboard.rounds.worn import build_worn_meters

    return build_worn_meters(matrix, rounds)
