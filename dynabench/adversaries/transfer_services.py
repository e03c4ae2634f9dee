"""Ask a task's other models about the catches of its board, on the queue.

Each answer has a row before it is asked for, and answers that evaluations have stored are taken
from there. So a check that was killed, and one that is requested again, ask nothing twice. The
locks are listed in docs/locking.md.
"""

import gzip
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.attempts.live_targets import (
    build_model_inputs,
    get_failure_code,
    request_answers,
)
from annotation.models import Example
from annotation.verdict.outcome import judge_outputs
from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from dynabench.adversaries.models import TransferAnswer, TransferCheck
from dynabench.adversaries.run_services import SLICE_SECONDS
from dynabench.adversaries.run_steps import SliceOver
from dynabench.adversaries.transfer_selectors import (
    Catch,
    TransferQuestion,
    can_transfer,
    find_asked_targets,
    find_current_check,
    list_catches,
    list_evaluated_models,
    list_questions,
    select_other_models,
)
from evaluation.contract import NotNow, ServerAway
from evaluation.dataset_releases.rows import format_uuid
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat, LeaseLost
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.models import EvaluationRun, EvaluationSetVersion
from evaluation.runs.selectors import filter_counting_runs
from tasks.models import RoundTarget, Task
from tasks.targets.endpoints.base import UNANSWERED_REASONS, EndpointError

MAX_CALLS = 1000
"""The most calls of one check, so that a click costs a known amount."""
State = TransferAnswer.State


@transaction.atomic
def request_transfer_check(*, task: Task, actor: User) -> TransferCheck:
    """Queue a check of the task's catches on its other models.

    Takes no lock: the database allows one check at a time. Raises Refused.
    """
    if not can_transfer(task.config):
        message = _("In this task only people can say whether another model is wrong.")
        raise Refused(message, code="unfit")
    if not list_catches(task):
        raise Refused(_("No catch is confirmed yet. Wait until people decide."), code="no_catches")
    if not select_other_models(task).exists():
        raise Refused(_("This task has no model to ask. Add one under Models."), code="no_models")
    try:
        # In a savepoint, because the transaction goes on.
        with transaction.atomic():
            check = TransferCheck.objects.create(task=task, requested_by=actor)
    except IntegrityError:
        message = _("The other models are already being asked. Wait until that is done.")
        raise Refused(message, code="running") from None
    log(actor, "adversary.transfer", task, check=check.pk)
    enqueue(check.function, check.pk)
    return check


@transaction.atomic
def stop_transfer_check(*, task: Task, actor: User) -> TransferCheck:
    """Stop the task's current check; its worker notices within seconds. Takes no lock.

    Raises Refused if there is none.
    """
    check = find_current_check(task)
    if check is None or not leases.cancel_job(check):
        raise Refused(_("No other models are being asked."), code="idle")
    log(actor, "adversary.transfer_stopped", task, check=check.pk)
    check.refresh_from_db()
    return check


def ask_other_models(check: TransferCheck) -> None:
    """Work on a claimed check for a slice of time. Takes no lock: the check is leased.

    Raises LeaseLost.
    """
    do_job_work(check, _work_slice)


def _work_slice(check: TransferCheck, heartbeat: Heartbeat) -> None:
    catches, asked = list_catches(check.task), find_asked_targets(check.task)
    _close_interrupted(catches)
    # Once for each check, because it reads files.
    if not check.calls:
        store_evaluated_answers(check.task, catches, asked)
    asking = _Asking(check, heartbeat)
    try:
        asking.ask_all(list_questions(check.task, catches, asked))
    except SliceOver:
        heartbeat.call_patiently(
            lambda: leases.return_to_queue(check, timezone.now(), "", away_since=None)
        )
        enqueue(check.function, check.pk)
        return
    asking.raise_if_away()
    unasked = {name: get_failure_code(error) for name, error in asking.errors.items()}
    heartbeat.call_patiently(lambda: leases.finish_job(check, unasked=unasked))


def _close_interrupted(catches: Sequence[Catch]) -> None:
    """Mark answers that a dead worker waited for. They are not asked for again.

    A task has one check at a time, so whatever still asks was left behind.
    """
    TransferAnswer.objects.filter(
        example__in=[catch.example for catch in catches], state=State.ASKING
    ).update(state=State.LOST)


# Answers of evaluations


def store_evaluated_answers(
    task: Task, catches: Sequence[Catch], asked: Mapping[str, set[int]]
) -> None:
    """Store what models have answered in their evaluations about these catches.

    Reads sets whose right answers are public only. Takes no lock: rows that exist stay as they are.
    """
    code_by_example = {catch.example: catch.code for catch in catches}
    examples = Example.objects.filter(pk__in=code_by_example).select_related("round__task")
    example_by_uid = {one.uid or format_uuid(one.uuid): one for one in examples}
    rounds = {example.round_id for example in example_by_uid.values()}
    versions = EvaluationSetVersion.objects.filter(evaluation_set__round__in=rounds)
    for version in versions.select_related("evaluation_set", "dataset"):
        if version.is_sealed:
            continue
        for run in _select_runs(task, version):
            target_id, rows = run.submission.target_id, []
            for uid, output in _read_outputs(run, task.config.answer_field):
                example = example_by_uid.get(uid)
                if example is None or target_id in asked.get(code_by_example[example.pk], ()):
                    continue
                rows.append(
                    TransferAnswer(
                        example=example,
                        target_id=target_id,
                        # A model of the task is known by its target, which can also be asked.
                        submission=None if target_id else run.submission,
                        state=State.EVALUATED,
                        output=output,
                        is_fooled=_is_fooled(example, output),
                    )
                )
            # Versions of a set share rows, and a model answers each.
            TransferAnswer.objects.bulk_create(rows, ignore_conflicts=True)


