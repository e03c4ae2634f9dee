"""The API's views of rounds: what each one is, its plan and its state."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.data.dry_runs import rehearse
from core.errors import Refused
from core.web.api import check_form, read
from tasks.access import find_task_and_editor
from tasks.api.serializers import RoundSerializer
from tasks.api.tasks import TaskPartView
from tasks.models import Round, Task
from tasks.rounds.forms import ReplacementForm, RoundForm
from tasks.rounds.loop import replace_target
from tasks.rounds.opening_services import cancel_opening, request_round_state
from tasks.rounds.services import change_round, plan_round
from tasks.selectors import find_visible_rounds

REQUESTABLE_STATES = [choice for choice in Round.State.choices if choice[0] != Round.State.RELEASED]
MAX_INTEGER = 2**31 - 1  # of a whole number in PostgreSQL


def _build_integer_field(help_text: str, **options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=0, max_value=MAX_INTEGER, required=False, help_text=help_text, **options
    )


class RoundPlanSerializer(serializers.Serializer[Any]):
    """The plan of a round. Omitted fields keep their value or get the form's default."""

    description = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, help_text="Markdown."
    )
    rule = serializers.ChoiceField(
        Round.Rule.choices, required=False, help_text="Of which targets an example must fool."
    )
    show_target_name = serializers.BooleanField(required=False)
    targets = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Names of the task's targets."
    )
    parents = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=MAX_INTEGER),
        required=False,
        help_text="Earlier rounds that it grows out of.",
    )
    contexts_of = _build_integer_field("An earlier round whose contexts are copied.")
    ends_at = serializers.DateTimeField(
        allow_null=True, required=False, help_text="The round closes then; null: never."
    )
    max_collected = _build_integer_field(
        "The round closes at this number of examples.", allow_null=True
    )
    max_fooling = _build_integer_field(
        "The round closes at this number of verified fooling examples.", allow_null=True
    )
    max_spent = _build_integer_field(
        "The round closes when this amount is spent, in cents.", allow_null=True
    )
    pay_example = _build_integer_field("In cents.")
    pay_validation = _build_integer_field("In cents.")
    pay_bonus = _build_integer_field("In cents.")
    dry_run = serializers.BooleanField(
        default=False, help_text="Only check the plan, and return the round as it would be."
    )


class NewRoundPlanSerializer(RoundPlanSerializer):
    """The plan of a new round."""

    number = serializers.IntegerField(
        min_value=1,
        max_value=MAX_INTEGER,
        required=False,
        help_text="The number that it must get. It is refused if another round got it first.",
    )


def _build_plan(data: Mapping[str, Any], task: Task, round: Round | None = None) -> dict[str, Any]:
    """Return the request as arguments for the services, validated by the owners' form.

    Raises Refused for fields that cannot change because the round has been opened.
    """
    # 1. An empty form tells which fields may still change.
    form = RoundForm(task=task, instance=round)
    if fixed := ", ".join(data.keys() - form.fields.keys()):
        raise Refused(f"The round was opened, so this is fixed: {fixed}.", code="fixed")
    # 2. What the request leaves out stays as it is.
    current_values = {name: form[name].initial for name in form.fields}
    # 3. The owners' form checks the whole plan.
    form = RoundForm({**current_values, **data}, task=task, instance=round)
    check_form(form)
    # 4. Only what was asked for goes to the service, so that the log names nothing else.
    plan = form.plan
    fields = {}
    for name, value in plan.pop("fields").items():
        if name in data:
            fields[name] = value
    return {**{name: plan[name] for name in plan.keys() & data.keys()}, "fields": fields}


class _RoundsView(TaskPartView):
    """Base view of the rounds that the person may see."""

    is_public = True
    write_scope = ApiToken.Scope.OWN
    serializer_class = RoundSerializer
    queryset = Round.objects.none()
    lookup_field = "number"

    def get_queryset(self) -> QuerySet[Round]:
        rounds = find_visible_rounds(self.task, include_planned=self.can_see_plans)
        return rounds.prefetch_related("round_targets__target", "parents")

    def respond_with_round(
        self, task: Task, number: int, status: int = status.HTTP_200_OK
    ) -> Response:
        """Return the response that describes a round to people who may change it."""
        rounds = task.rounds.prefetch_related("round_targets__target", "parents")
        return Response(
            RoundSerializer(rounds.get(number=number), context={"can_see_plans": True}).data, status
        )


