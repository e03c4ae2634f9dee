"""The API's view of which examples people judge if a judge model answers all, and of vote plans."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import check_form, read, read_query
from core.web.form_fields import build_request_field
from tasks.access import find_task_and_editor
from tasks.models import Round
from validation.api.statistics import CountingInProgress
from validation.judging.draw_counts import DrawState, read_draw_state
from validation.judging.draw_forms import DrawForm
from validation.judging.draw_services import change_draw
from validation.statistics.cache import read_cached_report


class NewVoteDrawSerializer(serializers.Serializer[Any]):
    """The rule by which people are asked about a sample."""

    judge = serializers.CharField(
        allow_null=True,
        help_text="The name of a model of the task that authors don't try to fool. null: people "
        "judge every new example.",
    )
    by_instruction = build_request_field(
        DrawForm,
        "by_instruction",
        help_text="A chat model reads what people who judge read, and answers their question. "
        "false: the model gives its own label, which is compared with the author's. Tasks without "
        "labels always judge by an instruction.",
    )
    prompt = build_request_field(
        DrawForm,
        "prompt",
        help_text="The instruction. Empty: the site's own. Refused if the model gives its own "
        "label.",
    )
    min_chance = build_request_field(
        DrawForm,
        "min_chance",
        help_text="The chance of an example of which the judge model is sure. Default: 0.1.",
    )


class VoteDrawSerializer(serializers.Serializer[DrawState]):
    """How a round draws the examples that people judge, and what it has drawn."""

    judge = serializers.CharField(source="judge_name", allow_null=True)
    min_chance = serializers.FloatField(
        source="rule.min_chance", default=None, allow_null=True, help_text="null: no rule."
    )
    prompt = serializers.CharField(
        source="rule.prompt",
        default=None,
        allow_null=True,
        help_text="The instruction by which it judges. null: its own label is compared.",
    )
    is_judge_down = serializers.BooleanField(
        help_text="It doesn't answer. New examples wait for an hour, then people judge all of them."
    )
    drawn = serializers.IntegerField(help_text="Examples that people judge.")
    unanswered = serializers.IntegerField(
        help_text="Of the drawn ones: the judge model gave no answer."
    )
    unreadable = serializers.IntegerField(
        help_text="Of the drawn ones: the judge model gave none of the possible answers."
    )
    left_out = serializers.IntegerField(help_text="Examples that people don't judge.")


class VotePlanQuery(serializers.Serializer[Any]):
    """The interval to plan for."""

    width = serializers.FloatField(
        min_value=0.01, max_value=0.9, help_text="The wanted width of the 95% interval."
    )
    correlation = serializers.FloatField(
        min_value=-1,
        max_value=1,
        allow_null=True,
        default=None,
        help_text="Of the judge model with people. Default: as measured on the task, or else 0.6.",
    )


class VotePlanSerializer(serializers.Serializer[Any]):
    """How many examples people must judge for an interval of the catch rate."""

    examples = serializers.IntegerField()
    width = serializers.FloatField()
    expected_share = serializers.FloatField()
    correlation = serializers.FloatField(source="correlation.value")
    measured_on = serializers.IntegerField(
        source="correlation.example_count",
        help_text="The examples on which the correlation was measured; 0: it is assumed.",
    )
    kappa = serializers.FloatField(
        source="correlation.kappa",
        allow_null=True,
        help_text="Cohen's kappa of the judge model's verdicts with people's, on the same "
        "examples. null: not measured.",
    )
    cost_per_example = serializers.FloatField(
        allow_null=True,
        help_text="What the judge model cost for each example so far, by the prices in the "
        "model's options. null: no prices, or it wasn't asked yet.",
    )
    judge_cost = serializers.FloatField(
        allow_null=True, help_text="What it costs to ask it about all examples."
    )
    saved_examples = serializers.IntegerField(
        allow_null=True, help_text="Examples that people needn't judge because of it."
    )
    with_judge = serializers.IntegerField(
        source="plan.with_judge", allow_null=True, help_text="null: even all are too few."
    )
    without_judge = serializers.IntegerField(source="plan.without_judge", allow_null=True)
    saved_share = serializers.FloatField(source="plan.saved_share")


def _find_round(view: APIView, code: str, number: int) -> tuple[Round, Any]:
    """Return the round and the user, who must be allowed to edit its task."""
    task, editor = find_task_and_editor(view.request, code)
    return get_object_or_404(task.rounds.select_related("task"), number=number), editor


class VoteDrawView(APIView):
    write_scope = ApiToken.Scope.OWN

    @extend_schema(operation_id="vote_draw_get", responses=VoteDrawSerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return how the round draws what people judge; for the task's editors."""
        round, _ = _find_round(self, code, number)
        return Response(VoteDrawSerializer(read_draw_state(round)).data)

    @write("vote_draw_change", NewVoteDrawSerializer, VoteDrawSerializer)
    def put(self, request: Request, code: str, number: int) -> Response:
        """Let people judge a sample with the help of a judge model, or every new example.

        Examples that were drawn keep their chance.
        """
        round, editor = _find_round(self, code, number)
        values = read(NewVoteDrawSerializer, request)
        # Uses the page's form, so that both refuse the same values.
        form = DrawForm(round, {**values, "judge": values["judge"] or ""})
        check_form(form)
        change_draw(round=round, owner=editor, rule=form.rule)
        return Response(VoteDrawSerializer(read_draw_state(round)).data)


class VotePlanView(APIView):
    reads_query = ("GET",)

    @extend_schema(
        operation_id="vote_plan_get", parameters=[VotePlanQuery], responses=VotePlanSerializer
    )
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return how many examples people must judge, with and without a judge model.

        For the task's editors. 404 if the round has no examples.
        """
        round, _ = _find_round(self, code, number)
        values = read_query(VotePlanQuery, request)
        report = read_cached_report([round], code=code)
        if report is None:
            raise CountingInProgress
        # Imported on use, because it loads numpy.
        from validation.statistics.vote_planning import plan_round_votes

        planned = plan_round_votes(
            [round], report.numbers["all"], values["width"], values.get("correlation")
        )
        if planned is None:
            raise NotFound("The round has no examples to plan for.")
        return Response(VotePlanSerializer(planned).data)
