"""What a site does for campaigns each minute."""

from dynabench.campaigns.models import Campaign
from dynabench.campaigns.place_services import free_places
from dynabench.campaigns.services import settle


def renew_campaigns() -> int:
    """Free the places whose time is over, and note what became due; returns how many rows."""
    added = 0
    for campaign in Campaign.objects.exclude(opened_at=None).select_related("task"):
        free_places(campaign=campaign)
        added += settle(campaign=campaign)
    return added
