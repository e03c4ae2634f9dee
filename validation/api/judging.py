"""The API's views of judging: what to judge, one's vote, and what is asked after it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.forms import Form
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from annotation.api.entry import authorise_annotator, is_program
from annotation.care.services import note_answered
from annotation.models import Example
from annotation.rules.prompt import list_fields_to_read
from core.accounts.api import write
from core.accounts.models import Annotator, ApiToken
from core.errors import Refused
from core.web.api import read
from tasks.access import find_task
from tasks.config.schema import TaskConfig
from tasks.models import Task
from tasks.permissions import can_enter_judging
from validation.api.serializers import (
    AfterwardsSerializer,
    ItemSerializer,
    MissSerializer,
    NewValidationSerializer,
    OwnValidationSerializer,
    vote_of,
)
from validation.consensus.consensus import Vote
from validation.consensus.gold_check import Check
from validation.judging import assignments, blind, gold, page, services, vote_caps
from validation.judging.forms import flag_reasons
from validation.judging.services import JudgeSession
from validation.judging.wording import FLAG, choices, legend
from validation.models import GoldAnswer, Validation


class JudgingView(APIView):
    """Base view for judging in a task."""

    write_scope = ApiToken.Scope.ANNOTATE

    def enter(self, code: str) -> tuple[Task, Annotator]:
        task = find_task(self.request, code)
        return task, authorise_annotator(
            self.request, task, services.check_programs_judge, can_enter_judging
        )


class NextView(JudgingView):
    @write("judging_next", None, {200: ItemSerializer, 204: None})
    def post(self, request: Request, code: str) -> Response:
        """Lease your current example again, or the next one, for 15 minutes.

        204 if there is nothing to judge.
        """
        task, validator = self.enter(code)
        session = services.open_session(validator=validator, task=task)
        if session.is_paused:
            url = reverse("judging-refresher", args=[code], request=request)
            raise Refused(
                f"Some of your answers show a misunderstanding. GET {url} and read them, then POST "
                "there and go on.",
                code="refresher",
            )
        # The reason first: a program should know whether to come back.
        if session.lease is None:
            blind.check_may_judge(validator, task)
            if full := vote_caps.full_round(validator, task):
                raise Refused(
                    f"You have given all votes that one person may give in round {full.number}.",
                    code="cap",
                    status=429,
                )
            if assignments.is_asked_no_more(validator, task):
                raise Refused(
                    "You have judged as many as you were asked for.", code="cap", status=429
                )
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(ItemSerializer(_build_item(session)).data)


def _build_item(session: JudgeSession) -> dict[str, Any]:
    """Return the leased example as JSON values; blind fields are never included."""
    assert session.lease
    config, example = session.task.config, session.lease.example
    vote_choices = choices(config, example, with_flag=True)
    return {
        "example": example.uuid,
        "task": session.task.code,
        "round": example.round.number,
        "context": list_fields_to_read(config, example.context.fields),
        "inputs": blind.blind_inputs(config, example),
        "model_said": [
            {"target": n, "said": s} for n, s in page.list_model_answers(config, example)
        ],
        "question": legend(config, example),
        "choices": [{"vote": vote, "words": words} for vote, words in vote_choices],
        "flag_reasons": [reason for reason, _ in flag_reasons(config)],
        "until": session.lease.until,
        "judged_today": page.judged_today(session.validator, session.task, session.gold),
    }


class RefresherView(JudgingView):
    @extend_schema(operation_id="judging_refresher", responses=MissSerializer(many=True))
    def get(self, request: Request, code: str) -> Response:
        """List the gold items that you answered wrongly, while judging is paused."""
        task, validator = self.enter(code)
        answers = gold.gold_answers(validator, task)
        is_paused = gold.check(answers) is Check.FAIL
        missed = page.select_missed(answers) if is_paused else []
        return Response(
            MissSerializer([_miss(task.config, answer) for answer in missed], many=True).data
        )

    @write("judging_refresher_read", None, {204: None})
    def post(self, request: Request, code: str) -> Response:
        """Confirm that you have read the refresher, and resume judging."""
        task, validator = self.enter(code)
        gold.finish_refresher(validator=validator, task=task)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _miss(config: TaskConfig, answer: GoldAnswer) -> dict[str, Any]:
    return {
        "context": list_fields_to_read(config, answer.example.context.fields),
        "inputs": blind.blind_inputs(config, answer.example),
        "said": vote_of(answer),
        "right": vote_of(answer.gold),
        "explanation": answer.gold.explanation,
    }


class OfExample(APIView):
    """Base view for judging one example."""

    write_scope = ApiToken.Scope.ANNOTATE

    def enter(self, uuid: UUID) -> tuple[Example, Annotator]:
        rows = Example.objects.select_related("round__task", "context")
        example = get_object_or_404(rows, uuid=uuid)
        task = example.round.task
        return example, authorise_annotator(
            self.request, task, services.check_programs_judge, can_enter_judging
        )


class VotesView(OfExample):
    @write("validations_create", NewValidationSerializer, {201: OwnValidationSerializer})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Vote on the example that you have leased."""
        example, validator = self.enter(uuid)
        values = read(NewValidationSerializer, request)
        vote_values = _read_vote(example, values)
        services.cast_validation(
            validator=validator, example=example, by_program=is_program(request), **vote_values
        )
        note_answered(annotator=validator, task=example.round.task)
        # Read again, with what the answer shows of its example and its task.
        body = OwnValidationSerializer(page.own_vote(validator, uuid))
        return Response(body.data, status.HTTP_201_CREATED)


