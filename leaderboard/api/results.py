"""What a handed-in model reached."""

from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evaluation.model_page import all_submissions, viewer_of
from leaderboard.api.schemas import Results


class ResultsView(APIView):
    """The results of one model."""

    is_public = True

    @extend_schema(operation_id="results_get", responses=Results)
    def get(self, request: Request, pk: UUID) -> Response:
        """Its Dynascore by the owner's weights, its number for each round, or why there is none.

        Ask again until `is_over`.
        """
        from leaderboard.results import results_of

        submission = get_object_or_404(all_submissions(), pk=pk)
        viewer = viewer_of(request.user, submission)
        if viewer is None:
            raise Http404
        return Response(results_of(submission, viewer, request.user))
