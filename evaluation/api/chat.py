"""API views of chat models: their settings, cost estimates and cost caps."""

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
from core.web.form_fields import build_request_field
from evaluation.runs.chat.settings import (
    MAX_STOP_CHARS,
    MAX_STOPS,
    ChatSettings,
    make_chat_settings,
)
from evaluation.submissions.chat_description import describe_chat
from evaluation.submissions.kinds.chat import ChatForm
from evaluation.submissions.prompt_form import CapForm
from evaluation.submissions.services import change_cap
from evaluation.submissions.visibility import Viewer, find_owned_submission
from tasks.access import find_task
from tasks.config.schema import TaskConfig
from tasks.permissions import can_submit

SUBMIT_SCOPE = ApiToken.Scope.SUBMIT


class ChatSerializer(serializers.Serializer[Any]):
    """The settings of a chat model. Prices are per million tokens."""

    model = build_request_field(
        ChatForm, "model", required=False, help_text="Its name on the server; llm: left out."
    )
    instructions = build_request_field(
        ChatForm,
        "instructions",
        help_text="The system message; left out, the task's name and labels in its own words.",
    )
    template = build_request_field(
        ChatForm,
        "template",
        help_text="Of an example, with `{field}` for each; left out, all fields.",
    )
    shots = build_request_field(
        ChatForm,
        "shots",
        allow_null=False,
        help_text="Examples in the prompt, of the train split.",
    )
    shots_seed = build_request_field(ChatForm, "shots_seed", allow_null=False)
    temperature = build_request_field(ChatForm, "temperature", allow_null=False)
    seed = build_request_field(ChatForm, "seed")
    max_tokens = build_request_field(ChatForm, "max_tokens", allow_null=False)
    stop: Any = serializers.ListField(
        child=serializers.CharField(max_length=MAX_STOP_CHARS, trim_whitespace=False),
        max_length=MAX_STOPS,
        required=False,
        help_text="Texts before which an answer ends.",
    )
    logprobs = build_request_field(
        ChatForm, "logprobs", required=False, help_text="Ask for the log-probabilities of answers."
    )
    price_in = build_request_field(
        ChatForm, "price_in", allow_null=False, help_text="Of tokens read."
    )
    price_out = build_request_field(
        ChatForm, "price_out", allow_null=False, help_text="Of tokens written."
    )
    most_cost = build_request_field(
        ChatForm, "most_cost", help_text="Cap on all evaluations together."
    )
    perturbed = build_request_field(
        ChatForm, "perturbed", required=False, help_text="Measure robustness and fairness too."
    )
    short_only = build_request_field(
        ChatForm,
        "short_only",
        required=False,
        help_text="No whole evaluations until `evaluate-in-full`; `llm`: left out.",
    )


class ChatSettingsSerializer(serializers.Serializer[Any]):
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
    short_only = serializers.BooleanField(help_text="It gets only short evaluations.")
    reader = serializers.CharField(help_text="The version of the rules that read its answers.")
    price_in = serializers.FloatField()
    price_out = serializers.FloatField()
    most_cost = serializers.FloatField(allow_null=True, help_text="For those inside.")
    spent = serializers.FloatField(allow_null=True, help_text="So far; for those inside.")


def build_settings(config: TaskConfig, values: dict[str, Any] | None) -> ChatSettings | None:
    """Return the chat settings in a request's body; None if it has none."""
    if not values:
        return None
    stop = tuple(values.get("stop", ()))  # settings are compared, so it must be hashable
    return make_chat_settings(config, **values | {"stop": stop})


class EstimateSerializer(serializers.Serializer[Any]):
    """An estimate for all evaluations on the current sets, at four characters per token."""

    requests = serializers.IntegerField()
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cost = serializers.FloatField(allow_null=True, help_text="null: without prices.")
    over_cap = serializers.BooleanField()


class EstimateView(APIView):
    write_scope = SUBMIT_SCOPE

    @extend_schema(
        operation_id="models_estimate", request=ChatSerializer, responses=EstimateSerializer
    )
    def post(self, request: Request, code: str) -> Response:
        """Estimate the cost of a chat model's evaluations. Calls no model and stores nothing."""
        from evaluation.runs.chat.estimate import estimate_cost  # loads numpy

        task = find_task(request, code, can_submit)
        settings = build_settings(task.config, read(ChatSerializer, request))
        return Response(EstimateSerializer(vars(estimate_cost(task, settings))).data)


class CapSerializer(serializers.Serializer[Any]):
    """The maximum total cost of a model's evaluations."""

    most_cost = build_request_field(CapForm, "most_cost")


class CapView(APIView):
    write_scope = SUBMIT_SCOPE

    @write("models_cap", CapSerializer, ChatSettingsSerializer)
    def post(self, request: Request, pk: UUID) -> Response:
        """Change the cost cap of a chat model. Model owners only.

        Runs that the former cap ended may then be repeated.
        """
        submission, user = find_owned_submission(request, pk)
        change_cap(submission=submission, actor=user, **read(CapSerializer, request))
        # Includes the stored cap.
        submission.refresh_from_db()
        viewer = Viewer(is_owner=True, is_task_owner=False)
        return Response(ChatSettingsSerializer(describe_chat(submission, viewer)).data)
