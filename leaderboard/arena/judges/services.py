"""Write judges of an arena: create one, run it again, show it, and do its job. Takes no locks."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

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
from evaluation.runs.carriers import open_cluster_transport
from evaluation.runs.chat.target_services import CHAT_ADAPTER, TargetClient, read_target_settings
from leaderboard.arena.battles.breaking import PairVote, list_pair_votes
from leaderboard.arena.judges.selectors import (
    FIRST_FIELD,
    SECOND_FIELD,
    build_judge_inputs,
    find_battles_to_judge,
    read_orders,
)
from leaderboard.arena.judges.verdicts import CHOICES, Choice
from leaderboard.models import ArenaJudge, ArenaVerdict, Battle
from tasks.models import TargetModel, Task
from tasks.targets.connect import build_chooser_endpoint
from tasks.targets.contact_services import Contact
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.endpoints.transport import Transport
from tasks.targets.first_contact import try_chat

MAX_CALLS = 20_000
BOTH_ORDERS = (False, True)
OUTPUT = "choice"
MODEL_CHANGED_MESSAGE = gettext_noop(
    "The model's URL or options have changed since this judge was created. Create a new judge."
)
SAMPLE_QUESTION = {
    FIRST_FIELD: "Person: Name a colour.\n\nAssistant: Blue.",
    SECOND_FIELD: "Person: Name a colour.\n\nAssistant: Seven.",
}


class ArenaJudgeRefused(Refused):
    """Raised when a judge of an arena cannot be created, run or shown."""

    code = "arena_judge"


def create_arena_judge(
    *, task: Task, target: TargetModel, name: str, prompt: str, most_calls: int, actor: User | None
) -> ArenaJudge:
    """Create a judge from one of the arena's chat models and a prompt, and queue it.

    most_calls: the maximum number of calls of each request. Raises ArenaJudgeRefused.
    """
    # Other tasks have answers that are right or wrong, and judges of their own.
    if task.config.kind != "arena":
        raise ArenaJudgeRefused(_("Only arenas have battles to judge."))
    # Only chat models take the judge's own prompt.
    if target.adapter != CHAT_ADAPTER or target.task_id != task.pk:
        raise ArenaJudgeRefused(_("Choose one of the task's chat models (openai_chat)."))
    try:
        with transaction.atomic():
            judge = ArenaJudge.objects.create(
                task=task,
                target=target,
                name=name,
                prompt=prompt,
                asked_with=read_target_settings(target),
                most_calls=most_calls,
                requested_by=actor,
            )
            log(actor, "arena_judge.made", judge, model=target.name)
    # The unique name decides, also between two people at once.
    except IntegrityError:
        message = _(
            "A judge called %(name)s already exists. You can't edit judges, so choose another name."
        )
        raise ArenaJudgeRefused(message % {"name": name}) from None
    enqueue(judge.function, judge.pk)
    return judge


def rerun_arena_judge(*, judge: ArenaJudge, actor: User | None) -> None:
    """Queue a judge again for new battles, with at most `most_calls` further calls.

    Takes no lock: a single update decides. Raises ArenaJudgeRefused while the judge is running.
    """
    if not requeue_jobs(ArenaJudge.objects.filter(pk=judge.pk)):
        raise ArenaJudgeRefused(_("This judge is already running. Wait until it finishes."))
    log(actor, "arena_judge.asked", judge)


@transaction.atomic
def show_arena_judge(*, judge: ArenaJudge, actor: User | None, is_shown: bool) -> None:
    """Show a judge's ranking on the leaderboard beside people's, or stop showing it.

    Raises ArenaJudgeRefused if the judge is not calibrated.
    """
    # Readers would take the numbers of an unmeasured judge for a finding.
    if is_shown and not judge.report.get("is_calibrated"):
        raise ArenaJudgeRefused(_("Only calibrated judges can be on the leaderboard."))
    ArenaJudge.objects.filter(pk=judge.pk).update(is_shown=is_shown)
    log(actor, "arena_judge.shown" if is_shown else "arena_judge.hidden", judge)


def contact_arena_judge(judge: ArenaJudge, actor: User) -> Contact | None:
    """Test a new judge once, so that a wrong model, key or prompt is noticed (see `try_chat`)."""
    return try_chat(judge.target, actor, lambda: build_judge_endpoint(judge, None), SAMPLE_QUESTION)


def build_judge_endpoint(judge: ArenaJudge, transport: Transport | None) -> Endpoint:
    """Return the endpoint that asks the judge's chat model for a choice. Raises EndpointError."""
    return build_chooser_endpoint(
        judge.target,
        (FIRST_FIELD, SECOND_FIELD),
        output=OUTPUT,
        labels=CHOICES,
        prompt=judge.prompt,
        transport=transport,
    )


