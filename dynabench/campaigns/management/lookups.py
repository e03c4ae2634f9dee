"""Look up campaigns that a command's arguments name."""

from django.core.management.base import CommandError

from dynabench.campaigns.models import Campaign


def get_campaign(slug: str) -> Campaign:
    """Return the campaign with this slug, with its task. Raises CommandError."""
    campaign = Campaign.objects.select_related("task").filter(slug=slug).first()
    if campaign is None:
        raise CommandError(f"There is no campaign {slug!r}.")
    return campaign
