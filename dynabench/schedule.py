"""What a site does each minute and each day: `qcluster` by itself, `manage.py minutely` by hand."""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

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

MINUTE = timedelta(seconds=50)  # who calls each minute may be early
QUARTER = timedelta(minutes=15)
DAY = timedelta(days=1)

logger = logging.getLogger(__name__)


def close_due_rounds() -> int:
    """Close open rounds whose end has come or whose budget is reached; returns how many."""
    opened = Round.objects.filter(state=Round.State.OPEN).select_related("task")
    return sum(close_if_due(round=round).state == Round.State.CLOSED for round in opened)


def refit_second_opinions() -> int:
    """Fit Dawid and Skene's model again where a tenth more votes have come, and decide by it.

    Returns how many examples are decided otherwise.
    """
    judged = RoundPolicy.objects.filter(
        round__state__in=JUDGED_STATES, policy__rule="dawid-skene"
    ).select_related("round__task")
    changed = 0
    for stored in filter(is_stale, judged):
        is_at_work()
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
            with noted(finding.what):
                pass
    return silent


MINUTELY: Mapping[str, Callable[[], int]] = {
    "rounds closed": close_due_rounds,
    "rounds opened": open_waiting_rounds,
    "runs resampled": renew_boards,
    "ledger rows added": renew_campaigns,
    "tasks whose texts are compared": ask_for_vectors,
    "deliveries tried": deliver_due,
    "targets that answer again": probe_paused_targets,
}
QUARTERLY: Mapping[str, Callable[[], int]] = {"parts that do not answer": ask_parts}
DAILY: Mapping[str, Callable[[], int]] = {
    "people reminded of tokens": remind_of_tokens,
    "votes taken back": take_back_stray_votes,
    "examples of people who left emptied": purge_deleted,
    "examples decided otherwise": refit_second_opinions,
    "rows emptied by their age": apply_retention,
    "ledger rows added late": settle_all,
}


def do_what_is_due() -> list[str]:
    """Do the minute's work, the quarter's and the day's; returns what failed, as the log tells.

    What some process of the site began within the minute, or the day, is not done again. A
    database that is away raises Error.
    """
    failed = []
    for action, each, works in (
        ("site.minutely", MINUTE, MINUTELY),
        ("site.quarterly", QUARTER, QUARTERLY),
        ("site.daily", DAY, DAILY),
    ):
        if claim(action, each):
            failed += [name for name, work in works.items() if not _is_done(name, work)]
    return failed


def _is_done(name: str, work: Callable[[], int]) -> bool:
    """Whether it could be done; what comes after it need not wait for somebody to mend it."""
    is_at_work()
    try:
        with noted(work.__name__):
            number = work()
        if number:
            logger.info("%d %s", number, name)
    except Error:
        raise
    except Exception:
        logger.exception("Failed: %s", name)
        return False
    return True
