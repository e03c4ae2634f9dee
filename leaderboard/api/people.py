"""The ranking of people."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.api.schemas import PeopleRanking
from leaderboard.people.activity import count_team_week
from leaderboard.people.views import find_ranking_reader, select_visible_lines


class PeopleView(APIView):
    @extend_schema(operation_id="leaderboard_people", responses=PeopleRanking)
    def get(self, request: Request, code: str) -> Response:
        """Return the ranking's first ten people, your neighbours, and the team's week so far.

        Only people in the ranking see its lines. Sensitive tasks have no ranking, and paid
        participants are not ranked.
        """
        task, me = find_ranking_reader(request, code)
        team = count_team_week(task) if task.config.context else None
        body = {"in_ranking": me.in_ranking, "team": team, "places": select_visible_lines(task, me)}
        return Response(PeopleRanking(body).data)
