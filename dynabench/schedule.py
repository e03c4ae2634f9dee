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


class Periodic(NamedTuple):
    """Periodic work: the job, how often it is done, what it counts, and why it is done.

    do: takes nothing and returns a number, which the log tells with the words of `counts`.
    """

    do: Callable[[], int]
    pace: Pace
    counts: str
    why: str


SCHEDULE: Sequence[Periodic] = (
    Periodic(close_due_rounds, MINUTELY, "rounds closed",
             "A round ends on its day or with its budget, even if nobody opens a page."),
    Periodic(open_waiting_rounds, MINUTELY, "rounds opened",
             "Owners opened them while their targets were still being loaded."),
    Periodic(renew_boards, MINUTELY, "runs resampled",
             "Boards show intervals of every run that has ended."),
    Periodic(renew_campaigns, MINUTELY, "ledger rows added",
             "Places run out, and pay becomes due."),
    Periodic(ask_for_vectors, MINUTELY, "tasks whose texts are compared",
             "Findings of studies compare new texts by their vectors."),
    Periodic(deliver_due, MINUTELY, "deliveries tried",
             "Webhooks and owners are told what happened."),
    Periodic(probe_paused_targets, MINUTELY, "targets that answer again",
             "Nobody asks a paused target, so nobody else would see that it is back."),
    Periodic(ask_parts, QUARTERLY, "parts that do not answer",
             "Nobody would notice a broken mail server before a mail is needed."),
    Periodic(remind_of_tokens, DAILY, "people reminded of tokens",
             "Programs fail when a token ends."),
    Periodic(take_back_stray_votes, DAILY, "votes taken back",
             "Former releases took votes of panels outside of their studies."),
    Periodic(purge_deleted, DAILY, "examples of people who left emptied",
             "A deletion may have been cut short."),
    Periodic(refit_second_opinions, DAILY, "examples decided otherwise",
             "With a tenth more votes Dawid and Skene's model may decide otherwise."),
    Periodic(apply_retention, DAILY, "rows emptied by their age",
             "Data about people of panels is kept for a limited time."),
    Periodic(settle_all, DAILY, "ledger rows added late",
             "The site may have been away when they became due."),
)  # fmt: skip
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


def _is_done(work: Periodic) -> bool:
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