def run_arena_judge(judge: ArenaJudge) -> None:
    """Run a claimed judge on the arena's battles.

    1. Load the model, if it is one of ours.
    2. Ask about each battle twice, with the sides swapped, and about each pair of a ranking, until
       the calls are used up.
    3. Store the report.

    Each choice is stored immediately, outside any transaction, so that an interrupted job continues
    where it stopped. A failed call gives no choice. Raises LeaseLost.
    """
    do_job_work(judge, _run_judge)


def _run_judge(judge: ArenaJudge, heartbeat: Heartbeat) -> None:
    with open_cluster_transport(judge.target, heartbeat.beat) as transport:
        judge_job = _JudgeJob(judge, heartbeat, transport)
        try:
            judge_job.judge_battles()
        except WorkStopped:
            judge_job.store_report()  # what it has judged so far counts, also if it never goes on
            raise
        judge_job.store_report()
    heartbeat.call_patiently(lambda: leases.finish_job(judge))


class _JudgeJob:
    """One execution of the job that runs a judge, with at most `judge.most_calls` calls.

    transport: the one from `open_cluster_transport`.
    """

    def __init__(
        self, judge: ArenaJudge, heartbeat: Heartbeat, transport: Transport | None
    ) -> None:
        self.judge, self.heartbeat = judge, heartbeat
        self.client = TargetClient(
            judge, lambda: build_judge_endpoint(judge, transport), MODEL_CHANGED_MESSAGE
        )
        self.orders = read_orders(judge)

    def judge_battles(self) -> None:
        """Ask about the battles that lack a choice. Raises the exceptions of `TargetClient.ask`."""
        rows = find_battles_to_judge(self.judge)
        battles = list(rows.values_list("pk", "winner", "ranking"))
        for number, (pk, winner, ranking) in enumerate(battles):
            self.heartbeat.report_progress(number / len(battles), gettext_noop("judging battles"))
            missing = self.list_missing(pk, list_pair_votes(winner, ranking))
            # All is answered, by this attempt or an earlier one.
            if not missing:
                continue
            if self.client.call_count >= self.judge.most_calls:
                return
            # Read only now: its writer may have withdrawn it since the job began.
            if battle := rows.prefetch_related("turns__replies").filter(pk=pk).first():
                for vote, is_swapped in missing:
                    self.ask_order(battle, vote, is_swapped)

    def list_missing(self, pk: int, votes: Iterable[PairVote]) -> list[tuple[PairVote, bool]]:
        """Return the pairs of a battle that lack a choice, each with the order that lacks it."""
        missing = []
        # One order may be there alone, from an attempt that was stopped between both.
        for vote in votes:
            for is_swapped in BOTH_ORDERS:
                if is_swapped not in self.orders.get((pk, vote.pair), {}):
                    missing.append((vote, is_swapped))
        return missing

    def ask_order(self, battle: Battle, vote: PairVote, is_swapped: bool) -> None:
        """Ask about a pair of answers in one order and store the choice, if calls are left."""
        if self.client.call_count >= self.judge.most_calls:
            return
        self.heartbeat.beat()
        answer = self.client.ask(build_judge_inputs(battle, vote, is_swapped=is_swapped))
        # A failed call is no choice; the next request asks again.
        if answer is None:
            return
        # Another worker may have asked the same after this one was taken for dead.
        verdict, _created = ArenaVerdict.objects.get_or_create(
            judge=self.judge,
            battle=battle,
            pair=vote.pair,
            is_swapped=is_swapped,
            defaults={"choice": answer[OUTPUT]},
        )
        self.orders[battle.pk, vote.pair][is_swapped] = cast(Choice, verdict.choice)

    def store_report(self) -> None:
        """Store the current measures and the number of calls. Raises LeaseLost."""
        # Imported late: it loads numpy, which the web never does.
        from leaderboard.arena.judges.reports import build_report

        report: Mapping[str, Any] = build_report(self.judge, self.orders)
        calls = {"calls": self.client.call_count, "failures": self.client.failure_count}
        leases.store_partial_results(self.judge, report={**report, **calls})
