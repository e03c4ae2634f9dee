"""What the views of boards share: the board somebody asks for, and what names its state."""

from datetime import date
from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from core.errors import Refused
from core.web.api import check_query
from leaderboard.board.opening import find_start_weights
from leaderboard.board.query import BoardRequest, read_request
from tasks.models import Task

if TYPE_CHECKING:  # it loads numpy
    from leaderboard.board.matrix import Matrix

MINE = OpenApiParameter(
    "mine", bool, description="With models that are not published, as far as you may see them."
)
YES, NO = ("1", "true"), ("", "0", "false")


def read_requested_matrix(
    request: Request, task: Task, *names: str, prefixes: tuple[str, ...] = ()
) -> "Matrix":
    """Return the numbers of the public board, or with `mine` also of models that the user may see.

    names, prefixes: further query parameters that are allowed, and prefixes of such names.
    Raises ValidationError and Refused (422).
    """
    from leaderboard.board.matrix import score_matrix

    check_query(request, "mine", *names, prefixes=prefixes)
    text = request.query_params.get("mine", "")
    if text not in YES + NO:
        raise Refused("Write mine=true or mine=false.", code="invalid", status=422, field="mine")
    return score_matrix(task, request.user if text in YES else None)


def read_board_request(request: Request, task: Task, matrix: "Matrix") -> BoardRequest:
    """Return the weights and options that the query requests.

    Raises Refused (422), or Http404 if no fork has the requested name.
    """
    start = find_start_weights(task, matrix, request.query_params.get("fork"))
    return read_request(dict(request.query_params.lists()), start, matrix.modes)


def compute_version(task: Task, matrix: "Matrix", *more: object) -> str:
    """Return an ETag value that changes whenever a response computed from the matrix changes.

    more: further values that the response depends on.
    """
    from leaderboard.board.tables import compute_code_version

    parts = (
        task.name, task.config_text, matrix.models, matrix.sets, matrix.frozen, matrix.pool,
        matrix.state, matrix.judge, matrix.customs, compute_code_version(), date.today(), *more,
    )  # fmt: skip
    return repr(parts)
