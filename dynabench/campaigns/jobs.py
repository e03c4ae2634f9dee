"""The jobs that run for campaigns every minute and every day."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from django.core.cache import cache
from django.db.models import Q, QuerySet
from django.utils import timezone

from core.periodic import register_daily, register_minutely
from dynabench.campaigns.models import ACTIVE_STATES, Campaign, Payment, Place
from dynabench.campaigns.payment_services import send_payments, warn_of_approvals
from dynabench.campaigns.place_services import free_places, note_ends_of_work
from dynabench.campaigns.quality_services import pause_by_rule
from dynabench.campaigns.services import credit_due_pay
from validation.models import Consensus

CHECK_INTERVAL_SECONDS = 600
"""How often to check the evidence in campaigns that pause people automatically."""
RECENT_TIME = timedelta(hours=1)
"""How far back the job looks for decisions and submissions each minute.

Older work is settled already, and `settle_all` settles daily what a site missed while it was
down.
"""


@register_minutely(counts="ledger rows added", why="Places expire, and pay becomes due.")
def renew_campaigns() -> int:
    """Update all campaigns, and return how many rows were changed or added.

    1. Renew each campaign in which something may have changed (`_renew_campaign`); other
       campaigns cost no query.
    2. Every ten minutes, pause the people whom the evidence flags, if the owner allows it.
    3. Warn owners of submissions that a panel will soon approve.

    If a step fails, the others still run, and the last error is raised at the end.
    """
    steps: list[Callable[[], int]] = [
        partial(_renew_campaign, campaign) for campaign in _select_changed_campaigns()
    ]
    # `add` succeeds once in ten minutes, in one of several processes.
    if cache.add("campaigns:looked", True, CHECK_INTERVAL_SECONDS):
        watched_campaigns = Campaign.objects.filter(
            pauses_itself=True, all_places__state__in=ACTIVE_STATES
        )
        steps += [
            partial(pause_by_rule, campaign=campaign) for campaign in watched_campaigns.distinct()
        ]
    steps.append(warn_of_approvals)
    return _run_each(steps)


@register_daily(
    counts="ledger rows added late", why="Credits pay that came due while the site was down."
)
def settle_all() -> int:
    """Credit the pay due for examples in all campaigns that were ever open.

    Return how many ledger rows were added.
    """
    is_paid_by_decision = Q(pay_accepted__gt=0) | Q(pay_bonus__gt=0)
    opened_campaigns = Campaign.objects.exclude(opened_at=None).filter(is_paid_by_decision)
    return _run_each(partial(credit_due_pay, campaign=campaign) for campaign in opened_campaigns)


def _select_changed_campaigns() -> QuerySet[Campaign]:
    """Return the campaigns in which something may have changed within `RECENT_TIME`."""
    since = timezone.now() - RECENT_TIME
    recent_decisions = Consensus.objects.filter(decided_at__gte=since, is_verified=True)
    unsent_states = (Payment.State.PLANNED, Payment.State.PREPARED, Payment.State.SENT)
    places = Place.objects.filter(
        Q(state__in=ACTIVE_STATES, expires_at__lte=timezone.now())
        | Q(submitted_at__gte=since)
        | Q(annotator__in=recent_decisions.values("example__annotator"))
        | Q(payments__state__in=unsent_states)
    )
    # A full campaign opens again when money becomes free, of which no place tells.
    may_have_moved = Q(pk__in=places.values("campaign")) | Q(state=Campaign.State.FULL)
    return Campaign.objects.exclude(opened_at=None).filter(may_have_moved)


def _renew_campaign(campaign: Campaign) -> int:
    """Free expired places, credit due pay and send payments.

    Return the number of ledger rows added and payments ended.
    """
    # First: who ran out of work may submit what they have, instead of losing the place.
    note_ends_of_work(campaign)
    free_places(campaign=campaign)
    return credit_due_pay(campaign=campaign) + send_payments(campaign=campaign)


def _run_each(steps: Iterable[Callable[[], int]]) -> int:
    """Run all steps and return the sum of their results.

    If a step fails, the others still run, so one panel's failure does not delay pay in other
    campaigns. Then the last error is raised.
    """
    last_error: Exception | None = None
    total = 0
    for step in steps:
        try:
            total += step()
        except Exception as error:
            last_error = error
    if last_error:
        raise last_error
    return total
