"""The LLM judges of arenas, whose verdicts are kept apart from people's ranking."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, serializers

from core.web.api import NewestFirst
from leaderboard.api.arenas import ArenaModel
from leaderboard.api.schemas import Shape
from leaderboard.arena.judges.selectors import find_arena_judges
from leaderboard.models import ArenaJudge
from tasks.access import find_task
from tasks.permissions import can_edit


class JudgeRate(Shape):
    """A share with its 95% interval, clustered by voter."""

    value = serializers.FloatField(help_text="0-1")
    low = serializers.FloatField()
    high = serializers.FloatField()
    n = serializers.IntegerField(help_text="Battles, and pairs of answers that were ranked.")


class JudgeKappa(Shape):
    """Cohen's κ between people's votes and the judge's verdicts, with its 95% interval."""

    value = serializers.FloatField(allow_null=True, help_text="null: not defined.")
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class JudgeRanking(Shape):
    """A ranking over the battles that both people and the judge decided."""

    models = ArenaModel(many=True)
    battles = serializers.IntegerField()
    voters = serializers.IntegerField()
    is_bounded = serializers.BooleanField(
        help_text=(
            "Some models won or lost every battle, so a half win and a half loss were added to "
            "each model."
        )
    )


class ArenaJudgeReport(Shape):
    """What a judge's verdicts on both orders say. It is null until the judge has run."""

    battles = serializers.IntegerField(
        help_text="Judged in both orders, of rankings all pairs of answers."
    )
    voters = serializers.IntegerField(help_text="The people whose conversations these are.")
    waiting = serializers.IntegerField(help_text="Battles that were not judged in both orders.")
    calls = serializers.IntegerField(help_text="Calls of the last request.")
    failures = serializers.IntegerField(help_text="Failed calls of the last request.")
    is_calibrated = serializers.BooleanField(
        help_text="Whether the agreement rests on enough battles (50). Otherwise don't trust it."
    )
    agreement = JudgeKappa(help_text="Undecided verdicts count as ties, and so does “both bad”.")
    consistency: Any = JudgeRate(
        allow_null=True, help_text="The share of battles with the same verdict in both orders."
    )
    first_share: Any = JudgeRate(
        allow_null=True,
        help_text="Position bias: among the other battles, the share that prefers the first side.",
    )
    counts = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()),
        help_text=(
            "Battles and pairs of rankings by people's vote (left, right, tie), then by the "
            "judge's verdict (left, right, tie, undecided)."
        ),
    )
    ranking: Any = JudgeRanking(
        allow_null=True, help_text="By the judge's verdicts. null: no battles."
    )
    people: Any = JudgeRanking(allow_null=True, help_text="By people's votes on the same battles.")


class ArenaJudgeSerializer(serializers.ModelSerializer[ArenaJudge]):
    """A chat model with a prompt that judges an arena's battles, each with the sides swapped."""

    target: Any = serializers.CharField(source="target.name")
    report = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField(help_text="Only owners and editors see it.")

    class Meta:
        model = ArenaJudge
        fields = read_only_fields = (
            *("id", "name", "target", "prompt", "most_calls", "state", "error", "is_shown"),
            "report",
        )

    def get_error(self, judge: ArenaJudge) -> str:
        # It may quote what a model's server said.
        return judge.error if can_edit(self.context["request"].user, judge.task) else ""

    @extend_schema_field(ArenaJudgeReport(allow_null=True))
    def get_report(self, judge: ArenaJudge) -> Mapping[str, Any] | None:
        return judge.report or None


@extend_schema_view(get=extend_schema(operation_id="arena_judges_list"))
class ArenaJudges(generics.ListAPIView[ArenaJudge]):
    """The LLM judges of an arena, newest first.

    Owners and editors see all of them, other people those that the leaderboard shows. Their
    verdicts never count in people's ranking.
    """

    is_public = True
    serializer_class = ArenaJudgeSerializer
    pagination_class = NewestFirst
    queryset = ArenaJudge.objects.none()

    def get_queryset(self) -> QuerySet[ArenaJudge]:
        task = find_task(self.request, self.kwargs["code"], kinds=("arena",))
        return find_arena_judges(task, only_shown=not can_edit(self.request.user, task))
