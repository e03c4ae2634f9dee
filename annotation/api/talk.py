"""The API's views of a conversation with the target, before it is sent as an example."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.api.entry import authorise_annotator
from annotation.api.serializers import find_own_assignment
from annotation.attempts import conversation_services
from annotation.attempts.failures import FAILURE_MESSAGES, NO_ANSWER_MESSAGE
from annotation.attempts.services import check_programs_write
from annotation.care.services import record_text_answered
from annotation.models import Assignment, Conversation
from annotation.writing import talk
from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import read


class SpokenTurnSerializer(serializers.Serializer[Any]):
    """A turn of a conversation."""

    place: Any = serializers.IntegerField(help_text="By which it is marked or taken back.")
    role = serializers.ChoiceField(["user", "assistant"])
    text = serializers.CharField()


class ConversationSerializer(serializers.ModelSerializer[Conversation]):
    """A conversation of a person with the target, without the system message."""

    turns = serializers.SerializerMethodField()
    at = serializers.SerializerMethodField(help_text="The place of the next turn.")
    said = serializers.CharField(help_text="The person's turn that has no answer yet.")
    is_asking: Any = serializers.BooleanField(help_text="Whether the model is answering.")
    failure = serializers.SerializerMethodField(help_text="Why `said` got no answer, or empty.")
    left = serializers.SerializerMethodField(help_text="How many turns may still be said.")

    class Meta:
        model = Conversation
        fields = read_only_fields = ("turns", "at", "said", "is_asking", "failure", "left")

    @extend_schema_field(SpokenTurnSerializer(many=True))
    def get_turns(self, conversation: Conversation) -> list[dict[str, Any]]:
        numbered_turns = enumerate(conversation.turns)
        return [
            {"place": place, "role": turn["role"], "text": turn["text"]}
            for place, turn in numbered_turns
            if turn["role"] != "system"
        ]

    def get_at(self, conversation: Conversation) -> int:
        return len(conversation.turns)

    def get_failure(self, conversation: Conversation) -> str:
        return (
            FAILURE_MESSAGES.get(conversation.failure, NO_ANSWER_MESSAGE)
            if conversation.failure
            else ""
        )

    def get_left(self, conversation: Conversation) -> int:
        return talk.count_turns_left(conversation, conversation.assignment.round.task.config)


class SaySerializer(serializers.Serializer[Any]):
    """The person's next turn."""

    text = serializers.CharField(trim_whitespace=False)
    at: Any = serializers.IntegerField(
        required=False, min_value=0, max_value=1000, help_text="Refused if others were said since."
    )


class BackSerializer(serializers.Serializer[Any]):
    """The person's turn to take back, with all later ones."""

    turn: Any = serializers.IntegerField(min_value=0, max_value=1000, help_text="Its place.")
    edit: Any = serializers.BooleanField(default=False, help_text="`true`: keep its text as said.")


RESPONSES = {200: ConversationSerializer, 202: ConversationSerializer}


class _ConversationActionView(APIView):
    write_scope = ApiToken.Scope.ANNOTATE

    def get_assignment(self, request: Request, pk: int) -> Assignment:
        """Return the person's own assignment in a chat task. Raises Http404, Refused."""
        assignment = find_own_assignment(request, pk)
        authorise_annotator(request, assignment.round.task, check_programs_write)
        if assignment.round.task.config.talk is None:
            raise Http404
        return assignment

    def build_response(self, assignment: Assignment, status: int = 200) -> Response:
        conversation = conversation_services.get_conversation(assignment)
        conversation.assignment = assignment
        status = 202 if conversation.is_asking else status
        return Response(ConversationSerializer(conversation).data, status)


class ConversationView(_ConversationActionView):
    throttle = "predict"

    @extend_schema(
        operation_id="conversation_get",
        responses={200: ConversationSerializer, 202: ConversationSerializer},
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return the conversation of your assignment; 202 while the model is answering."""
        return self.build_response(self.get_assignment(request, pk))

    @write("conversation_say", SaySerializer, RESPONSES)
    def post(self, request: Request, pk: int) -> Response:
        """Send a turn to the round's target.

        202: no answer within five seconds. Poll the conversation until there is one. If
           answering fails, no turn is added; `failure` has the reason, and the same text may
           be sent again.
        """
        assignment = self.get_assignment(request, pk)
        body = read(SaySerializer, request)
        conversation = conversation_services.get_conversation(assignment)
        # Without a place the turn goes to the end.
        at = body.get("at", len(conversation.turns))
        conversation_services.say_turn(assignment=assignment, text=body["text"], turn_index=at)
        record_text_answered(annotator=assignment.annotator, task=assignment.round.task)
        return self.build_response(assignment)


class TakeBackView(_ConversationActionView):
    @write("conversation_take_back", BackSerializer, RESPONSES)
    def post(self, request: Request, pk: int) -> Response:
        """Take back one of your turns with all later ones, for example to edit it."""
        assignment = self.get_assignment(request, pk)
        body = read(BackSerializer, request)
        conversation_services.take_back_turn(
            assignment=assignment, turn=body["turn"], keeps_text=body["edit"]
        )
        return self.build_response(assignment)
