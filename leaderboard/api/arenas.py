"""The boards of arenas."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import Unavailable
from core.web.api import respond_with_version
from leaderboard.api.schemas import Shape, TaskReference
from leaderboard.arena.board import build_report_body, read_cached_table
from tasks.access import find_task

LOG_STRENGTH_HELP = "Natural logarithm. 0 is the mean of the models. null: unknown."


class ArenaModel(Shape):
    """A model in the ranking. `low` and `high` are the ends of its 95% interval."""

    name = serializers.CharField()
    strength = serializers.FloatField(allow_null=True, help_text=LOG_STRENGTH_HELP)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    rank = serializers.IntegerField(allow_null=True, help_text="Models can share a rank: 1, 1, 3.")
    battles = serializers.IntegerField()
    wins = serializers.IntegerField()
    ties = serializers.IntegerField()


class ArenaEffect(Shape):
    """The effect of one more unit of a style covariate on the lead of a model."""

    name = serializers.CharField(help_text="length, headings, lists or bold")
    effect = serializers.FloatField(
        allow_null=True, help_text="null: the answers never differed in this."
    )
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class ArenaStyle(Shape):
    """The ranking over battles only, with the style of answers held constant."""

    models = ArenaModel(many=True)
    battles = serializers.IntegerField()
    voters = serializers.IntegerField()
    is_bounded = serializers.BooleanField()
    effects = ArenaEffect(many=True)


class ArenaTable(Shape):
    """The models of an arena, sorted by rank, then by strength."""

    task = TaskReference()
    date = serializers.DateField(help_text="When the models were last ranked.")
    models = ArenaModel(many=True)
    battles = serializers.IntegerField(help_text="Comparisons.")
    voters = serializers.IntegerField()
    weighted_battles = serializers.IntegerField(
        required=False,  # older snapshots lack it
        help_text=(
            "Battles whose models were drawn with unequal chances, weighted back to equal ones. "
            "Other comparisons count as they are."
        ),
    )
    is_bounded = serializers.BooleanField(
        help_text=(
            "Some models won or lost every battle, so a half win and a half loss were added to "
            "each model."
        )
    )
    unconnected = serializers.ListField(
        child=serializers.CharField(), help_text="Models that were never compared with most others."
    )
    wins = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)),
        help_text="For each of the first ten models: the share of wins (0-1) against it.",
    )
    style: Any = ArenaStyle(allow_null=True, help_text="null: fewer than 100 battles.")


class ArenaView(APIView):
    is_public = True

    @extend_schema(operation_id="arena_get", responses=ArenaTable)
    def get(self, request: Request, code: str) -> Response:
        """Return the models of an arena, sorted by strength, with an ETag.

        503 while a large number of comparisons is ranked for the first time.
        """
        task = find_task(request, code, kinds=("arena",))
        cached_table = read_cached_table(task)
        if cached_table is None:
            raise Unavailable(_("We're still ranking the models. Try again in a minute."), wait=60)
        table = build_report_body(task, cached_table)
        return respond_with_version(request, repr(table), lambda: table)
