"""The API's views of writing: the assignment, the submission of an example, and its result."""

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from annotation.access import require_annotator
from annotation.api.entry import authorise_annotator, is_program
from annotation.api.serializers import (
    AssignmentSerializer,
    AttemptSerializer,
    ExampleSerializer,
    NewExampleSerializer,
    WantSerializer,
    find_own_assignment,
)
from annotation.attempts import services
from annotation.attempts.conversation_services import (
    get_conversation,
    list_answered_turns,
    list_spoken_turns,
)
from annotation.attempts.failures import FAILURE_MESSAGES, NO_ANSWER_MESSAGE, STATUS_BY_FAILURE
from annotation.attempts.services import ask_targets
from annotation.care.services import record_text_answered
from annotation.context_picking.services import assign_next, pass_gate
from annotation.models import Assignment, Attempt, Example
from annotation.open_round import find_round_to_begin, find_round_to_write
from annotation.selectors import prefetch_outputs
from annotation.writing.forms import UNCHANGED_MESSAGE, find_unchanged_fields
from annotation.writing.page import WritePage
from core.accounts.api import write
from core.accounts.idempotency import KEY_HEADER
from core.accounts.models import ApiToken
from core.errors import Refused
from core.web.api import read
from tasks.access import find_task
from tasks.config.loading import validate_inputs
from tasks.config.values import normalise_values
from tasks.contexts.media.selectors import complete_media
from tasks.permissions import can_see


class NoTargetAnswer(Refused):
    """Raised when no target gave a usable answer. The text is kept as the draft."""

    wait = 10


class GateView(APIView):
    write_scope = ApiToken.Scope.ANNOTATE

    @write("gate_pass", None, {204: None})
    def post(self, request: Request, code: str) -> Response:
        """Confirm that you have read the task's content warning and want to continue."""
        task = find_task(request, code)
        pass_gate(annotator=require_annotator(request, task, can_see), task=task)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AssignmentView(APIView):
    write_scope = ApiToken.Scope.ANNOTATE

    @write("assignment_take", WantSerializer, AssignmentSerializer)
    def post(self, request: Request, code: str) -> Response:
        """Return your current context and goal, or assign new ones, which the server chooses."""
        task = find_task(request, code)
        annotator = authorise_annotator(request, task, services.check_programs_write)
        body = read(WantSerializer, request)
        requested_kind = body["want"]
        round = (
            find_round_to_write(task, annotator)
            if requested_kind == "current"
            else find_round_to_begin(task, annotator)
        )
        assignment = assign_next(annotator=annotator, round=round, requested_kind=requested_kind)
        return Response(AssignmentSerializer(assignment).data)


