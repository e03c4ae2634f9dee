"""Simulated people of a study on a site: they come by its door and work through the services."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

from annotation.attempts.conversation_services import (
    get_conversation,
    list_answered_turns,
    say_turn,
)
from annotation.attempts.services import ask_targets, begin_attempt
from annotation.context_picking.services import assign
from annotation.models import Assignment, Attempt
from core.accounts.models import Annotator
from core.errors import Invalid
from dynabench.campaigns import place_services
from dynabench.campaigns.before.questionnaire_services import (
    answer_closing_questions,
    answer_questions,
)
from dynabench.campaigns.models import Place
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import decrypt_panel_ids
from dynabench.campaigns.ways.panels import Arrival
from dynabench.studies.models import Study, StudyArm, StudyDraw
from dynabench.studies.rules.model_alone import KEY
from dynabench.studies.services import draw_person, match_draws
from tasks.config.components import Component
from tasks.config.schema import TaskConfig

ID_START = "simulated-"
"""How the panel ids of simulated people begin."""
LOG_SECONDS = (4.5, 0.5)
"""Mean and deviation of the logarithm of the time for a case: the median is 90 seconds."""
QUESTION = "What would you do in this case, and why?"
"""What simulated people ask a model."""


@dataclass(frozen=True)
class SimulatedPeople:
    """How well simulated people answer.

    base: the share of right answers without a model. gain: what a model adds to it.
    """

    base: float
    gain: float
    random: Random


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


def play_people(study: Study, people: int, crowd: SimulatedPeople) -> Iterator[int]:
    """Let people arrive, agree, answer and submit, one after another; yield each one's number.

    Their panel ids say that they are simulated. Raises Refused where a real person would be
    refused.
    """
    plan = study.plan
    for number in range(people):
        # Not from the seed: a second run with it meets other people.
        arrival = Arrival(f"{ID_START}{secrets.token_hex(8)}")
        for _part in range(len(plan.arms) if plan.design == "within" else 1):
            arm = draw_person(study=study, arrival=arrival)
            place, _secret = place_services.take_place(
                campaign=arm.campaign, consent=arm.campaign.consents.get(), arrival=arrival
            )
            _play_person(arm, place, crowd)
        yield number + 1
    match_draws()


def _play_person(arm: StudyArm, place: Place, crowd: SimulatedPeople) -> None:
    """Let a person answer the questions before, decide about each case, and finish."""
    questionnaire = read_questionnaire(arm.campaign.questions)
    assert place.annotator
    if place.state == Place.State.TESTING:
        answers = _draw_answers(questionnaire.questions, crowd.random)
        answer_questions(place=place, answers=answers, about={})
    round = arm.campaign.task.rounds.get()
    for number in range(arm.campaign.each):
        # Each case is another one: who decided never meets it again.
        assignment = assign(annotator=place.annotator, round=round, is_fresh=bool(number))
        _decide(assignment, place.annotator, crowd)
    place.refresh_from_db()
    if questionnaire.after:
        answers = _draw_answers(questionnaire.after, crowd.random)
        answer_closing_questions(place=place, answers=answers)
    place_services.submit_place(place=place)


def _decide(assignment: Assignment, annotator: Annotator, crowd: SimulatedPeople) -> None:
    """Let a person ask the arm's model, if there is one, and answer about the case."""
    config = assignment.round.task.config
    # As if they had read and thought, since plans leave out whoever answers at once.
    assignment.assigned_at -= timedelta(seconds=crowd.random.lognormvariate(*LOG_SECONDS))
    assignment.save(update_fields=["assigned_at"])
    inputs: dict[str, Any] = {}
    share = crowd.base
    if config.talk:
        say_turn(assignment=assignment, text=QUESTION, turn_index=0)
        inputs[config.talk.name] = list_answered_turns(get_conversation(assignment).turns)
        share += crowd.gain
    key = assignment.context.metadata.get(KEY) or {}
    is_right = crowd.random.random() < share
    inputs |= _draw_decision(config, key, is_right, crowd.random)
    attempt, _must_ask = begin_attempt(
        annotator=annotator,
        assignment=assignment,
        key=UUID(int=crowd.random.getrandbits(128)),
        inputs=inputs,
    )
    attempt = ask_targets(attempt)
    if attempt.state != Attempt.State.DONE:
        raise Invalid(f"A simulated person's answer was not stored: {attempt.failure}.")


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
