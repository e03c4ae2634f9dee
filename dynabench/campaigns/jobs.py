"""What a site does for campaigns each minute, and each day."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from django.core.cache import cache
from django.db.models import Q, QuerySet
from django.utils import timezone

from dynabench.campaigns.models import GOING, Campaign, Payment, Place
from dynabench.campaigns.payment_services import send_payments, warn_of_approvals
from dynabench.campaigns.place_services import free_places, note_ends_of_work
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
    steps = [partial(_renew, one) for one in _moved()]
    if cache.add("campaigns:looked", True, LOOK_SECONDS):
        looks = Campaign.objects.filter(pauses_itself=True, all_places__state__in=GOING)
        steps += [partial(pause_by_rule, campaign=one) for one in looks.distinct()]
    return _each([*steps, warn_of_approvals])


def settle_all() -> int:
    """Note what became due in any campaign that ever was open."""
    paying = Q(pay_accepted__gt=0) | Q(pay_bonus__gt=0)
    opened = Campaign.objects.exclude(opened_at=None).filter(paying)
    return _each(partial(settle, campaign=one) for one in opened)


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
    note_ends_of_work(campaign)
    free_places(campaign=campaign)
    return settle(campaign=campaign) + send_payments(campaign=campaign)


def _each(steps: Iterable[Callable[[], int]]) -> int:
    """What one panel answers keeps nobody else from their pay."""
    failed: Exception | None = None
    ended = 0
    for step in steps:
        try:
            ended += step()
        except Exception as error:
            failed = error
    if failed:
        raise failed
    return ended