class NewExampleView(APIView):
    write_scope = ApiToken.Scope.ANNOTATE
    throttle = "predict"

    @write(
        "examples_create", NewExampleSerializer, {201: ExampleSerializer, 202: AttemptSerializer}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Submit an example to the round's targets.

        202: no answer within five seconds. Poll the attempt until it is done. On any failure,
           the text is stored as the assignment's draft.
        """
        assignment = find_own_assignment(request, pk)
        annotator = authorise_annotator(
            request, assignment.round.task, services.check_programs_write
        )
        body = read(NewExampleSerializer, request)
        inputs = check_inputs(assignment, body["inputs"])
        parent = _find_parent(assignment, body.get("parent"))
        attempt, must_ask = services.begin_attempt(
            annotator=annotator,
            assignment=assignment,
            key=_read_key(request),
            inputs=inputs,
            parent=parent,
            by_program=is_program(request),
        )
        if must_ask:
            record_text_answered(annotator=annotator, task=assignment.round.task)
            attempt = ask_targets(attempt)
        return build_attempt_response(request, attempt)


def check_inputs(assignment: Assignment, sent_inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs with the goal's label, validated as on the write page.

    Raises ValidationError.
    """
    config, goal = assignment.round.task.config, assignment.round.task.config.goal.field
    # Without outer spaces, as the form of the page removes them too.
    inputs = {n: v.strip() if isinstance(v, str) else v for n, v in sent_inputs.items()}
    inputs = complete_media(
        assignment.round.task, config.input, normalise_values(config.input, inputs)
    )
    # By its type, because True would pass as an integer.
    if config.talk and type(turn_index := inputs.get(config.talk.name)) is int:
        inputs[config.talk.name] = _take_turns_before(assignment, config.talk.name, turn_index)
    if config.talk and config.verdict.type == "decide":
        turns = get_conversation(assignment).turns
        inputs[config.talk.name] = list_answered_turns(turns)
    # The goal may be left out; another one was written for another assignment.
    if goal and inputs.setdefault(goal, assignment.goal) != assignment.goal:
        messages = [f"Your goal is {assignment.goal}. Leave this out, or ask for another goal"]
        raise serializers.ValidationError({"inputs": {goal: messages}})
    errors = validate_inputs(config, assignment.context.fields, inputs)
    for name in find_unchanged_fields(
        config, inputs, WritePage.from_assignment(assignment).text_to_change
    ):
        errors.setdefault(name, [UNCHANGED_MESSAGE])
    if errors:
        raise serializers.ValidationError({"inputs": errors})
    return {name: value for name, value in inputs.items() if value not in (None, "", [])}


def _take_turns_before(assignment: Assignment, name: str, turn_index: int) -> list[dict[str, Any]]:
    """Return the turns before the marked answer.

    turn_index: the index of that answer. Raises ValidationError if there is none.
    """
    turns = get_conversation(assignment).turns
    if not 0 <= turn_index < len(turns) or turns[turn_index]["role"] != "assistant":
        messages = ["The model gave no answer at this point of the conversation"]
        raise serializers.ValidationError({"inputs": {name: messages}})
    return list_spoken_turns(turns[:turn_index])


def _find_parent(assignment: Assignment, uuid: UUID | None) -> Example | None:
    if uuid is None:
        return None
    own_examples = Example.objects.filter(
        annotator=assignment.annotator_id, round=assignment.round_id
    )
    parent = own_examples.filter(uuid=uuid).first()
    if parent is None:
        messages = "This isn't your example in the round"
        raise serializers.ValidationError({"parent": [messages]})
    return parent


def _read_key(request: Request) -> UUID:
    """Return the attempt's idempotency key, the same for a repeated request.

    Without an Idempotency-Key header, returns a new key each time.
    """
    # Without the header each request is an attempt of its own.
    header = request.headers.get(KEY_HEADER, "")
    if not header:
        return uuid4()
    # With the body, as another text under a used key must be another attempt.
    digest = hashlib.sha256(header.encode() + b"\n" + request.body)
    return UUID(bytes=digest.digest()[:16])


def build_attempt_response(request: Request, attempt: Attempt) -> Response:
    """Return the response with the result of an attempt. Raises Refused if it failed."""
    if attempt.state == Attempt.State.DONE:
        return Response(ExampleSerializer(_load_relations(attempt).example).data, 201)
    if attempt.state == Attempt.State.ASKING:
        url = reverse("attempt", args=[attempt.uuid], request=request)
        headers = {"Location": url, "Retry-After": "2"}
        return Response(AttemptSerializer(attempt).data, 202, headers=headers)
    message = FAILURE_MESSAGES.get(attempt.failure, NO_ANSWER_MESSAGE)
    if refusal_status := STATUS_BY_FAILURE.get(attempt.failure):
        raise Refused(message, code=attempt.failure, status=refusal_status)
    raise NoTargetAnswer(message, code="no_answer", status=503)


def _load_relations(attempt: Attempt) -> Attempt:
    """Return the attempt with the relations that its response needs."""
    rows = Attempt.objects.select_related(
        "example__round__task", "example__context", "example__parent"
    )
    return rows.prefetch_related(prefetch_outputs("example__target_outputs")).get(pk=attempt.pk)


class AttemptView(APIView):
    @extend_schema(operation_id="attempts_get", responses=AttemptSerializer)
    def get(self, request: Request, uuid: UUID) -> Response:
        """Return your own attempt: in progress, done with its example, or failed."""
        own_attempts = Attempt.objects.filter(annotator__user=request.user.pk)
        attempt = get_object_or_404(own_attempts.select_related("assignment__round"), uuid=uuid)
        services.expire_attempt(attempt=attempt)
        return Response(AttemptSerializer(_load_relations(attempt)).data)
