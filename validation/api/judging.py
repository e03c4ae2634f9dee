"""The API's views of judging: the next example, the person's vote, and the questions after it."""

from collections.abc import Mapping, Sequence
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
from annotation.care.services import record_text_answered
from annotation.models import Example
from annotation.rules.prompt import list_fields_to_read
from core.accounts.api import write
from core.accounts.models import Annotator, ApiToken
from core.errors import Refused
from core.web.api import read
from tasks.access import find_task
from tasks.config.criteria import JUDGEMENTS, Criterion, parse_judgements
from tasks.config.judging import STEPS_KEY
from tasks.config.judging_checks import list_step_labels
from tasks.config.schema import TaskConfig
from tasks.models import Task
from tasks.permissions import can_enter_judging
from validation.api.serializers import (
    AfterwardsSerializer,
    ItemSerializer,
    MissSerializer,
    NewValidationSerializer,
    OwnValidationSerializer,
    format_vote,
)
from validation.consensus.consensus import Vote
from validation.consensus.criteria import build_criteria_vote, list_judged_criteria
from validation.judging import (
    after_services,
    assignments,
    blind,
    gold_pause,
    page,
    services,
    steps,
    vote_caps,
)
from validation.judging.forms import list_flag_reasons
from validation.judging.services import JudgeSession
from validation.judging.wording import FLAG_CHOICE, build_choices, build_legend
from validation.models import GoldAnswer, Validation


class JudgingView(APIView):
    """Base view for judging in a task."""

    write_scope = ApiToken.Scope.ANNOTATE

    def get_task_and_validator(self, code: str) -> tuple[Task, Annotator]:
        task = find_task(self.request, code)
        return task, authorise_annotator(
            self.request, task, services.check_programs_may_judge, can_enter_judging
        )


class NextView(JudgingView):
    @write("judging_next", None, {200: ItemSerializer, 204: None})
    def post(self, request: Request, code: str) -> Response:
        """Lease your current example again, or the next one, for 15 minutes.

        204 if there is nothing to judge.
        """
        task, validator = self.get_task_and_validator(code)
        session = services.open_session(validator=validator, task=task)
        if session.is_paused:
            url = reverse("judging-refresher", args=[code], request=request)
            raise Refused(
                f"Some of your answers show a misunderstanding. GET {url} and read them, then POST "
                "there and continue.",
                code="refresher",
            )
        # The reason comes first, so that a program knows whether to try again later.
        if session.lease is None:
            blind.check_may_judge(validator, task)
            if full_round := vote_caps.find_full_round(validator, task):
                raise Refused(
                    "You've given the maximum number of votes for one person in round "
                    f"{full_round.number}.",
                    code="cap",
                    status=429,
                )
            if assignments.has_finished_assignment(validator, task):
                raise Refused(
                    "You have judged as many as you were asked for.", code="cap", status=429
                )
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(ItemSerializer(_build_item(session)).data)


def _build_item(session: JudgeSession) -> dict[str, Any]:
    """Return the leased example as JSON values, without the fields that are hidden from judges."""
    assert session.lease
    config, example = session.task.config, session.lease.example
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    vote_choices = [
        (vote, words)
        for vote, words in build_choices(config, example, with_flag=True)
        if vote == FLAG_CHOICE or not criteria
    ]
    return {
        "example": example.uuid,
        "task": session.task.code,
        "round": example.round.number,
        "context": list_fields_to_read(config, example.context.fields),
        "inputs": blind.build_blind_inputs(config, example),
        "model_said": [
            {"target": name, "said": text}
            for name, text in page.list_model_answers(config, example)
        ],
        "question": build_legend(config, example),
        "criteria": [criterion.text for criterion in criteria],
        "choices": [{"vote": vote, "words": words} for vote, words in vote_choices],
        "steps": _describe_steps(config, example),
        "flag_reasons": [reason for reason, _ in list_flag_reasons(config)],
        "until": session.lease.until,
        "judged_today": page.count_judgements_today(session.validator, session.task, session.gold),
    }


def _describe_steps(config: TaskConfig, example: Example) -> dict[str, Any] | None:
    """Return the steps that a vote answers about; None if there is none."""
    example_steps = steps.list_example_steps(config, example)
    if not (example_steps and config.validation.steps):
        return None
    return {
        "question": steps.build_question(config),
        "field": config.validation.steps.field,
        "turns": [step.key for step in example_steps],
        "labels": [label.value for label in list_step_labels(config)],
    }


class RefresherView(JudgingView):
    @extend_schema(operation_id="judging_refresher", responses=MissSerializer(many=True))
    def get(self, request: Request, code: str) -> Response:
        """List the gold items that you answered wrongly, while judging is paused."""
        task, validator = self.get_task_and_validator(code)
        answers = gold_pause.list_gold_answers(validator, task)
        is_paused = gold_pause.is_judging_paused(answers)
        missed_answers = page.select_missed_answers(answers) if is_paused else []
        return Response(
            MissSerializer(
                [_describe_miss(task.config, answer) for answer in missed_answers], many=True
            ).data
        )

    @write("judging_refresher_read", None, {204: None})
    def post(self, request: Request, code: str) -> Response:
        """Confirm that you have read the refresher, and resume judging."""
        task, validator = self.get_task_and_validator(code)
        gold_pause.finish_refresher(validator=validator, task=task)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _describe_miss(config: TaskConfig, answer: GoldAnswer) -> dict[str, Any]:
    return {
        "context": list_fields_to_read(config, answer.example.context.fields),
        "inputs": blind.build_blind_inputs(config, answer.example),
        "said": format_vote(answer),
        "right": format_vote(answer.gold),
        "explanation": answer.gold.explanation,
    }


