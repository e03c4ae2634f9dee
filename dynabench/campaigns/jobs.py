"""What a site does for campaigns each minute."""

from django.core.cache import cache

from dynabench.campaigns.models import Campaign
from dynabench.campaigns.payment_services import send_payments
from dynabench.campaigns.place_services import free_places
from dynabench.campaigns.quality_services import pause_by_rule
from dynabench.campaigns.services import settle

LOOK_SECONDS = 600


def renew_campaigns() -> int:
    """Free places whose time is over, note what became due, pay; returns how many rows ended.

    Every ten minutes it pauses whom the evidence proposes, where owners switched that on.
    Of what fails in some campaigns it raises the last, once all were renewed.
    """
    failed: Exception | None = None
    ended, looks = 0, cache.add("campaigns:looked", True, LOOK_SECONDS)
    for campaign in Campaign.objects.exclude(opened_at=None).select_related("task"):
        try:
            free_places(campaign=campaign)
            ended += settle(campaign=campaign) + send_payments(campaign=campaign)
            if looks:
                ended += pause_by_rule(campaign=campaign)
        except Exception as error:  # what one panel answers keeps nobody else from their pay
            failed = error
    if failed:
        raise failed
    return ended