def _read_vote(example: Example, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a vote's arguments for the service, checked as on the page. Raises ValidationError."""
    config = example.round.task.config
    # By the example, as an attempt offers other answers than most.
    offered = dict(choices(config, example, with_flag=True))
    if body["vote"] not in offered:
        raise serializers.ValidationError({"vote": [f"Choose one of: {', '.join(offered)}"]})
    kind, _, value = body["vote"].partition(":")
    if body["vote"] != FLAG:
        if more := body.keys() - {"vote"}:
            wrong = [f"Only with {FLAG}. Questions are answered with PATCH mine/"]
            raise serializers.ValidationError(dict.fromkeys(more, wrong))
        return {"vote": Vote(**{kind: value})}
    metadata = body.get("metadata", {})
    flag = {"flag_comment": body.get("comment", ""), "flag_reason": body.get("flag_reason", "")}
    form = page.flag_form(example, {**metadata, **flag, "example": example.uuid})
    _check(form, metadata)
    return form.said


def _check(form: Form, metadata: Mapping[str, Any]) -> None:
    """Raise ValidationError with the form's errors, and for answers to questions not asked."""
    errors: dict[str, Any] = {}
    for name in metadata.keys() - form.fields.keys():
        errors.setdefault("metadata", {})[name] = ["There is no such question here"]
    for name, messages in form.errors.items():
        if name in metadata:
            errors.setdefault("metadata", {})[name] = messages
        else:
            errors["comment" if name == "flag_comment" else name] = messages
    if errors:
        raise serializers.ValidationError(errors)


class OwnVoteView(OfExample):
    def vote(self, uuid: UUID) -> Validation | GoldAnswer:
        return page.own_vote(self.enter(uuid)[1], uuid)

    @extend_schema(operation_id="validations_get_mine", responses=OwnValidationSerializer)
    def get(self, request: Request, uuid: UUID) -> Response:
        """Return your own vote, and what is asked or shown after it."""
        return Response(OwnValidationSerializer(self.vote(uuid)).data)

    @write("validations_answer_mine", AfterwardsSerializer, OwnValidationSerializer)
    def patch(self, request: Request, uuid: UUID) -> Response:
        """Answer the questions asked after the vote. The vote is unchanged."""
        vote = self.vote(uuid)
        fields = read(AfterwardsSerializer, request)
        metadata = fields.pop("metadata", {})
        form = page.after_form(vote, {**metadata, **fields})
        _check(form, metadata)
        services.answer_afterwards(validation=vote, reveal=form.revealed, metadata=form.inputs)
        return Response(OwnValidationSerializer(vote).data)

    @write("validations_undo", gives={204: None})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Undo your vote within ten minutes; the example is leased to you again."""
        _, validator = self.enter(uuid)
        vote = page.own_vote(validator, uuid)
        services.undo_validation(validator=validator, validation=vote)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SkipView(OfExample):
    @write("examples_skip", None, {204: None})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Skip an example permanently."""
        example, validator = self.enter(uuid)
        services.skip_example(validator=validator, example=example)
        note_answered(annotator=validator, task=example.round.task)
        return Response(status=status.HTTP_204_NO_CONTENT)
