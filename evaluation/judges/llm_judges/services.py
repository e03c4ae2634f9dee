"""Writes about judges: making one, asking it again, and the job that asks. No lock."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.isolation.queue import leases
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.judges.llm_judges.selectors import (
    ANSWER,
    Asked,
    agreements,
    answers_of,
    judged_by_people,
    runs_to_judge,
    verdicts_of,
)
from evaluation.models import EvaluationRun, LlmJudge, LlmScore, LlmVerdict
from evaluation.runs.chat.target_services import CHAT, Asker, Stopped, end_job, settings_of
from evaluation.runs.elsewhere import own_model
from tasks.models import TargetModel, Task
from tasks.targets.connect import chooser_endpoint
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.endpoints.transport import Transport
from validation.rules.rates import Rate, rate

LABELS = ("correct", "incorrect")
MOST_CALLS = 20_000


CHANGED = gettext_noop(
    "The model, its address or its options are not those that the judge was made with. Make a new "
    "judge; it is calibrated again."
)


class JudgeRefused(Refused):
    """A judge cannot be made or asked."""

    code = "llm_judge"


def make_judge(
    *, task: Task, target: TargetModel, name: str, prompt: str, most_calls: int, actor: User | None
) -> LlmJudge:
    """A judge of a chat model of the task and a prompt, which is asked at once.

    Raises JudgeRefused.
    """
    if not task.config.answers_freely:
        raise JudgeRefused(_("Judges are for free answers; this task has none."))
    if target.adapter != CHAT or target.task_id != task.pk:
        raise JudgeRefused(_("Choose a chat model among the task's targets (openai_chat)."))
    try:
        with transaction.atomic():
            judge = LlmJudge.objects.create(
                task=task,
                target=target,
                name=name,
                prompt=prompt,
                asked_with=settings_of(target),
                most_calls=most_calls,
                requested_by=actor,
            )
            log(actor, "llm_judge.made", judge, model=target.name)
    except IntegrityError:
        said = _("There is a judge called %(name)s. A judge never changes: choose another name.")
        raise JudgeRefused(said % {"name": name}) from None
    enqueue(judge.function, judge.pk)
    return judge


def ask_again(*, judge: LlmJudge, actor: User | None) -> None:
    """Have the judge asked about what is new, for as many calls again. One update decides.

    Raises JudgeRefused while it is being asked.
    """
    over = [s for s in LlmJudge.State if s not in (LlmJudge.State.QUEUED, LlmJudge.State.RUNNING)]
    again = LlmJudge.objects.filter(pk=judge.pk, state__in=over)
    if not again.update(state=LlmJudge.State.QUEUED, attempts=0, error="", not_before=None):
        raise JudgeRefused(_("It is being asked now. Wait for its end."))
    log(actor, "llm_judge.asked", judge)
    enqueue(judge.function, judge.pk)


def ask(judge: LlmJudge) -> None:
    """Ask a claimed judge about what people judged, then about what models answered.

    Each verdict is stored at once, outside of any transaction, so that a judge goes on where it was
    stopped. A failure is no verdict. Raises LeaseLost.
    """
    heartbeat = leases.Heartbeat(judge)
    with own_model(judge.target, heartbeat.beat) as by:
        asking = _Asking(judge, heartbeat, by)
        try:
            asking.calibrate()
            asking.score_runs()
        except (Stopped, NoEngine) as stopped:
            asking.report()
            end_job(judge, stopped)
            return
        asking.report()
    leases.finish_job(judge, report=judge.report)


class _Asking:
    """One time that a judge is asked: at most `judge.most_calls` calls. by: of `own_model`."""

    def __init__(self, judge: LlmJudge, heartbeat: leases.Heartbeat, by: Transport | None) -> None:
        self.judge, self.asker = judge, Asker(judge, self.endpoint, CHANGED)
        self.heartbeat, self.by = heartbeat, by
        self.verdicts = verdicts_of(judge)
        self.judged = list(judged_by_people(judge.task))

    def calibrate(self) -> None:
        for number, one in enumerate(self.judged):
            share = 0.5 * number / max(1, len(self.judged))
            self.heartbeat.tell(share, gettext_noop("judging what people judged"))
            self.verdict(one.asked)
        self.report()

    def score_runs(self) -> None:
        for run in runs_to_judge(self.judge):
            self.heartbeat.tell(0.5, gettext_noop("judging what models answered"))
            self.score(run)

    def score(self, run: EvaluationRun) -> None:
        """Of a whole run only: a part of it would be of other examples than another model's."""
        said = []
        for answer in answers_of(self.judge, run):
            self.heartbeat.beat()
            verdict = False if answer is None else self.verdict(answer)
            if verdict is None:
                return
            said.append(verdict)
        share = rate(sum(said), len(said))
        if isinstance(share, Rate):
            values = {"value": share.value, "low": share.low, "high": share.high, "n": share.n}
            store = partial(LlmScore.objects.update_or_create, judge=self.judge, run=run)
            store(defaults=values)

    def verdict(self, asked: Asked) -> bool | None:
        """What the judge says; None: its calls are used up, or it failed. Raises Stopped."""
        if asked.key in self.verdicts:
            return self.verdicts[asked.key]
        if self.asker.calls >= self.judge.most_calls:
            return None
        answer = self.asker.ask(asked.inputs)
        if answer is None:
            return None
        found = bool(answer["verdict"] == LABELS[0])
        LlmVerdict.objects.get_or_create(
            judge=self.judge, key=asked.key, defaults={"is_correct": found}
        )
        self.verdicts[asked.key] = found
        return found

    def endpoint(self) -> Endpoint:
        """The chat model, asked for a verdict."""
        judge = self.judge
        fields = (*judge.task.config.model_fields, ANSWER)
        return chooser_endpoint(
            judge.target, fields, output="verdict", labels=LABELS, prompt=judge.prompt, by=self.by
        )

    def report(self) -> None:
        """The agreement so far, and what it took."""
        found = agreements(self.judged, self.verdicts)
        self.judge.report = {
            **{part: one._asdict() for part, one in found.items()},
            "calls": self.asker.calls,
            "failures": self.asker.failures,
            "waiting": sum(one.asked.key not in self.verdicts for one in self.judged),
        }
        LlmJudge.objects.filter(pk=self.judge.pk).update(report=self.judge.report)


def tuning_rows(task: Task) -> Iterable[dict[str, Any]]:
    """The examples to tune a prompt on, as lines of a file: inputs, answer, what people said."""
    for one in judged_by_people(task):
        if one.part == "tune":
            verdict = LABELS[0] if one.is_correct else LABELS[1]
            yield {"inputs": dict(one.asked.inputs), "verdict": verdict}
