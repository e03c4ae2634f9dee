"""Write judges: create one, run it again, and do its job. Takes no locks."""

from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.contract import WorkStopped
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat, requeue_jobs
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.judges.llm_judges.questions import (
    JudgeQuestion,
    get_verdict_labels,
    list_prompt_fields,
)
from evaluation.judges.llm_judges.selectors import (
    AnswerToScore,
    compute_agreements,
    compute_answer_score,
    find_judged_answers,
    find_open_questions,
    find_unjudged_runs,
    read_answers_to_judge,
    read_verdicts,
)
from evaluation.models import EvaluationRun, LlmJudge, LlmScore, LlmVerdict
from evaluation.runs.carriers import open_cluster_transport
from evaluation.runs.chat.target_services import CHAT_ADAPTER, TargetClient, read_target_settings
from tasks.models import TargetModel, Task
from tasks.targets.connect import build_chooser_endpoint
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.endpoints.transport import Transport
from validation.rates.rates import Rate, compute_rate

MAX_CALLS = 20_000

MODEL_CHANGED_MESSAGE = gettext_noop(
    "The model's URL or options have changed since this judge was created. Create a "
    "new judge and calibrate it."
)


class JudgeRefused(Refused):
    """Raised when a judge cannot be created or run."""

    code = "llm_judge"


def create_judge(
    *, task: Task, target: TargetModel, name: str, prompt: str, most_calls: int, actor: User | None
) -> LlmJudge:
    """Create a judge from one of the task's chat models and a prompt, and queue it.

    most_calls: the maximum number of calls. Raises JudgeRefused.
    """
    # Other answers are right or wrong by a rule.
    if not task.config.has_free_answers:
        raise JudgeRefused(_("LLM judges score free-text answers. This task doesn't have any."))
    if target.adapter != CHAT_ADAPTER or target.task_id != task.pk:
        raise JudgeRefused(_("Choose one of the task's chat models (openai_chat)."))
    try:
        with transaction.atomic():
            judge = LlmJudge.objects.create(
                task=task,
                target=target,
                name=name,
                prompt=prompt,
                asked_with=read_target_settings(target),
                most_calls=most_calls,
                requested_by=actor,
            )
            log(actor, "llm_judge.made", judge, model=target.name)
    # The unique name decides, even between simultaneous requests.
    except IntegrityError:
        message = _(
            "A judge called %(name)s already exists. You can't edit judges, so choose another name."
        )
        raise JudgeRefused(message % {"name": name}) from None
    enqueue(judge.function, judge.pk)
    return judge


def rerun_judge(*, judge: LlmJudge, actor: User | None) -> None:
    """Queue the judge again for new answers, with at most `most_calls` further calls.

    Takes no lock: a single update decides. Raises JudgeRefused while the judge is running.
    """
    if not requeue_jobs(LlmJudge.objects.filter(pk=judge.pk)):
        raise JudgeRefused(_("This judge is already running. Wait until it finishes."))
    log(actor, "llm_judge.asked", judge)


def run_judge(judge: LlmJudge) -> None:
    """Run a claimed judge on the answers that people judged, then on the answers of models.

    1. Load the model, if it is one of ours.
    2. Calibrate: judge every answer that people judged.
    3. Judge the criteria that people have not decided, which only owners see.
    4. Score runs, newest first, until the calls are used up.
    5. Store the agreement and the number of calls.

    Each verdict is stored immediately, outside any transaction, so that an interrupted job
    continues where it stopped. A failed call gives no verdict. Raises LeaseLost.
    """
    do_job_work(judge, _run_judge)


def _run_judge(judge: LlmJudge, heartbeat: Heartbeat) -> None:
    with open_cluster_transport(judge.target, heartbeat.beat) as transport:
        judge_job = _JudgeJob(judge, heartbeat, transport)
        try:
            judge_job.calibrate()
            judge_job.look_at_open_criteria()
            judge_job.score_runs()
        except WorkStopped:
            judge_job.store_report()  # what it has judged so far counts, even if it never continues
            raise
        judge_job.store_report()
    heartbeat.call_patiently(lambda: leases.finish_job(judge))


