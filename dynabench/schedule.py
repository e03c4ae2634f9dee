"""The periodic work of a site: SCHEDULE lists all of it.

`manage.py qcluster` does it by itself, `manage.py minutely` by hand or by cron.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import Error

from core.jobs.keeper import is_at_work
from core.jobs.periodic import claim
from core.jobs.services import noted
from dynabench.campaigns.findings.vector_jobs import ask_for_vectors
from dynabench.campaigns.jobs import renew_campaigns, settle_all
from dynabench.campaigns.retention_services import apply_retention
from dynabench.campaigns.stray_vote_services import take_back_stray_votes
from dynabench.notices.tokens import remind_of_tokens
from dynabench.operations.soundness.outside import parts_in_use
from dynabench.people.services import purge_deleted
from dynabench.webhooks.jobs import deliver_due
from leaderboard.jobs import renew_boards
from tasks.models import Round
from tasks.rounds.opening_services import open_waiting_rounds
from tasks.rounds.states import close_if_due
from tasks.targets.probes import probe_paused_targets
from validation.decisions.awaited import JUDGED_STATES
from validation.decisions.second_opinion import is_stale
from validation.decisions.services import derive_round
from validation.models import RoundPolicy

logger = logging.getLogger(__name__)


def close_due_rounds() -> int:
    """Close open rounds whose end has come or whose budget is reached; return how many."""
    closed = 0
    for round in Round.objects.filter(state=Round.State.OPEN).select_related("task"):
        if close_if_due(round=round).state == Round.State.CLOSED:
            closed += 1
    return closed


def refit_second_opinions() -> int:
    """Fit Dawid and Skene's model again where a tenth more votes have come, and decide by it.

    Returns how many examples are decided otherwise.
    """
    judged = RoundPolicy.objects.filter(
        round__state__in=JUDGED_STATES, policy__rule="dawid-skene"
    ).select_related("round__task")
    changed = 0
    for stored in filter(is_stale, judged):
        is_at_work()  # a fit to many votes takes minutes
        changed += derive_round(round=Round.objects.get(pk=stored.round_id))
    return changed


def ask_parts() -> int:
    """Ask what the site leans on, and note what answers; return how many do not.

    Monitors tell what has not answered for long. Nobody else would notice a mail server that
    refuses, or a log of erasures that takes nothing, before it is needed.
    """
    silent = 0
    for finding in parts_in_use():
        is_at_work()
        if finding.state == "bad":
            logger.warning("%s: %s", finding.what, finding.message)
            silent += 1
        else:
            with noted(finding.what):  # only notes the time
                pass
    return silent


class Pace(NamedTuple):
    """How often work is done. `name` is that of its claim (`core.jobs.periodic`)."""

    name: str
    each: timedelta


MINUTELY = Pace("site.minutely", timedelta(seconds=50))  # who calls each minute may be early
QUARTERLY = Pace("site.quarterly", timedelta(minutes=15))
DAILY = Pace("site.daily", timedelta(days=1))
PACES = (MINUTELY, QUARTERLY, DAILY)


class ScheduledWork(NamedTuple):
    """Periodic work: the job, how often it is done, what it counts, and why it is done.

    do: takes nothing and returns a number, which the log tells with the words of `counts`.
    """

    do: Callable[[], int]
    pace: Pace
    counts: str
    why: str


SCHEDULE: Sequence[ScheduledWork] = (
    ScheduledWork(
        close_due_rounds, MINUTELY, "rounds closed", "Their end has come or budget is reached."
    ),
    ScheduledWork(
        open_waiting_rounds, MINUTELY, "rounds opened", "Their targets have been loaded."
    ),
    ScheduledWork(renew_boards, MINUTELY, "runs resampled", "Boards show runs that have ended."),
    ScheduledWork(
        renew_campaigns, MINUTELY, "ledger rows added", "Places run out, and pay becomes due."
    ),
    ScheduledWork(
        ask_for_vectors, MINUTELY, "tasks whose texts are compared", "Studies have new texts."
    ),
    ScheduledWork(
        deliver_due, MINUTELY, "deliveries tried", "Webhooks and notices tell what happened."
    ),
    ScheduledWork(
        probe_paused_targets, MINUTELY, "targets that answer again", "Their pause is over."
    ),
    ScheduledWork(
        ask_parts, QUARTERLY, "parts that do not answer", "Nobody else would notice in time."
    ),
    ScheduledWork(
        remind_of_tokens, DAILY, "people reminded of tokens", "Their tokens end in two weeks."
    ),
    ScheduledWork(
        take_back_stray_votes, DAILY, "votes taken back", "Panels vote only in their studies."
    ),
    ScheduledWork(
        purge_deleted, DAILY, "examples of people who left emptied", "Deletions were cut short."
    ),
    ScheduledWork(
        refit_second_opinions, DAILY, "examples decided otherwise", "New votes change the model."
    ),
    ScheduledWork(
        apply_retention, DAILY, "rows emptied by their age", "Data is kept for a limited time."
    ),
    ScheduledWork(
        settle_all, DAILY, "ledger rows added late", "The site was away when they were due."
    ),
)
"""All periodic work, in the order in which the work of one pace is done."""


def do_what_is_due() -> list[str]:
    """Do the work of each pace whose time has come; return what failed, as the log tells.

    Work of a pace that some process of the site has begun within that time is not done again. A
    database that is away raises Error.
    """
    failed = []
    for pace in PACES:
        if not claim(pace.name, pace.each):  # another process does it, or did it lately
            continue
        for work in SCHEDULE:
            if work.pace == pace and not _is_done(work):
                failed.append(work.counts)
    return failed


def _is_done(work: ScheduledWork) -> bool:
    """Do some work and return whether that was possible.

    A failure is logged, and does not stop the work that comes after it.
    """
    is_at_work()  # each job has the keeper's full patience
    try:
        with noted(work.do.__name__):  # monitors know it by its function's name
            number = work.do()
        if number:
            logger.info("%d %s", number, work.counts)
    except Error:  # the database is away: the caller waits for it
        raise
    except Exception:
        logger.exception("Failed: %s", work.counts)
        return False
    return True
