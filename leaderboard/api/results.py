"""The results of a submitted model."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evaluation.submissions.visibility import find_submission
from leaderboard.api.schemas import ModelResults


class ResultsView(APIView):
    is_public = True

    @extend_schema(operation_id="results_get", responses=ModelResults)
    def get(self, request: Request, pk: UUID) -> Response:
        """Return a model's Dynascore with the owner's weights, and its result on each round.

        Missing results have a reason. Poll until `is_over`.
        """
        from leaderboard.board.model_result import build_model_results

        submission, viewer = find_submission(request, pk)
        return Response(build_model_results(submission, viewer, request.user))
