"""Invitations to a campaign: emailed links, signed for one person each, or by account.

Both expire after `VALID_DAYS`. Addresses are never stored: a link itself names its campaign.
"""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core import signing
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.ways.panels import Arrival
from tasks.mails import build_invitation_text, mail_invitation, normalise_addresses

LINK_SALT = "campaigns.invitation"
VALID_DAYS = 14


def mail_invitations(campaign: Campaign, addresses: Sequence[str]) -> None:
    """Email a personal link to each address that has not opted out of invitations."""
    for address in normalise_addresses(addresses):
        mail_invitation(address, partial(_write_invitation, campaign, create_link_key(campaign)))


def _write_invitation(campaign: Campaign, key: str) -> tuple[str, str]:
    """Return the subject and text of an invitation whose link contains the key."""
    words = {"name": campaign.name, "days": VALID_DAYS}
    url = settings.SITE_URL + reverse("campaigns:arrive", args=[campaign.slug])
    validity = _(
        "This link is only for you and works for %(days)d days. You don't need an account."
    )
    return build_invitation_text(
        campaign.name,
        opening_sentence=_("Invitation to the study “%(name)s”") % words,
        link=f"{url}?key={key}",
        validity_sentence=validity % words,
    )


def is_invited(campaign: Campaign, user: User | AnonymousUser) -> bool:
    """Return whether the account was invited within the last `VALID_DAYS` days."""
    since = timezone.now() - timedelta(days=VALID_DAYS)
    return campaign.invited.filter(user=user.pk, made_at__gt=since).exists()


def create_link_key(campaign: Campaign) -> str:
    """Return a signed key for a new invitation link."""
    return signing.dumps([campaign.pk, secrets.token_hex(8)], salt=LINK_SALT)


def read_link_key(campaign: Campaign, key: str) -> Arrival | None:
    """Return the arrival of the person whom the key invites; None if the key is invalid."""
    try:
        # The key holds a random person, no address: a link that is passed on brings one person.
        pk, person = signing.loads(key, salt=LINK_SALT, max_age=VALID_DAYS * 86400)
    except (signing.BadSignature, ValueError):
        return None
    return Arrival(person) if pk == campaign.pk else None
