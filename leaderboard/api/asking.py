"""Helpers of the board views: read the requested board, and compute its ETag."""

from datetime import date
from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from core.errors import Refused
from core.web.api import check_query
from leaderboard.board.opening import find_start_weights
from leaderboard.board.query import BoardRequest, read_request
from tasks.models import Task

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.matrix import Matrix

MINE_PARAMETER = OpenApiParameter(
    "mine", bool, description="Include unpublished models that you can see."
)
TRUE_TEXTS, FALSE_TEXTS = ("1", "true"), ("", "0", "false")


def read_requested_matrix(
    request: Request, task: Task, *names: str, prefixes: tuple[str, ...] = ()
) -> "Matrix":
    """Return the matrix of the public board; with `mine`, include all models that the user may see.

    names, prefixes: further query parameters that are allowed, and prefixes of such names.
    Raises ValidationError and Refused (422).
    """
    from leaderboard.board.matrix import read_matrix

    check_query(request, "mine", *names, prefixes=prefixes)
    text = request.query_params.get("mine", "")
    if text not in TRUE_TEXTS + FALSE_TEXTS:
        raise Refused("Use mine=true or mine=false.", code="invalid", status=422, field="mine")
    return read_matrix(task, request.user if text in TRUE_TEXTS else None)


def read_board_request(request: Request, task: Task, matrix: "Matrix") -> BoardRequest:
    """Return the weights and options that the query requests.

    Raises Refused (422), or Http404 if no fork has the requested name.
    """
    start = find_start_weights(task, matrix, request.query_params.get("fork"))
    return read_request(dict(request.query_params.lists()), start, matrix.modes)


def compute_version(task: Task, matrix: "Matrix", *further_values: object) -> str:
    """Return a text for an ETag; it changes whenever a response computed from the matrix changes.

    further_values: further values that the response depends on.
    """
    from leaderboard.board.tables import compute_code_version

    parts = (
        task.name, task.config_text, matrix.models, matrix.sets, matrix.frozen, matrix.pool,
        matrix.state, matrix.judge, matrix.customs, compute_code_version(), date.today(),
        *further_values,
    )  # fmt: skip
    return repr(parts)
