"""Ask the models of a study's arms about its cases without a person, through the live path."""

import logging
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from annotation.attempts.conversation_services import build_opening_turns, strip_turns
from annotation.attempts.live_targets import (
    build_model_inputs,
    get_failure_code,
    request_answers,
)
from dynabench.studies.models import ModelAlone, Study, StudyArm
from dynabench.studies.rules.model_alone import (
    build_alone_question,
    is_key_met,
    read_alone_answer,
)
from dynabench.studies.selectors import KEY
from tasks.models import Context, Round
from tasks.selectors import list_targets
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)
MAX_TRIES = 3
"""How often a model is asked about one case, if it gives no answer."""
CASES_AT_ONCE = 10
"""The cases of one arm in one run, so that people who wait for the model go first."""


def ask_models_alone() -> int:
    """Ask the model of each arm of frozen studies about cases that it has not answered yet.

    Returns the number of cases answered. Each call counts towards the model's budget. Takes no
    lock: one row for each case.
    """
    count = 0
    arms = StudyArm.objects.filter(study__state=Study.State.FROZEN)
    for arm in arms.select_related("campaign__task"):
        # The tasks that a study's file sets up have one round, with all cases.
        round = arm.campaign.task.rounds.order_by("number").first()
        if round is None or not _has_alone_question(round):
            continue
        for context in _select_open_cases(arm, round)[:CASES_AT_ONCE]:
            count += _ask_about_case(arm, round, context)
    return count


def _has_alone_question(round: Round) -> bool:
    """Return whether a model can be asked for the person's answers."""
    config = round.task.config
    return config.talk is not None and config.verdict.type == "decide" and bool(list_targets(round))


def _select_open_cases(arm: StudyArm, round: Round) -> QuerySet[Context]:
    """Return the cases with a key that the arm's model has not answered, nor failed thrice."""
    rows = ModelAlone.objects.filter(arm=arm, context=OuterRef("pk"))
    is_done = Exists(rows.filter(Q(failure="") | Q(tries__gte=MAX_TRIES)))
    cases = round.contexts.filter(is_retired=False, metadata__has_key=KEY)
    return cases.exclude(is_done).order_by("pk")


def _ask_about_case(arm: StudyArm, round: Round, context: Context) -> bool:
    """Ask the arm's model for each final answer about a case; return whether it answered."""
    config, entries = round.task.config, list_targets(round)
    assert config.talk is not None
    assert config.verdict.type == "decide"
    # Stored before the model is asked, so that a kill counts as a try and not as an answer.
    row, _is_new = ModelAlone.objects.get_or_create(
        arm=arm, context=context, defaults={"target": entries[0].target, "failure": "new"}
    )
    answers: dict[str, Any] = {}
    replies = []
    # Each in a conversation of its own: a person answers all of them after one.
    for name in config.verdict.fields:
        field = config.get_component(name)
        turns = strip_turns(build_opening_turns(config.talk))
        turns.append({"role": "user", "text": build_alone_question(config, field)})
        inputs = build_model_inputs(round, context.fields, {config.talk.name: turns})
        try:
            (prediction,) = request_answers(entries, inputs)
        except EndpointError as error:
            reason = get_failure_code(error)
            logger.warning("%s alone on context %s: %s", arm, context.pk, reason)
            ModelAlone.objects.filter(pk=row.pk).update(failure=reason, tries=F("tries") + 1)
            return False
        replies.append(str(prediction.output[config.answer_field]))
        answers[name] = read_alone_answer(field, replies[-1])
    ModelAlone.objects.filter(pk=row.pk).update(
        replies=replies,
        answers=answers,
        is_right=is_key_met(context.metadata[KEY], answers),
        failure="",
        tries=F("tries") + 1,
    )
    return True
