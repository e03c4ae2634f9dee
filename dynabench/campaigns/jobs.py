"""What a site does for campaigns each minute, and each day."""

from collections.abc import Callable, Iterable
from datetime import timedelta

from django.core.cache import cache
from django.db.models import Q, QuerySet
from django.utils import timezone

from dynabench.campaigns.models import Campaign, Payment, Place
from dynabench.campaigns.payment_services import send_payments, warn_of_approvals
from dynabench.campaigns.place_services import GOING, free_places
from dynabench.campaigns.quality_services import pause_by_rule
from dynabench.campaigns.services import settle
from validation.models import Consensus

LOOK_SECONDS = 600
RECENT = timedelta(hours=1)
"""What was decided or submitted before is settled; what a site missed while it was away, daily."""


def renew_campaigns() -> int:
    """Free places whose time is over, note what became due, pay; returns how many rows ended.

    Only of campaigns in which something may have happened: the others cost no query. Every ten
    minutes it pauses whom the evidence proposes, where owners switched that on. Of what fails in
    some campaigns it raises the last, once all were renewed.
    """
    ended = _each(_moved(), _renew)
    if cache.add("campaigns:looked", True, LOOK_SECONDS):
        looks = Campaign.objects.filter(pauses_itself=True, all_places__state__in=GOING)
        ended += _each(looks.distinct(), lambda one: pause_by_rule(campaign=one))
    return ended + warn_of_approvals()


def settle_all() -> int:
    """Note what became due in any campaign that ever was open."""
    paying = Q(pay_accepted__gt=0) | Q(pay_bonus__gt=0)
    return _each(
        Campaign.objects.exclude(opened_at=None).filter(paying), lambda one: settle(campaign=one)
    )


def _moved() -> QuerySet[Campaign]:
    since = timezone.now() - RECENT
    decided = Consensus.objects.filter(decided_at__gte=since, is_verified=True)
    waits = (Payment.State.PLANNED, Payment.State.PREPARED, Payment.State.SENT)
    places = Place.objects.filter(
        Q(state__in=GOING, expires_at__lte=timezone.now())
        | Q(submitted_at__gte=since)
        | Q(annotator__in=decided.values("example__annotator"))
        | Q(payments__state__in=waits)
    )
    found = Q(pk__in=places.values("campaign")) | Q(state=Campaign.State.FULL)
    return Campaign.objects.exclude(opened_at=None).filter(found)


def _renew(campaign: Campaign) -> int:
    free_places(campaign=campaign)
    return settle(campaign=campaign) + send_payments(campaign=campaign)


def _each(campaigns: Iterable[Campaign], renew: Callable[[Campaign], int]) -> int:
    """What one panel answers keeps nobody else from their pay."""
    failed: Exception | None = None
    ended = 0
    for campaign in campaigns:
        try:
            ended += renew(campaign)
        except Exception as error:
            failed = error
    if failed:
        raise failed
    return ended