class _JudgeJob:
    """One execution of the job that runs a judge, with at most `judge.most_calls` calls.

    transport: the one from `open_cluster_transport`.
    """

    def __init__(self, judge: LlmJudge, heartbeat: Heartbeat, transport: Transport | None) -> None:
        self.judge, self.client = (
            judge,
            TargetClient(judge, self.build_endpoint, MODEL_CHANGED_MESSAGE),
        )
        self.heartbeat, self.transport = heartbeat, transport
        self.labels = get_verdict_labels(judge.task.config)
        self.verdicts = read_verdicts(judge)
        # Read once, because people continue judging while the model answers.
        self.judged_answers = list(find_judged_answers(judge.task))

    def calibrate(self) -> None:
        for number, judgement in enumerate(self.judged_answers):
            progress = 0.5 * number / max(1, len(self.judged_answers))
            self.heartbeat.report_progress(
                progress, gettext_noop("judging the answers that people have judged")
            )
            self.find_verdict(judgement.question)
        self.store_report()

    def look_at_open_criteria(self) -> None:
        """Judge criteria before people do. These verdicts are never votes."""
        for question in find_open_questions(self.judge.task):
            self.heartbeat.report_progress(
                0.5, gettext_noop("judging new answers before people judge them")
            )
            self.find_verdict(question)

    def score_runs(self) -> None:
        for run in find_unjudged_runs(self.judge):
            self.heartbeat.report_progress(0.5, gettext_noop("judging the models' answers"))
            self.score_run(run)

    def score_run(self, run: EvaluationRun) -> None:
        """Score a run if every answer has a verdict. A missing answer counts as incorrect.

        A score of only some of the answers could not be compared between models.
        """
        scores = []
        for answer in read_answers_to_judge(self.judge, run):
            self.heartbeat.beat()
            score = self._score_answer(answer)
            if score is None:
                return
            scores.append(score)
        rate = compute_rate(sum(scores), len(scores))
        # A run without answers has no share.
        if isinstance(rate, Rate):
            values = {"value": rate.value, "low": rate.low, "high": rate.high, "n": rate.n}
            # Replaced if another worker has scored it meanwhile: both have the same verdicts.
            LlmScore.objects.update_or_create(judge=self.judge, run=run, defaults=values)

    def _score_answer(self, answer: AnswerToScore) -> float | None:
        """Return the score (0-1) of an answer; None if the judge gave no verdict."""
        verdicts = [self.find_verdict(question) for question in answer.questions]
        return compute_answer_score(self.judge.task.config, answer, verdicts)

    def find_verdict(self, question: JudgeQuestion) -> bool | None:
        """Return the stored verdict, or call the judge.

        Returns None if no calls are left or the call failed. Raises the exceptions of
        `TargetClient.ask`.
        """
        if question.key in self.verdicts:
            return self.verdicts[question.key]
        # Stored verdicts cost nothing, so they come first.
        if self.client.call_count >= self.judge.most_calls:
            return None
        answer = self.client.ask(question.inputs)
        if answer is None:
            return None
        is_correct = bool(answer["verdict"] == self.labels[0])
        # Another worker may have done the same after this one was considered dead.
        LlmVerdict.objects.get_or_create(
            judge=self.judge, key=question.key, defaults={"is_correct": is_correct}
        )
        self.verdicts[question.key] = is_correct
        return is_correct

    def build_endpoint(self) -> Endpoint:
        """Return the endpoint that asks the chat model for a verdict."""
        judge = self.judge
        return build_chooser_endpoint(
            judge.target,
            list_prompt_fields(judge.task.config),
            output="verdict",
            labels=self.labels,
            prompt=judge.prompt,
            transport=self.transport,
        )

    def store_report(self) -> None:
        """Store the current agreement and the number of calls. Raises LeaseLost."""
        report: dict[str, Any] = {}
        for name, agreement in compute_agreements(self.judged_answers, self.verdicts).items():
            report[name] = agreement._asdict()
        keys = [judgement.question.key for judgement in self.judged_answers]
        report["calls"], report["failures"] = self.client.call_count, self.client.failure_count
        report["waiting"] = sum(key not in self.verdicts for key in keys)
        leases.store_partial_results(self.judge, report=report)


def iterate_tuning_rows(task: Task) -> Iterable[dict[str, Any]]:
    """Yield the examples of the tuning part, each with its inputs, answer and verdict."""
    favourable, other = get_verdict_labels(task.config)
    for judgement in find_judged_answers(task):
        if judgement.split == "tune":
            verdict = favourable if judgement.is_correct else other
            yield {"inputs": dict(judgement.question.inputs), "verdict": verdict}
