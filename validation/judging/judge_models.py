"""The job that asks judge models about new examples, so that people judge a sample of them."""

import time
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from annotation.attempts.live_targets import build_model_inputs
from annotation.models import Example
from core.jobs.keeper import announce_job
from core.periodic import register_minutely
from tasks.models import Round, TargetModel
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import UNANSWERED_REASONS, EndpointError, Prediction
from tasks.targets.failures import note_failure
from tasks.targets.spending_services import MeteredEndpoint, Payer
from validation.consensus.vote_draws import DrawRule, JudgeAnswer
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.judging.draw_services import note_judge_state, settle_draw, store_draws
from validation.judging.judge_instructions import ask_by_instruction
from validation.judging.queue_services import (
    JOINED_ROWS,
    fill_queue,
    is_left_to_author,
    needs_draw,
)
from validation.models import RoundPolicy

BATCH_EXAMPLES = 16
UNREADABLE_REASONS = ("unmatched", "empty", "unfinished")
"""Failures of a model that answered, but not with one of the possible answers."""
MAX_EXAMPLES = 500
"""The most examples of a round about which its judge is asked each minute."""
MAX_SECONDS = 40.0
DEADLINE_SECONDS = 30.0
JUDGE_WAIT = timedelta(hours=1)
"""How long examples wait for a judge that doesn't answer. Then people judge all of them."""


@register_minutely(
    counts="examples drawn or left out",
    why="People judge a sample, drawn once a judge model has answered.",
)
def ask_judge_models() -> int:
    """Ask the judge models of all rounds about new examples, draw them and fill the queues.

    Returns how many examples were drawn or left out.
    """
    _store_configured_draws()
    policy_rows = RoundPolicy.objects.filter(
        draw__isnull=False, round__state__in=JUDGED_ROUND_STATES
    ).select_related("round__task")
    drawn_count = 0
    for policy_row in policy_rows:
        announce_job()  # each may take a minute
        drawn_count += ask_judge_model(policy_row)
    return drawn_count


def _store_configured_draws() -> None:
    """Give rounds that have opened the sample of their task's file, once for each round.

    Otherwise the first person to judge would find nothing, because nothing is drawn yet. A policy
    that was stored for another reason says nothing about the sample.
    """
    unsettled = Q(round_policy__isnull=True) | Q(round_policy__is_draw_settled=False)
    rounds = Round.objects.filter(unsettled, state=Round.State.OPEN)
    for round in rounds.select_related("task", "round_policy"):
        # Until somebody judges, a sample may still come into the file.
        if hasattr(round, "round_policy") or round.task.config.validation.sample is not None:
            settle_draw(round=round)


def ask_judge_model(policy_row: RoundPolicy) -> int:
    """Ask a round's judge about its new examples; return how many were drawn or left out.

    Each batch is drawn at once, so that an interrupted job asks about none of them again. An
    example that the judge can't answer is certainly judged. So are all, once the judge was deleted
    or hasn't answered for JUDGE_WAIT. Makes calls, so use it outside any transaction.
    """
    round, rule = policy_row.round, policy_row.draw_rule
    if rule is None:
        return 0
    examples = _find_open_examples(policy_row)
    judge = TargetModel.objects.filter(pk=rule.judge, task=round.task).first()
    # A chat model is asked about one example at a time, and paid for each. So each answer is stored
    # at once, and a killed worker asks about none of them again.
    batch_size = BATCH_EXAMPLES if rule.prompt is None else 1
    drawn_count, ends_at = 0, time.monotonic() + MAX_SECONDS
    while examples and time.monotonic() < ends_at:
        # In the order of ids, because the queue's mark passes no example that is still open.
        batch, examples = examples[:batch_size], examples[batch_size:]
        try:
            answers = _ask_patiently(judge, rule, round, batch) if judge else None
            note_judge_state(policy_row, is_down=False)
        except EndpointError as error:
            note_judge_state(policy_row, is_down=True)
            if judge:
                note_failure(judge, error)
            # Whether it is sure of an example is known only once it answers.
            if not _has_waited_enough(policy_row):
                break
            # The others would wait for the same model, each until its deadline.
            answers, batch, examples = None, batch + examples, []
        if answers is None:
            answers = [JudgeAnswer(None)] * len(batch)
        store_draws(round=round, asked_rule=rule, answers=dict(zip(batch, answers, strict=True)))
        drawn_count += len(batch)
    # Also without a new draw: what was stored before a crash still has to be queued.
    while fill_queue(round=round):
        pass
    return drawn_count


def _find_open_examples(policy_row: RoundPolicy) -> list[Example]:
    """Return the round's first examples that a judge still has to answer."""
    round = policy_row.round
    share = round.task.config.validation.judge_not_fooled
    # What has one of these rows was asked about already, or needs nobody.
    missing = {f"{name}__isnull": True for name in JOINED_ROWS}
    rows = Example.objects.filter(
        round=round, pk__gt=policy_row.filled_to, retracted_at__isnull=True, **missing
    ).select_related("context", *JOINED_ROWS)
    open_examples = []
    for row in rows.order_by("pk").iterator(chunk_size=MAX_EXAMPLES):
        # Those of authors who may still decide come after that, or after their time.
        if needs_draw(row, share) and not is_left_to_author(row):
            open_examples.append(row)
        if len(open_examples) == MAX_EXAMPLES:
            break
    return open_examples


def _ask_patiently(
    judge: TargetModel, rule: DrawRule, round: Round, batch: Sequence[Example]
) -> list[JudgeAnswer]:
    """Return what the judge says of each example; without a score where it can't answer that one.

    Raises EndpointError if the judge answers nothing at all.
    """
    try:
        if rule.prompt is None:
            return _ask_for_labels(judge, round, batch)
        return [ask_by_instruction(judge, rule.prompt, round, example) for example in batch]
    except EndpointError as error:
        if error.reason not in UNANSWERED_REASONS:
            raise
        if len(batch) == 1:
            return [JudgeAnswer(None, is_readable=error.reason not in UNREADABLE_REASONS)]
    answers: list[JudgeAnswer] = []
    # One of them can't be answered, so each is asked alone.
    for example in batch:
        answers += _ask_patiently(judge, rule, round, [example])
    return answers


def _ask_for_labels(
    judge: TargetModel, round: Round, batch: Sequence[Example]
) -> list[JudgeAnswer]:
    """Return the judge's own labels, compared with the authors'. Raises EndpointError."""
    # A judge costs as any other call of the round, within the same budgets.
    endpoint = MeteredEndpoint(get_endpoint(judge), Payer(judge, round.pk))
    inputs = [build_model_inputs(round, row.context.fields, row.inputs) for row in batch]
    predictions = endpoint.predict(inputs, deadline_seconds=DEADLINE_SECONDS)
    field = round.task.config.answer_field
    return [
        JudgeAnswer(_compute_score(prediction, row.inputs.get(field), field))
        for row, prediction in zip(batch, predictions, strict=True)
    ]


def _compute_score(prediction: Prediction, author_label: object, field: str) -> float | None:
    """Return the probability that the author is right, as a judge says; None without a label."""
    if not isinstance(author_label, str) or not author_label:
        return None
    # Only a stated probability can show doubt; a bare label is taken as sure.
    if prediction.prob:
        # Rounding may lift a probability above 1.
        return min(1.0, max(0.0, prediction.prob.get(author_label, 0.0)))
    return float(prediction.output.get(field) == author_label)


def _has_waited_enough(policy_row: RoundPolicy) -> bool:
    down_since = policy_row.judge_down_since
    return down_since is not None and timezone.now() - down_since >= JUDGE_WAIT