def _select_runs(task: Task, version: EvaluationSetVersion) -> QuerySet[EvaluationRun]:
    """Select the runs that count, of models that are still there, on examples as they are."""
    runs = EvaluationRun.objects.filter(
        version=version,
        suite=EvaluationRun.Suite.PLAIN,
        submission__in=list_evaluated_models(task),
    )
    # Logs may have 64 KiB and measurements 30, and neither is read.
    runs = filter_counting_runs(runs.exclude(predictions="")).defer("log", "measurements")
    return runs.select_related("submission")


def _read_outputs(run: EvaluationRun, answer_field: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the uid and the output of each example that the model answered."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for line in map(orjson.loads, lines):
            if line["answer"] is not None:
                yield line["uid"], {answer_field: line["answer"]}


def _is_fooled(example: Example, output: Mapping[str, Any]) -> bool:
    """Return whether a model with this output is wrong about a catch, by the task's rule."""
    config = example.round.task.config
    outcome = judge_outputs(
        expected=example.inputs,
        outputs=[output],
        rule=config.verdict,
        ensemble="all",
        language=config.language,
    )
    return outcome.status == "fooled"


# Ask


class _Asking:
    """A slice of a check: it asks one model after the other.

    errors: why a model gave no answer, by its name. It is not asked again in this slice.
    """

    def __init__(self, check: TransferCheck, heartbeat: Heartbeat) -> None:
        self._check, self._heartbeat = check, heartbeat
        self._slice_ends_at = time.monotonic() + SLICE_SECONDS
        self.errors: dict[str, EndpointError] = {}

    def ask_all(self, questions: Sequence[TransferQuestion]) -> None:
        """Ask the questions in order. Raises SliceOver and LeaseLost.

        Ends early at the maximum of calls.
        """
        for number, question in enumerate(questions):
            if question.target.name in self.errors:
                continue
            self._heartbeat.report_progress(number / len(questions), "")
            # Each slice asks something, however long it took to list the questions.
            if number and time.monotonic() > self._slice_ends_at:
                raise SliceOver
            answer = self._begin_answer(question)
            if answer is None:
                return
            self._finish_answer(answer)

    def raise_if_away(self) -> None:
        """Raise NotNow or ServerAway if a model may answer later."""
        for name, error in self.errors.items():
            if error.is_permanent or get_failure_code(error) == "spent":
                continue
            if get_failure_code(error) in ("busy", "loading"):
                raise NotNow(f"{name}: {error}", error.retry_after)
            raise ServerAway(f"{name}: {error}")

    def _begin_answer(self, question: TransferQuestion) -> TransferAnswer | None:
        """Return a new row for an answer, whose call is counted; None at the maximum of calls.

        Raises LeaseLost if another worker has the check.
        """
        own_check = TransferCheck.objects.filter(
            pk=self._check.pk,
            state=TransferCheck.State.RUNNING,
            lease_token=self._check.lease_token,
        )
        # The call counts before it is made: a worker that dies has still made it.
        with transaction.atomic():
            if own_check.filter(calls__lt=MAX_CALLS).update(calls=F("calls") + 1):
                answer, _is_new = TransferAnswer.objects.update_or_create(
                    example_id=question.example,
                    target=question.target,
                    defaults={"state": State.ASKING, "reason": "", "asked_at": timezone.now()},
                )
                return answer
        if own_check.exists():
            return None
        raise LeaseLost(f"{self._check} is not this worker's any more.")

    def _finish_answer(self, answer: TransferAnswer) -> None:
        """Ask the model as the writing page does, with the same budgets, and store its answer."""
        examples = Example.objects.select_related("round__task", "context")
        example = examples.get(pk=answer.example_id)
        inputs = build_model_inputs(example.round, example.context.fields, example.inputs)
        # The model is not of this round. It is named so that the budgets of a round hold, too.
        entry = RoundTarget(round=example.round, target=answer.target)
        own_row = TransferAnswer.objects.filter(pk=answer.pk, state=State.ASKING)
        try:
            [prediction] = request_answers([entry], inputs, settings.LIVE_DEADLINE_SECONDS)
        except EndpointError as error:
            code = get_failure_code(error)
            if code in UNANSWERED_REASONS:
                own_row.update(state=State.UNANSWERED, reason=code)
            else:
                own_row.update(state=State.WAITING, reason=code)
                self.errors[entry.target.name] = error
            return
        output = dict(prediction.output)
        own_row.update(state=State.ANSWERED, output=output, is_fooled=_is_fooled(example, output))
