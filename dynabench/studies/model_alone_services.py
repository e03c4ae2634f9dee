"""Ask the models of a study's arms about its cases without a person, through the live path."""

import logging
from time import monotonic
from typing import Any

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from annotation.attempts.conversation_services import build_opening_turns, strip_turns
from annotation.attempts.live_targets import (
    build_model_inputs,
    get_failure_code,
    request_answers,
)
from dynabench.studies.models import ModelAlone, Study, StudyArm
from dynabench.studies.rules.model_alone import (
    KEY,
    build_alone_question,
    is_key_met,
    read_alone_answer,
    read_key,
)
from tasks.models import Context, Round
from tasks.selectors import list_targets
from tasks.targets.circuit_breaker.breaker import TargetNotAsked
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.live import TargetFailed

logger = logging.getLogger(__name__)
MAX_TRIES = 3
"""How often a model is asked about one case, if it gives no answer."""
CASES_AT_ONCE = 10
"""The cases of one arm in one run, so that people who wait for the model go first."""
MAX_SECONDS = 30.0
"""After this time no further case is begun, as all other minutely jobs wait."""


def ask_models_alone(max_seconds: float = MAX_SECONDS) -> int:
    """Ask the model of each arm of frozen studies about cases that it has not answered yet.

    Returns the number of cases answered. Each call counts towards the model's budget. Takes no
    lock: one row for each case.
    """
    count, ends_at = 0, monotonic() + max_seconds
    # A pilot shows that the study works, so its models are not asked about all cases.
    arms = StudyArm.objects.filter(study__state=Study.State.FROZEN, study__pilot_of=None)
    # In random order, so that arms behind a slow model have their turn too.
    for arm in arms.select_related("campaign__task").order_by("?"):
        if monotonic() >= ends_at:
            break
        # The tasks that a study's file sets up have one round, with all cases.
        round = arm.campaign.task.rounds.order_by("number").first()
        if round is not None and _has_alone_question(round):
            count += _ask_arm(arm, round, ends_at)
    return count


def _ask_arm(arm: StudyArm, round: Round, ends_at: float) -> int:
    """Ask an arm's model about its next cases; return how many it answered.

    ends_at: on the monotonic clock.
    """
    config = round.task.config
    assert config.verdict.type == "decide"
    count = 0
    for context in _select_open_cases(arm, round):
        key = read_key(context.metadata, config.verdict.fields)
        # A key that nobody can meet costs no call, and holds up no other case.
        if key is None:
            continue
        # A model that fails or is busy gets a pause until the next run.
        if monotonic() >= ends_at or not _ask_about_case(arm, round, context, dict(key)):
            break
        count += 1
        if count == CASES_AT_ONCE:
            break
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


def _ask_about_case(arm: StudyArm, round: Round, context: Context, key: dict[str, Any]) -> bool:
    """Ask the arm's model for each final answer about a case; return whether it answered.

    key: the right answers.
    """
    config, entry = round.task.config, list_targets(round)[0]
    assert config.talk is not None
    assert config.verdict.type == "decide"
    row, _is_new = ModelAlone.objects.get_or_create(
        arm=arm, context=context, defaults={"target": entry.target, "failure": "new"}
    )
    stored = ModelAlone.objects.filter(pk=row.pk)
    # Before the model is asked, so that a kill counts as a try and not as an answer.
    stored.update(tries=F("tries") + 1)
    answers: dict[str, Any] = {}
    replies: list[str] = []
    # Each in a conversation of its own: a person answers all of them after one.
    for name in config.verdict.fields:
        field = config.get_component(name)
        turns = strip_turns(build_opening_turns(config.talk))
        turns.append({"role": "user", "text": build_alone_question(config, field)})
        inputs = build_model_inputs(round, context.fields, {config.talk.name: turns})
        try:
            # The whole time that a model has: a slow one answers here as it does to people.
            (prediction,) = request_answers([entry], inputs, settings.LIVE_DEADLINE_SECONDS)
        except EndpointError as error:
            reason = get_failure_code(error)
            logger.warning("%s alone on context %s: %s", arm, context.pk, reason)
            # Calls that never reached the model are no tries; answers to earlier fields were paid.
            is_try = bool(replies) or _was_asked(error)
            stored.update(failure=reason, tries=F("tries") - (0 if is_try else 1))
            return False
        replies.append(str(prediction.output[config.answer_field]))
        answers[name] = read_alone_answer(field, replies[-1])
    stored.update(replies=replies, answers=answers, is_right=is_key_met(key, answers), failure="")
    return True


def _was_asked(error: EndpointError) -> bool:
    """Return whether the model was asked, instead of being busy, spent or paused."""
    is_skipped = isinstance(error, TargetFailed) and isinstance(error.error, TargetNotAsked)
    return error.reason != "busy" and not is_skipped
