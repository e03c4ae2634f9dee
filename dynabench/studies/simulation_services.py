"""Simulated people of a study on a site: they come by its door and work through the services."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F

from annotation.aids.registry import list_allowed_aids
from annotation.aids.suggestions import record_choice
from annotation.attempts.author_answer_services import answer_undecided
from annotation.attempts.conversation_services import (
    get_conversation,
    list_answered_turns,
    say_turn,
)
from annotation.attempts.failures import FAILURE_MESSAGES, NO_ANSWER_MESSAGE
from annotation.attempts.services import (
    ask_targets,
    begin_attempt,
    expire_attempt,
    store_explanation,
)
from annotation.context_picking.services import assign, pass_gate
from annotation.models import Assignment, Attempt, Example, Suggestion
from annotation.refusals import DuplicateExample
from core.errors import Invalid, Refused
from dynabench.campaigns import place_services
from dynabench.campaigns.before.qualification_services import take_test
from dynabench.campaigns.before.questionnaire_services import (
    answer_closing_questions,
    answer_questions,
)
from dynabench.campaigns.models import SUBMITTED_STATES, Place
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import count_done_work, decrypt_panel_ids
from dynabench.campaigns.ways.panels import Arrival
from dynabench.studies.models import Study, StudyDraw
from dynabench.studies.rules.model_alone import KEY
from dynabench.studies.rules.simulated_inputs import draw_answers, draw_inputs, draw_text
from dynabench.studies.services import draw_person, match_draws
from tasks.config.components import Component
from tasks.config.criteria import CLEAR_JUDGEMENTS
from tasks.config.schema import TaskConfig
from tasks.config.values import find_value_errors
from tasks.config.verdicts import list_criteria
from tasks.models import Round, Task

ID_START = "simulated-"
"""How the panel ids of simulated people begin."""
LOG_SECONDS = (4.5, 0.5)
"""Mean and deviation of the logarithm of the time for a case: the median is 90 seconds."""
QUESTION = "What would you do in this case, and why?"
"""What simulated people ask a model before they decide."""
RIGHT_MODEL_SHARE = 0.5
"""How often an author who is asked finds the model's answer right."""
MAX_ASKED = 3
"""How often a model that fails is asked about one text."""
WAIT_SECONDS = 0.2
"""Between two looks at an attempt whose model is slow."""
PAUSE_REASONS = ("busy", "loading")
"""Failures of a model that pass by themselves."""


class ModelBusy(Exception):
    """Raised when a model is busy or still loading, so that people should come later."""


@dataclass(frozen=True)
class SimulatedPeople:
    """How well simulated people answer.

    base: the share of right answers without a model. gain: what a model adds to it.
    """

    base: float
    gain: float
    random: Random


@dataclass(frozen=True)
class Step:
    """What a simulated person does next. person: from 1. arm: its name, once it is drawn.

    example: the number of the example, from 1, and `examples` of how many; 0 if it is about none.
    """

    person: int
    action: str
    arm: str = ""
    example: int = 0
    examples: int = 0

    def __str__(self) -> str:
        """Return the step in words, such as "Person 2, arm helped, example 3 of 8: writing"."""
        parts = [f"Person {self.person}"]
        if self.arm:
            parts.append(f"arm {self.arm}")
        if self.example:
            parts.append(f"example {self.example} of {self.examples}")
        return f"{', '.join(parts)}: {self.action}"


def check_may_simulate(study: Study) -> None:
    """Check that a study has no real people, whose data simulated ones would spoil.

    Raises Invalid.
    """
    if study.state != Study.State.FROZEN:
        raise Invalid(f"{study.code} is not frozen, so nobody can take part.")
    for draw in StudyDraw.objects.filter(arm__study=study).select_related("place__campaign"):
        # The panel's id says who is simulated, and is deleted only long after the study.
        ids = decrypt_panel_ids(draw.place) if draw.place else None
        if ids is None or not ids.id.startswith(ID_START):
            raise Invalid(f"{study.code} has people who are not simulated.")


def play_people(study: Study, names: Sequence[str], crowd: SimulatedPeople) -> Iterator[Step]:
    """Let people arrive, agree, answer, work and submit, one after another; yield before each step.

    names: tell them apart; somebody who has been there goes on, and one who has submitted does
    nothing. Their panel ids say that they are simulated. Raises Refused where a real person would
    be refused, EndpointError if a helping model fails, and ModelBusy.
    """
    plan = study.plan
    for number, name in enumerate(names, 1):
        arrival = Arrival(f"{ID_START}{name}")
        for _part in range(len(plan.arms) if plan.design == "within" else 1):
            step = Step(number, "arriving and agreeing")
            yield step
            arm = draw_person(study=study, arrival=arrival)
            place, _secret = place_services.take_place(
                campaign=arm.campaign, consent=arm.campaign.consents.get(), arrival=arrival
            )
            yield from _play_part(place, crowd, replace(step, arm=arm.name))
    match_draws()


