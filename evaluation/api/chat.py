"""Chat models behind an OpenAI-compatible interface: how they are asked, and what that costs."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import read
from evaluation.runs.chat.settings import (
    MOST_COST,
    MOST_SHOTS,
    MOST_STOP,
    MOST_STOPS,
    MOST_TEXT,
    ChatSettings,
    settings_for,
)
from evaluation.submissions.services import change_cap
from evaluation.submissions.told_chat import told_chat
from evaluation.submissions.visibility import Viewer, find_owned
from tasks.access import find_task
from tasks.config.schema import TaskConfig
from tasks.permissions import can_submit

Submit = ApiToken.Scope.SUBMIT


class ChatSerializer(serializers.Serializer[Any]):
    """The settings of a chat model. Prices are per million tokens."""

    model = serializers.CharField(
        max_length=200, required=False, help_text="Its name on the server; llm: left out."
    )
    instructions = serializers.CharField(
        max_length=MOST_TEXT,
        required=False,
        allow_blank=True,
        help_text="The system message; left out, the task's name and labels in its own words.",
    )
    template = serializers.CharField(
        max_length=MOST_TEXT,
        required=False,
        allow_blank=True,
        help_text="Of an example, with `{field}` for each; left out, all fields.",
    )
    shots = serializers.IntegerField(
        min_value=0,
        max_value=MOST_SHOTS,
        required=False,
        help_text="Examples in the prompt, of the train split.",
    )
    shots_seed = serializers.IntegerField(min_value=0, required=False)
    temperature = serializers.FloatField(min_value=0, max_value=2, required=False)
    seed = serializers.IntegerField(min_value=0, required=False, allow_null=True)
    max_tokens = serializers.IntegerField(min_value=1, max_value=8192, required=False)
    stop: Any = serializers.ListField(
        child=serializers.CharField(max_length=MOST_STOP, trim_whitespace=False),
        max_length=MOST_STOPS,
        required=False,
        help_text="Texts before which an answer ends.",
    )
    logprobs = serializers.BooleanField(
        required=False, help_text="Ask for the log-probabilities of answers."
    )
    price_in = serializers.FloatField(min_value=0, required=False, help_text="Of tokens read.")
    price_out = serializers.FloatField(min_value=0, required=False, help_text="Of tokens written.")
    most_cost = serializers.FloatField(
        min_value=0, required=False, allow_null=True, help_text="Cap on all evaluations together."
    )
    perturbed = serializers.BooleanField(
        required=False, help_text="Measure robustness and fairness too."
    )


class ToldChatSerializer(serializers.Serializer[Any]):
    """The settings of a chat model, as shown to readers."""

    model = serializers.CharField(help_text="Empty while the model is anonymous.")
    instructions = serializers.CharField()
    template = serializers.CharField()
    base = serializers.CharField(help_text="Of an adapter; else empty.")
    shots = serializers.IntegerField()
    shots_seed = serializers.IntegerField()
    shot_uids = serializers.ListField(
        child=serializers.CharField(), help_text="The examples' names in their releases."
    )
    temperature = serializers.FloatField()
    seed = serializers.IntegerField(allow_null=True)
    max_tokens = serializers.IntegerField()
    stop: Any = serializers.ListField(child=serializers.CharField())
    logprobs = serializers.BooleanField()
    reader = serializers.CharField(help_text="The version of the rules that read its answers.")
    price_in = serializers.FloatField()
    price_out = serializers.FloatField()
    most_cost = serializers.FloatField(allow_null=True, help_text="For those inside.")
    spent = serializers.FloatField(allow_null=True, help_text="So far; for those inside.")


def settings_of(config: TaskConfig, values: dict[str, Any] | None) -> ChatSettings | None:
    """Return the chat settings in a request's body; None if it has none."""
    if not values:
        return None
    stop = tuple(values.get("stop", ()))  # settings are compared, so it must be hashable
    return settings_for(config, **values | {"stop": stop})


class EstimateSerializer(serializers.Serializer[Any]):
    """An estimate for all evaluations on the current sets, at four characters per token."""

    requests = serializers.IntegerField()
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cost = serializers.FloatField(allow_null=True, help_text="null: without prices.")
    over_cap = serializers.BooleanField()


class EstimateView(APIView):
    write_scope = Submit

    @extend_schema(
        operation_id="models_estimate", request=ChatSerializer, responses=EstimateSerializer
    )
    def post(self, request: Request, code: str) -> Response:
        """Estimate the cost of a chat model's evaluations. Calls no model and stores nothing."""
        from evaluation.runs.chat.estimate import estimate  # loads numpy

        task = find_task(request, code, can_submit)
        settings = settings_of(task.config, read(ChatSerializer, request))
        return Response(EstimateSerializer(vars(estimate(task, settings))).data)


class CapSerializer(serializers.Serializer[Any]):
    """The maximum total cost of a model's evaluations."""

    most_cost = serializers.FloatField(max_value=MOST_COST)


class CapView(APIView):
    write_scope = Submit

    @write("models_cap", CapSerializer, ToldChatSerializer)
    def post(self, request: Request, pk: UUID) -> Response:
        """Change the cost cap of a chat model. Model owners only.

        Runs that the former cap ended may then be repeated.
        """
        submission, user = find_owned(request, pk)
        change_cap(submission=submission, actor=user, **read(CapSerializer, request))
        # With the cap that was stored.
        submission.refresh_from_db()
        viewer = Viewer(is_owner=True, is_task_owner=False)
        return Response(ToldChatSerializer(told_chat(submission, viewer)).data)
