"""Write judges: make one, ask it again, and the job that asks. No lock."""

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
from evaluation.isolation.queue.leases import Heartbeat, queue_again
from evaluation.isolation.queue.lifecycle import carry_through
from evaluation.judges.llm_judges.selectors import (
    ANSWER_FIELD,
    JudgeQuestion,
    compute_agreements,
    find_judged_answers,
    find_unjudged_runs,
    read_answers_to_judge,
    read_verdicts,
)
from evaluation.models import EvaluationRun, LlmJudge, LlmScore, LlmVerdict
from evaluation.runs.carriers import open_cluster_transport
from evaluation.runs.chat.target_services import CHAT_ADAPTER, Asker, read_target_settings
from tasks.models import TargetModel, Task
from tasks.targets.connect import build_chooser_endpoint
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.endpoints.transport import Transport
from validation.rates.rates import Rate, rate

VERDICT_LABELS = ("correct", "incorrect")
MOST_CALLS = 20_000


MODEL_CHANGED = gettext_noop(
    "The model, its address or its options are not those that the judge was made with. Make a new "
    "judge; it is calibrated again."
)


class JudgeRefused(Refused):
    """Raised when a judge cannot be created or run."""

    code = "llm_judge"


def make_judge(
    *, task: Task, target: TargetModel, name: str, prompt: str, most_calls: int, actor: User | None
) -> LlmJudge:
    """Create a judge from one of the task's chat models and a prompt, and queue it.

    most_calls: the maximum number of calls. Raises JudgeRefused.
    """
    # Other answers are right or wrong by a rule.
    if not task.config.answers_freely:
        raise JudgeRefused(_("Judges are for free answers; this task has none."))
    if target.adapter != CHAT_ADAPTER or target.task_id != task.pk:
        raise JudgeRefused(_("Choose a chat model among the task's targets (openai_chat)."))
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
    # The unique name decides, also between two people at once.
    except IntegrityError:
        message = _("There is a judge called %(name)s. A judge never changes: choose another name.")
        raise JudgeRefused(message % {"name": name}) from None
    enqueue(judge.function, judge.pk)
    return judge


def run_judge_again(*, judge: LlmJudge, actor: User | None) -> None:
    """Queue the judge again for new answers, with at most `most_calls` further calls.

    Takes no lock: a single update decides. Raises JudgeRefused while the judge is running.
    """
    if not queue_again(LlmJudge.objects.filter(pk=judge.pk)):
        raise JudgeRefused(_("It is being asked now. Wait for its end."))
    log(actor, "llm_judge.asked", judge)


def run_judge(judge: LlmJudge) -> None:
    """Run a claimed judge on the answers that people judged, then on the answers of models.

    1. Load the model, if it is one of ours.
    2. Calibrate: judge every answer that people judged.
    3. Score runs, newest first, until the calls are used up.
    4. Store the agreement and the number of calls.

    Each verdict is stored immediately, outside any transaction, so that an interrupted job
    continues where it stopped. A failed call gives no verdict. Raises LeaseLost.
    """
    carry_through(judge, _run_judge)


def _run_judge(judge: LlmJudge, heartbeat: Heartbeat) -> None:
    with open_cluster_transport(judge.target, heartbeat.beat) as by:
        judge_job = _JudgeJob(judge, heartbeat, by)
        try:
            judge_job.calibrate()
            judge_job.score_runs()
        except WorkStopped:
            judge_job.report()  # what it has judged so far counts, also if it never goes on
            raise
        judge_job.report()
    heartbeat.patiently(lambda: leases.finish_job(judge))


class _JudgeJob:
    """One execution of the job that runs a judge, with at most `judge.most_calls` calls.

    by: the transport from `open_cluster_transport`.
    """

    def __init__(self, judge: LlmJudge, heartbeat: Heartbeat, by: Transport | None) -> None:
        self.judge, self.asker = judge, Asker(judge, self.endpoint, MODEL_CHANGED)
        self.heartbeat, self.by = heartbeat, by
        self.verdicts = read_verdicts(judge)
        # Read once: people go on judging while the model is asked.
        self.judged = list(find_judged_answers(judge.task))

    def calibrate(self) -> None:
        for number, judgement in enumerate(self.judged):
            share = 0.5 * number / max(1, len(self.judged))
            self.heartbeat.tell(share, gettext_noop("judging what people judged"))
            self.find_verdict(judgement.question)
        self.report()

    def score_runs(self) -> None:
        for run in find_unjudged_runs(self.judge):
            self.heartbeat.tell(0.5, gettext_noop("judging what models answered"))
            self.score(run)

    def score(self, run: EvaluationRun) -> None:
        """Score a run if every answer has a verdict.

        A score of only some of the answers could not be compared between models.
        """
        verdicts = []
        for answer in read_answers_to_judge(self.judge, run):
            self.heartbeat.beat()
            # A missing answer is incorrect. The judge need not be asked.
            verdict = False if answer is None else self.find_verdict(answer)
            if verdict is None:
                return
            verdicts.append(verdict)
        share = rate(sum(verdicts), len(verdicts))
        # A run without answers has no share.
        if isinstance(share, Rate):
            values = {"value": share.value, "low": share.low, "high": share.high, "n": share.n}
            # Replaced if another worker has scored it meanwhile: both have the same verdicts.
            LlmScore.objects.update_or_create(judge=self.judge, run=run, defaults=values)

    def find_verdict(self, question: JudgeQuestion) -> bool | None:
        """Return the stored verdict, or call the judge. Raises the exceptions of `Asker.ask`.

        None if no calls are left or the call failed.
        """
        if question.key in self.verdicts:
            return self.verdicts[question.key]
        # Verdicts that are stored already cost nothing, so they come first.
        if self.asker.calls >= self.judge.most_calls:
            return None
        answer = self.asker.ask(question.inputs)
        if answer is None:
            return None
        is_correct = bool(answer["verdict"] == VERDICT_LABELS[0])
        # Another worker may have asked the same after this one was taken for dead.
        LlmVerdict.objects.get_or_create(
            judge=self.judge, key=question.key, defaults={"is_correct": is_correct}
        )
        self.verdicts[question.key] = is_correct
        return is_correct

    def endpoint(self) -> Endpoint:
        """Return the endpoint that asks the chat model for a verdict."""
        judge = self.judge
        fields = (*judge.task.config.model_fields, ANSWER_FIELD)
        return build_chooser_endpoint(
            judge.target,
            fields,
            output="verdict",
            labels=VERDICT_LABELS,
            prompt=judge.prompt,
            by=self.by,
        )

    def report(self) -> None:
        """Store the current agreement and the number of calls. Raises LeaseLost."""
        report: dict[str, Any] = {}
        for name, agreement in compute_agreements(self.judged, self.verdicts).items():
            report[name] = agreement._asdict()
        keys = [judgement.question.key for judgement in self.judged]
        report["calls"], report["failures"] = self.asker.calls, self.asker.failures
        report["waiting"] = sum(key not in self.verdicts for key in keys)
        leases.store_part(self.judge, report=report)


def iterate_tuning_rows(task: Task) -> Iterable[dict[str, Any]]:
    """Yield the examples of the tuning part, each with its inputs, answer and verdict."""
    for judgement in find_judged_answers(task):
        if judgement.part == "tune":
            verdict = VERDICT_LABELS[0] if judgement.is_correct else VERDICT_LABELS[1]
            yield {"inputs": dict(judgement.question.inputs), "verdict": verdict}