def _play_part(place: Place, crowd: SimulatedPeople, step: Step) -> Iterator[Step]:
    """Let a person do all that is left of one arm, from the questions before it to the end."""
    # A killed worker may have left it at any step.
    place = Place.objects.select_related("campaign__task", "annotator").get(pk=place.pk)
    if place.state in SUBMITTED_STATES:
        return
    campaign = place.campaign
    questionnaire = read_questionnaire(campaign.questions)
    assert place.annotator
    if place.state == Place.State.TESTING:
        yield replace(step, action="preparing")
        if place.answers is None:
            answers = _draw_answers(questionnaire.questions, crowd.random)
            answer_questions(place=place, answers=answers, about={})
            place.refresh_from_db()
        if place.state == Place.State.TESTING:
            # A tour only: the campaigns of simulated people have no test.
            take_test(place=place, answers={})
    round = find_open_round(campaign.task)
    done = count_done_work(Place.objects.get(pk=place.pk)).written
    for number in range(done + 1, campaign.each + 1):
        example_step = replace(step, example=number, examples=campaign.each)
        yield replace(example_step, action="writing")
        if round.task.is_sensitive:
            pass_gate(annotator=place.annotator, task=round.task)
        assignment = assign(annotator=place.annotator, round=round, is_fresh=True)
        _work_on_text(place, assignment, crowd)
    yield replace(step, action="answering the last questions and submitting")
    place.refresh_from_db()
    if questionnaire.after and place_services.lacks_closing_answers(place):
        answers = _draw_answers(questionnaire.after, crowd.random)
        answer_closing_questions(place=place, answers=answers)
    place_services.submit_place(place=place)


def find_open_round(task: Task) -> Round:
    """Return the round in which simulated people write. Raises Invalid without an open one."""
    round = task.rounds.select_related("task").filter(state=Round.State.OPEN).first()
    if round is None:
        raise Invalid(f"{task.code} has no open round.")
    return round


def _work_on_text(place: Place, assignment: Assignment, crowd: SimulatedPeople) -> None:
    """Let a person spend some time on a text, use the arm's help, and submit an example.

    Raises Refused, EndpointError, ModelBusy.
    """
    config, random = assignment.round.task.config, crowd.random
    # As if they had read and thought, since plans leave out whoever answers at once. The work
    # began as much earlier, or what they saw would count as seen before it.
    thinking_time = timedelta(seconds=random.lognormvariate(*LOG_SECONDS))
    assignment.assigned_at -= thinking_time
    assignment.save(update_fields=["assigned_at"])
    Place.objects.filter(pk=place.pk).update(began_at=F("began_at") - thinking_time)
    if config.verdict.type == "decide":
        inputs = _decide(assignment, crowd)
    else:
        inputs = _write(assignment, random)
    try:
        example = _submit_example(assignment, inputs, random)
    except DuplicateExample:
        # Two texts can get the same suggestion. A person would then write without it.
        inputs |= draw_inputs(config, assignment.context.fields, assignment.goal, random)
        example = _submit_example(assignment, inputs, random)
    if example.outcome == Example.Outcome.UNDECIDED:
        _answer_undecided(example, random)
    answers = draw_answers(config, assignment.context.fields, inputs, example.outcome, random)
    if answers:
        store_explanation(example=example, metadata=answers)


def _write(assignment: Assignment, random: Random) -> dict[str, Any]:
    """Return what a person writes, after a conversation and with each help that the arm offers.

    Raises Refused, EndpointError, ModelBusy.
    """
    config, fields = assignment.round.task.config, assignment.context.fields
    inputs = draw_inputs(config, fields, assignment.goal, random)
    if config.talk:
        inputs[config.talk.name] = _talk(assignment, draw_text(config.talk, fields, random))
    for aid in list_allowed_aids(config):
        try:
            aid.provide_help(assignment, aid.name, inputs)
        except Refused:
            # As a person who reads why there is no help, and goes on without.
            continue
    if suggestion := assignment.suggestions.last():
        record_choice(assignment=assignment, action=Suggestion.Action.EDIT, typed_texts=inputs)
        inputs[config.text_field] = _edit_suggestion(config, suggestion.text, inputs)
    return inputs