@extend_schema_view(get=extend_schema(operation_id="rounds_list"))
class Rounds(_RoundsView, generics.ListAPIView[Round]):
    """The rounds that have opened; for reviewers of the task, also the planned rounds."""

    @write("rounds_create", NewRoundPlanSerializer, {200: RoundSerializer, 201: RoundSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Create the next round as a draft. The status of a dry run is 200."""
        task, editor = find_task_and_editor(request, code)
        data = read(NewRoundPlanSerializer, request)
        is_dry_run, wanted_number = data.pop("dry_run"), data.pop("number", None)
        with rehearse(is_dry_run):
            round = plan_round(task=task, actor=editor, **_build_plan(data, task))
            # Two people who plan the same round at once would otherwise get two.
            if wanted_number not in (None, round.number):
                message = f"The next round is {round.number}, not {wanted_number}."
                raise Refused(message, code="stale", field="number")
            response_status = status.HTTP_200_OK if is_dry_run else status.HTTP_201_CREATED
            return self.respond_with_round(task, round.number, response_status)


@extend_schema_view(get=extend_schema(operation_id="rounds_get"))
class RoundView(_RoundsView, generics.RetrieveAPIView[Round]):
    """A round: its state, its goals, and its models under the names that the reader may see."""

    @write("rounds_change", RoundPlanSerializer, RoundSerializer)
    def patch(self, request: Request, code: str, number: int) -> Response:
        """Change a round's plan. Rule, targets and contexts cannot change once it has opened."""
        task, editor = find_task_and_editor(request, code)
        round = get_object_or_404(task.rounds, number=number)
        data = read(RoundPlanSerializer, request)
        is_dry_run = data.pop("dry_run")
        with rehearse(is_dry_run):
            change_round(round=round, actor=editor, **_build_plan(data, task, round))
            return self.respond_with_round(task, number)


class WantedStateSerializer(serializers.Serializer[Any]):
    """The requested state of a round."""

    state = serializers.ChoiceField(
        REQUESTABLE_STATES, help_text="A round is released with its dataset, not here."
    )


class RoundStateView(_RoundsView):
    """The state of a round."""

    is_public = False

    @write("rounds_set_state", WantedStateSerializer, RoundSerializer)
    def post(self, request: Request, code: str, number: int) -> Response:
        """Open, pause or close a round, or move it back. People may finish writing after it closes.

        If its targets are still loading, the round keeps its state, has `opening_since`, and opens
        automatically when they are ready. Sending its current state again cancels the opening.
        """
        task, editor = find_task_and_editor(request, code)
        round = get_object_or_404(task.rounds, number=number)
        data = read(WantedStateSerializer, request)
        if round.opening_since and data["state"] == round.state:
            cancel_opening(round=round, actor=editor)
        else:
            request_round_state(round=round, state=data["state"], actor=editor)
        return self.respond_with_round(task, number)


class ReplacementSerializer(serializers.Serializer[Any]):
    """The names of the target to remove and of the target that replaces it."""

    old = serializers.CharField(help_text="A target of the round.")
    new = serializers.CharField(help_text="Another target of the task.")


class TargetReplacementView(_RoundsView):
    """The replacement of a broken target."""

    is_public = False

    @write("rounds_replace_target", ReplacementSerializer, RoundSerializer)
    def post(self, request: Request, code: str, number: int) -> Response:
        """Replace a target of an opened round without examples. The new target must answer."""
        task, editor = find_task_and_editor(request, code)
        round = get_object_or_404(task.rounds.select_related("task"), number=number)
        form = ReplacementForm(read(ReplacementSerializer, request), round=round)
        check_form(form)
        old_target, new_target = form.cleaned_data["old"], form.cleaned_data["new"]
        replace_target(round=round, old_target=old_target, new_target=new_target, actor=editor)
        return self.respond_with_round(task, number)
