"""Following a task."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.web.api import read
from leaderboard.rounds.following import services
from tasks.access import ALL_KINDS, find_task


class FollowState(serializers.Serializer[Any]):
    """The user's choice whether to get an email when a round of the task is released."""

    follows = serializers.BooleanField()


class FollowView(APIView):
    write_scope = ApiToken.Scope.SUBMIT

    @extend_schema(operation_id="follow_get", responses=FollowState)
    def get(self, request: Request, code: str) -> Response:
        """Return whether you follow the task."""
        task = find_task(request, code, kinds=ALL_KINDS)
        return Response({"follows": task.followers.filter(user=request.user.pk).exists()})

    @write("follow_set", FollowState, FollowState)
    def post(self, request: Request, code: str) -> Response:
        """Follow or unfollow the task."""
        task = find_task(request, code, kinds=ALL_KINDS)
        values = read(FollowState, request)
        services.set_follow(task=task, user=get_person(request), **values)
        return Response(values)