def _edit_suggestion(config: TaskConfig, text: str, inputs: dict[str, Any]) -> str:
    """Return a suggested text with the person's own sentence after it, if both fit the field."""
    # Unchanged, the same suggestion about two texts would be a copy, which the site refuses.
    own_text: str = inputs[config.text_field]
    edited_text = f"{text} {own_text}"
    is_valid = not find_value_errors(config.get_component(config.text_field), edited_text, {})
    return edited_text if is_valid else own_text


def _decide(assignment: Assignment, crowd: SimulatedPeople) -> dict[str, Any]:
    """Let a person ask the arm's model, if there is one, and return their answers about a case.

    Raises Refused, ModelBusy.
    """
    config = assignment.round.task.config
    inputs: dict[str, Any] = {}
    share = crowd.base
    if config.talk:
        inputs[config.talk.name] = _talk(assignment, QUESTION)
        share += crowd.gain
    key = assignment.context.metadata.get(KEY) or {}
    is_right = crowd.random.random() < share
    return inputs | _draw_decision(config, key, is_right, crowd.random)


def _talk(assignment: Assignment, text: str) -> list[dict[str, Any]]:
    """Say one turn to the arm's model, and return the conversation that it has answered.

    Raises Invalid if the model gives no answer, ModelBusy.
    """
    conversation = get_conversation(assignment)
    for _number in range(MAX_ASKED):
        if answered_turns := list_answered_turns(conversation.turns):
            return answered_turns
        # As long as the model may take, since nobody waits for a page here.
        conversation = say_turn(
            assignment=assignment,
            text=text,
            turn_index=len(conversation.turns),
            seconds=settings.LIVE_DEADLINE_SECONDS,
        )
    if answered_turns := list_answered_turns(conversation.turns):
        return answered_turns
    raise _build_model_failure(conversation.failure)


def _submit_example(assignment: Assignment, inputs: dict[str, Any], random: Random) -> Example:
    """Submit what a person wrote, and return the stored example.

    Raises Refused, ModelBusy.
    """
    attempt: Attempt | None = None
    for _number in range(MAX_ASKED):
        attempt, _must_ask = begin_attempt(
            annotator=assignment.annotator,
            assignment=assignment,
            key=UUID(int=random.getrandbits(128)),
            inputs=inputs,
        )
        attempt = _wait_for_end(ask_targets(attempt))
        if attempt.state == Attempt.State.DONE and attempt.example:
            return attempt.example
    assert attempt
    raise _build_model_failure(attempt.failure)


def _wait_for_end(attempt: Attempt) -> Attempt:
    """Return an attempt once its model has answered or failed; one that nobody ends has failed."""
    while attempt.state == Attempt.State.ASKING:
        time.sleep(WAIT_SECONDS)
        attempt = expire_attempt(attempt=attempt)
    return attempt


def _build_model_failure(reason: str) -> Exception:
    """Return the error for a model that gave no answer. reason: the code of the failure."""
    message = str(FAILURE_MESSAGES.get(reason, NO_ANSWER_MESSAGE))
    if reason in PAUSE_REASONS:
        return ModelBusy(message)
    return Invalid(message)


def _answer_undecided(example: Example, random: Random) -> None:
    """Let the author say whether the model was right, or which criteria its answer meets."""
    criteria = list_criteria(example.round.task.config.verdict, example.inputs)
    if criteria:
        judgements = [random.choice(CLEAR_JUDGEMENTS) for _criterion in criteria]
        answer_undecided(example=example, criteria=judgements)
    else:
        answer_undecided(example=example, model_right=random.random() < RIGHT_MODEL_SHARE)


def _draw_decision(
    config: TaskConfig, key: dict[str, Any], is_right: bool, random: Random
) -> dict[str, Any]:
    """Return the person's final answers: those of the key, or at least one other."""
    assert config.verdict.type == "decide"
    answers = {}
    for name in config.verdict.fields:
        field = config.get_component(name)
        if is_right and name in key:
            answers[name] = key[name]
        elif field.values:
            answers[name] = random.choice([v for v in field.values if v != key.get(name)])
        else:
            answers[name] = float(key.get(name, 0)) + 1
    return answers


def _draw_answers(questions: tuple[Component, ...], random: Random) -> dict[str, Any]:
    """Return answers to a questionnaire. Texts are left out if they may be."""
    answers: dict[str, Any] = {}
    for question in questions:
        if question.values:
            answers[question.name] = random.choice(question.values)
        elif question.type in ("number", "slider"):
            low = question.minimum or 0
            answers[question.name] = float(random.randint(int(low), int(question.maximum or 5)))
        elif question.required:
            answers[question.name] = "Simulated."
    return answers
