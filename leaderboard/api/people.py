"""The ranking of people."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.api.schemas import People
from leaderboard.people.activity import count_team_week
from leaderboard.people.views import enter_ranking, select_visible_lines


class PeopleView(APIView):
    @extend_schema(operation_id="leaderboard_people", responses=People)
    def get(self, request: Request, code: str) -> Response:
        """Return the ranking's first ten people and your neighbours, and the team's week.

        Only people in the ranking see these lines. Sensitive tasks have no ranking, and paid
        participants are not ranked.
        """
        task, me = enter_ranking(request, code)
        team = count_team_week(task) if task.config.context else None
        body = {"in_ranking": me.in_ranking, "team": team, "places": select_visible_lines(task, me)}
        return Response(People(body).data)
