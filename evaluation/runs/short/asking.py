"""Ask the questions of a short evaluation, from its claim to its end. Loads numpy.

Each question is stored with its chance before it is asked, and each answer as soon as it arrives.
So a killed worker's successor goes on where it stopped. Questions that were being asked at that
moment are never asked again: their answers are lost, and widen the interval.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Count, F
from django.utils import timezone
from django.utils.translation import gettext_noop

from evaluation.contract import (
    ImpossibleJob,
    InvalidOutput,
    NotNow,
    Outcome,
    ServerAway,
    SetRow,
    WorkStopped,
)
from evaluation.isolation.inference.exchange import build_collected_answers
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import BEAT_SECONDS, Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.isolation.sandbox.endpoint import format_answer_line
from evaluation.isolation.sandbox.limits import CHAT_CALL_LIMITS
from evaluation.isolation.sandbox.meter import Meter
from evaluation.models import EvaluationSet, ItemFit, ShortAnswer, ShortEvaluation, Submission
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.endpoints import make_submission_endpoint
from evaluation.scoring.metrics import make_metric
from evaluation.scoring.shorter.drawing import (
    QuestionPriors,
    choose_batch_size,
    draw_batch,
    make_priors,
    predict_answers,
)
from evaluation.scoring.shorter.estimate import (
    AskedQuestion,
    ShareEstimate,
    estimate_share,
    find_stop_reason,
    may_stop,
)
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.services import record_exposure
from tasks.config.field_types.chat import strip_secrets
from tasks.contexts.media.selectors import prepare_for_models
from tasks.targets.endpoints.base import (
    UNANSWERED_REASONS,
    EndpointError,
    Prediction,
    Usage,
)

MAX_USELESS_ANSWERS = 20
"""If so many first questions are all unanswered, the evaluation ends, as a run does."""
StopReason = ShortEvaluation.StopReason


def execute_short_evaluation(evaluation: ShortEvaluation) -> None:
    """Do a claimed short evaluation. Raises LeaseLost; every stored answer stays."""
    do_job_work(evaluation, _ask_and_finish)


def _ask_and_finish(evaluation: ShortEvaluation, heartbeat: Heartbeat) -> None:
    try:
        session = _Session(evaluation, heartbeat)
        reason = session.ask_until_done()
        heartbeat.call_patiently(lambda: session.finish(reason))
    except EndpointError as error:
        raise translate_error(error) from error


def translate_error(error: EndpointError) -> WorkStopped:
    """Return what an endpoint's failure means for the evaluation, as for a run.

    Answers that have arrived are stored and never paid for again, so the job waits patiently for a
    server that is away.
    """
    if error.is_permanent:
        return ImpossibleJob(
            f"The endpoint gave no usable answer. {error}", outcome=Outcome.MODEL_ERROR
        )
    if error.reason == "busy":
        return NotNow(str(error), error.retry_after or None)
    if error.reason in ("down", "slow"):
        return ServerAway(f"The endpoint is away. {error}")
    return ImpossibleJob(
        f"The endpoint gave no usable answer. {error}", outcome=Outcome.INVALID_OUTPUT
    )


@dataclass(frozen=True)
class _CallResult:
    """What a call gave: a prediction, or the reason why it has none; and what it used."""

    prediction: Prediction | None
    usage: Usage | None
    line: bytes


class _Session:
    """One attempt at a short evaluation, with everything that it needs in memory."""

    def __init__(self, evaluation: ShortEvaluation, heartbeat: Heartbeat) -> None:
        self.evaluation, self.heartbeat = evaluation, heartbeat
        self.submission, self.version = evaluation.submission, evaluation.version
        self.task = self.submission.task
        config = self.task.config
        self.chat = ChatSettings.from_stored(self.submission.chat)
        self.endpoint = make_submission_endpoint(self.submission)
        self.metric = make_metric(
            config.metrics.main, get_labels(config), settings.SP_BLEU_MODEL, config.language
        )
        self.rows: list[SetRow] = list(read_set_rows(self.version))
        self.priors = read_priors(evaluation)
        self.exposures = self._count_exposures()
        self.answers = list(evaluation.answers.order_by("number"))

    def _count_exposures(self) -> Any:
        """Return in how many other short evaluations of the version each question was asked."""
        counts = np.zeros(len(self.rows), dtype=int)
        other_answers = ShortAnswer.objects.filter(
            evaluation__version=self.version_id, sent_at__isnull=False
        ).exclude(evaluation=self.evaluation)
        for position, count in (
            other_answers.order_by().values_list("position").annotate(n=Count("pk"))
        ):
            counts[position] = count
        return counts

    @property
    def version_id(self) -> int:
        """The id of the version whose questions are asked."""
        return self.evaluation.version_id

    def ask_until_done(self) -> str:
        """Ask batch after batch; return why it stops. Raises WorkStopped and EndpointError."""
        while True:
            self._check_allowed()
            # What an earlier attempt has drawn comes first: its chances are already fixed.
            unsent = [answer for answer in self.answers if answer.sent_at is None]
            if unsent and not self._ask(unsent):
                return StopReason.COST
            self._check_answers()
            estimate = self.estimate()
            reason = find_stop_reason(
                estimate,
                len(self.answers),
                self.evaluation.most_questions,
                self.evaluation.half_width,
            )
            if reason:
                return reason
            self._draw(estimate)

    def estimate(self) -> ShareEstimate | None:
        """Return the estimate from the answers so far; None if there are too few."""
        asked = [
            AskedQuestion(answer.chance, answer.prediction, answer.rest, answer.is_right)
            for answer in self.answers
        ]
        return estimate_share(len(self.rows), asked)

    def _check_allowed(self) -> None:
        """Raise ImpossibleJob if the set's owners have withdrawn their consent meanwhile.

        Then no further inputs leave the site.
        """
        if not EvaluationSet.objects.filter(versions=self.version_id, may_leave=True).exists():
            raise ImpossibleJob(
                gettext_noop("This set's inputs can no longer leave the site, so we sent nothing."),
                outcome=Outcome.INFRASTRUCTURE,
            )

    def _check_answers(self) -> None:
        """Raise ImpossibleJob if the model has answered none of the first questions."""
        known = [answer for answer in self.answers if answer.is_right is not None]
        useless_count = sum(answer.is_unanswered for answer in known)
        if useless_count == len(known) and useless_count >= min(
            MAX_USELESS_ANSWERS, len(self.rows)
        ):
            raise ImpossibleJob(
                f"None of the first {useless_count} examples was answered.",
                outcome=Outcome.INVALID_OUTPUT,
            )

    def _draw(self, estimate: ShareEstimate | None) -> None:
        """Draw the next questions and store them with their chances. Raises LeaseLost."""
        known = [answer for answer in self.answers if answer.is_right is not None]
        predictions = predict_answers(
            self.priors,
            [answer.position for answer in known],
            [answer.is_right is True for answer in known],
        )
        is_asked = np.zeros(len(self.rows), dtype=bool)
        is_asked[[answer.position for answer in self.answers]] = True
        width_ratio = estimate.half_width / self.evaluation.half_width if estimate else 0.0
        count = choose_batch_size(len(self.answers), self.evaluation.most_questions, width_ratio)
        # Seeded by the number of answers too, so that batches differ, and can be drawn again.
        random = np.random.default_rng([self.evaluation.seed, len(self.answers)])
        drawn = draw_batch(predictions, is_asked, self.exposures, count, random)
        new_answers = [
            ShortAnswer(
                evaluation=self.evaluation,
                number=len(self.answers) + offset,
                position=question.position,
                chance=question.chance,
                prediction=question.prediction,
                rest=question.rest,
            )
            for offset, question in enumerate(drawn)
        ]
        with transaction.atomic():
            # Under the lease, so that of two workers only one draws.
            leases.store_partial_results(self.evaluation, asked=self.evaluation.asked)
            ShortAnswer.objects.bulk_create(new_answers)
        self.answers += new_answers

    def _ask(self, unsent: Sequence[ShortAnswer]) -> bool:
        """Ask these questions; return False if the money ended before all were asked.

        Waits for calls that have begun, whatever happens, because they cost money. Raises
        EndpointError after them, LeaseLost, and ImpossibleJob.
        """
        waiting, failure = deque(unsent), None
        open_calls: dict[Future[_CallResult], ShortAnswer] = {}
        has_money = True
        record_exposure(self.version)
        try:
            with ThreadPoolExecutor(CHAT_CALL_LIMITS.concurrent_calls) as pool:
                while True:
                    while (
                        waiting
                        and failure is None
                        and len(open_calls) < CHAT_CALL_LIMITS.concurrent_calls
                        and (has_money := self._has_money(len(open_calls)))
                    ):
                        answer = waiting.popleft()
                        inputs = self._make_inputs(answer)
                        self._mark_sent(answer)
                        open_calls[pool.submit(self._call, inputs)] = answer
                    if not open_calls:
                        break
                    ended_calls, _ = wait(open_calls, BEAT_SECONDS, FIRST_COMPLETED)
                    for call in ended_calls:
                        answer = open_calls.pop(call)
                        try:
                            self._store(answer, call.result())
                        except EndpointError as error:
                            # It has no answer, so it may be asked again, when the job continues.
                            ShortAnswer.objects.filter(pk=answer.pk).update(sent_at=None)
                            failure = failure or error
                    self._report()
        finally:
            # The lease may be lost while calls are open: they are paid for all the same.
            for call in open_calls:
                if call.exception() is None:
                    # A server that counts no tokens costs an unknown sum, as elsewhere.
                    with suppress(EndpointError):
                        self._pay(self._compute_cost(call.result().usage))
        if failure is not None:
            raise failure
        return has_money

    def _has_money(self, open_count: int) -> bool:
        """Return whether another call stays below both caps, if it costs what others did."""
        if not self.chat.is_paid:
            return True
        known_count = sum(answer.is_right is not None for answer in self.answers)
        expected = (open_count + 1) * self.evaluation.spent / max(1, known_count)
        most_cost = self.evaluation.most_cost
        if most_cost is not None and self.evaluation.spent + expected > most_cost:
            return False
        row = Submission.objects.filter(pk=self.submission.pk).values_list("chat", "spent").get()
        # Read each time, because the owner may change the model's cap, and practice spends too.
        cap = ChatSettings.from_stored(row[0]).most_cost
        return cap is None or row[1] + expected <= cap

    def _make_inputs(self, answer: ShortAnswer) -> dict[str, Any]:
        """Return what the model reads: never right answers or uids."""
        config = self.task.config
        prepared = prepare_for_models(config, self.task, self.rows[answer.position].inputs)
        return {
            name: strip_secrets(prepared[name]) for name in config.model_fields if name in prepared
        }

    def _mark_sent(self, answer: ShortAnswer) -> None:
        """Store that a question is being asked. Raises LeaseLost if another worker has the job."""
        self.heartbeat.beat()
        answer.sent_at = timezone.now()
        # Only once: two workers may both believe to have the lease for a moment.
        is_first = ShortAnswer.objects.filter(
            pk=answer.pk,
            sent_at=None,
            evaluation__state=ShortEvaluation.State.RUNNING,
            evaluation__lease_token=self.evaluation.lease_token,
        )
        if not is_first.update(sent_at=answer.sent_at):
            raise leases.LeaseLost(f"{self.evaluation} is not this worker's any more.")

    def _call(self, inputs: dict[str, Any]) -> _CallResult:
        """Ask one question. Runs in a thread, without the database. Raises EndpointError."""
        try:
            (prediction,) = self.endpoint.predict(
                [inputs], deadline_seconds=CHAT_CALL_LIMITS.seconds
            )
        except EndpointError as error:
            # The model was asked, and has no answer to this question: that is its result.
            if error.reason in UNANSWERED_REASONS:
                return _CallResult(None, error.usage, format_answer_line("0", error.reason))
            raise
        return _CallResult(prediction, prediction.usage, format_answer_line("0", prediction))

    def _store(self, answer: ShortAnswer, result: _CallResult) -> None:
        """Pay for a call and store whether its answer is right.

        Raises LeaseLost, EndpointError(misconfigured) if the cost is unknown, and ImpossibleJob if
        the answer breaks the contract.
        """
        cost = self._compute_cost(result.usage)
        self._pay(cost)
        is_right = self._grade(answer, result.line)
        is_unanswered = result.prediction is None
        columns: dict[str, Any] = {
            "spent": self.evaluation.spent + cost,
            "asked": self.evaluation.asked + 1,
            "unanswered": self.evaluation.unanswered + is_unanswered,
        }
        if self.evaluation.away_since:
            columns["away_since"] = None  # the server is back
        with transaction.atomic():
            leases.store_partial_results(self.evaluation, **columns)
            ShortAnswer.objects.filter(pk=answer.pk).update(
                is_right=is_right, is_unanswered=is_unanswered
            )
        answer.is_right, answer.is_unanswered = is_right, is_unanswered

    def _compute_cost(self, usage: Usage | None) -> float:
        """Return what a call costs. Raises EndpointError(misconfigured) if that is unknown."""
        meter = Meter(self.chat.price_in, self.chat.price_out)
        # A failed call without usage cost nothing, as in runs.
        if usage is not None:
            meter.record_answer(usage)
        return meter.compute_cost()

    def _pay(self, cost: float) -> None:
        """Add a cost to the model's spending, which its cap limits."""
        # By F, because practice or another evaluation of the model may pay at the same time.
        Submission.objects.filter(pk=self.submission.pk).update(spent=F("spent") + cost)

    def _grade(self, answer: ShortAnswer, line: bytes) -> bool:
        """Return whether an answer is right, by the task's main metric. Raises ImpossibleJob."""
        collected = build_collected_answers(self.task.config, ["0"])
        try:
            collected.take(line.rstrip(b"\n"))
        except InvalidOutput as error:
            raise ImpossibleJob(str(error), outcome=Outcome.INVALID_OUTPUT) from None
        (checked,) = collected.iterate_in_order()
        row = self.rows[answer.position]
        statistic = self.metric.compute_statistic(checked and checked.value, row)
        return self.metric.grade(statistic) >= 1

    def _report(self) -> None:
        asked = self.evaluation.asked
        self.heartbeat.report_progress(
            asked / max(1, self.evaluation.most_questions), f"{asked:,} answers"
        )

    def finish(self, reason: str) -> None:
        """Store the estimate and end the job. Raises LeaseLost, and ImpossibleJob without one."""
        # The money ended before these were asked; earlier ones without an answer are lost.
        while self.answers and self.answers[-1].sent_at is None:
            self.answers.pop()
        estimate = self.estimate()
        if estimate is None or not may_stop(len(self.answers), len(self.rows)):
            raise ImpossibleJob(
                gettext_noop(
                    "The cap on its cost was reached before enough questions were answered. Raise "
                    "the cap and request another one."
                ),
                outcome=Outcome.OVER_BUDGET,
            )
        asked_positions = [answer.position for answer in self.answers]
        other_count = (
            ShortEvaluation.objects.filter(version=self.version_id, asked__gt=0)
            .exclude(pk=self.evaluation.pk)
            .count()
        )
        with transaction.atomic():
            leases.finish_job(
                self.evaluation,
                outcome=Outcome.OK,
                stop_reason=reason,
                value=estimate.value,
                low=estimate.low,
                high=estimate.high,
                lost=sum(answer.is_right is None for answer in self.answers),
                most_exposed=int(self.exposures[asked_positions].max()) + 1,
                exposed_in=other_count + 1,
            )
            self.evaluation.answers.filter(number__gte=len(self.answers)).delete()


def read_priors(evaluation: ShortEvaluation) -> QuestionPriors:
    """Return what is known of a version's questions from the answers of other models."""
    size = evaluation.version.size
    fit = ItemFit.objects.filter(version=evaluation.version_id).first()
    if fit is None:
        return make_priors(size)
    items = fit.items.order_by("position").values_list(
        "right_share", "difficulty", "discrimination"
    )
    columns = [list(column) for column in zip(*items, strict=True)]
    return make_priors(size, *columns)