class ExampleJudgingView(APIView):
    """Base view for judging one example."""

    write_scope = ApiToken.Scope.ANNOTATE

    def get_example_and_validator(self, uuid: UUID) -> tuple[Example, Annotator]:
        rows = Example.objects.select_related("round__task", "context")
        example = get_object_or_404(rows, uuid=uuid)
        task = example.round.task
        return example, authorise_annotator(
            self.request, task, services.check_programs_may_judge, can_enter_judging
        )


class VotesView(ExampleJudgingView):
    @write("validations_create", NewValidationSerializer, {201: OwnValidationSerializer})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Vote on the example that you have leased."""
        example, validator = self.get_example_and_validator(uuid)
        values = read(NewValidationSerializer, request)
        vote_values = _read_vote(example, values)
        services.cast_validation(
            validator=validator, example=example, by_program=is_program(request), **vote_values
        )
        record_text_answered(annotator=validator, task=example.round.task)
        # Loaded again, with the example and task that the response shows.
        body = OwnValidationSerializer(page.find_own_vote(validator, uuid))
        return Response(body.data, status.HTTP_201_CREATED)


def _read_vote(example: Example, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a vote's arguments for the service, checked as on the page. Raises ValidationError."""
    config = example.round.task.config
    # Clients send null for a vote that follows from criteria.
    body = {name: value for name, value in body.items() if value is not None}
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    if criteria and body.get("vote") != FLAG_CHOICE:
        return _read_criteria_vote(config, criteria, body)
    # Depends on the example: attempts offer other answers than most examples.
    choices = dict(build_choices(config, example, with_flag=True))
    if body.get("vote") not in choices:
        raise serializers.ValidationError({"vote": [f"Choose one of: {', '.join(choices)}"]})
    kind, _, value = body["vote"].partition(":")
    if body["vote"] != FLAG_CHOICE:
        if extra_fields := body.keys() - {"vote", "steps"}:
            wrong_fields = [f"Only with {FLAG_CHOICE}. Questions are answered with PATCH mine/"]
            raise serializers.ValidationError(dict.fromkeys(extra_fields, wrong_fields))
        metadata = {STEPS_KEY: body["steps"]} if body.get("steps") else {}
        return {"vote": Vote(**{kind: value}), "metadata": metadata}
    metadata = body.get("metadata", {})
    flag = {"flag_comment": body.get("comment", ""), "flag_reason": body.get("flag_reason", "")}
    form = page.build_flag_form(example, {**metadata, **flag, "example": example.uuid})
    _check_form_and_metadata(form, metadata)
    return form.vote_arguments


def _read_criteria_vote(
    config: TaskConfig, criteria: Sequence[Criterion], body: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a vote that judges each criterion. Raises ValidationError."""
    if extra_fields := body.keys() - {"criteria"}:
        wrong_fields = [f"Leave this out, or write the vote {FLAG_CHOICE}."]
        raise serializers.ValidationError(dict.fromkeys(extra_fields, wrong_fields))
    # The verdict follows from these, so no client can send one that contradicts them.
    judgements = parse_judgements(body.get("criteria"), criteria)
    if judgements is None:
        message = f"Judge each of the {len(criteria)} criteria: {', '.join(JUDGEMENTS)}"
        raise serializers.ValidationError({"criteria": [message]})
    assert config.verdict.type == "criteria"
    vote = build_criteria_vote(config.verdict, criteria, judgements)
    return {"vote": vote, "judgements": judgements}


def _check_form_and_metadata(form: Form, metadata: Mapping[str, Any]) -> None:
    """Raise ValidationError for the form's errors, and for answers to unknown questions."""
    errors: dict[str, Any] = {}
    for name in metadata.keys() - form.fields.keys():
        errors.setdefault("metadata", {})[name] = ["This question doesn't exist here"]
    for name, messages in form.errors.items():
        if name in metadata:
            errors.setdefault("metadata", {})[name] = messages
        else:
            errors["comment" if name == "flag_comment" else name] = messages
    if errors:
        raise serializers.ValidationError(errors)


class OwnVoteView(ExampleJudgingView):
    def find_vote(self, uuid: UUID) -> Validation | GoldAnswer:
        return page.find_own_vote(self.get_example_and_validator(uuid)[1], uuid)

    @extend_schema(operation_id="validations_get_mine", responses=OwnValidationSerializer)
    def get(self, request: Request, uuid: UUID) -> Response:
        """Return your own vote, and what is asked or shown after it."""
        return Response(OwnValidationSerializer(self.find_vote(uuid)).data)

    @write("validations_answer_mine", AfterwardsSerializer, OwnValidationSerializer)
    def patch(self, request: Request, uuid: UUID) -> Response:
        """Answer the questions asked after the vote. The vote is unchanged."""
        vote = self.find_vote(uuid)
        fields = read(AfterwardsSerializer, request)
        metadata = fields.pop("metadata", {})
        form = page.build_after_form(vote, {**metadata, **fields})
        _check_form_and_metadata(form, metadata)
        after_services.store_answers_after_vote(
            validation=vote, reveal_answers=form.reveal_answers, metadata=form.inputs
        )
        return Response(OwnValidationSerializer(vote).data)

    @write("validations_undo", gives={204: None})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Undo your vote within ten minutes; the example is leased to you again."""
        _, validator = self.get_example_and_validator(uuid)
        vote = page.find_own_vote(validator, uuid)
        services.undo_validation(validator=validator, validation=vote)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SkipView(ExampleJudgingView):
    @write("examples_skip", None, {204: None})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Skip an example permanently."""
        example, validator = self.get_example_and_validator(uuid)
        services.skip_example(validator=validator, example=example)
        record_text_answered(annotator=validator, task=example.round.task)
        return Response(status=status.HTTP_204_NO_CONTENT)
