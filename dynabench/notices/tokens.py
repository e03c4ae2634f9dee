"""The email about API tokens that expire soon, so that no program stops unexpectedly."""

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.accounts.models import ApiToken
from core.accounts.tokens import claim_reminder, select_expiring_tokens
from core.periodic import register_daily
from tasks.mails import mail_person


@register_daily(
    counts="people reminded of tokens", why="Programs stop working when a token expires."
)
def remind_of_tokens() -> int:
    """Email each person once about each token that expires within two weeks.

    Return how many emails were sent.
    """
    return sum(_send_reminder(token) for token in select_expiring_tokens())


@transaction.atomic
def _send_reminder(token: ApiToken) -> bool:
    """Email the owner of a token unless that was done before; return whether an email was sent."""
    # One conditional update, which succeeds in one of several workers.
    if not claim_reminder(token):
        return False

    def write_mail() -> tuple[str, str]:
        # By its name: the token itself is stored nowhere.
        values = {"token": str(token), "day": date_format(token.expires_at, "j F Y")}
        lines = [
            _(
                "Your API token %(token)s expires on %(day)s. After that, programs that use it "
                "stop working."
            )
            % values,
            _("Create a new token and revoke this one here:"),
            settings.SITE_URL + reverse("tokens"),
        ]
        return _("Your API token %(token)s expires soon") % values, "\n\n".join(lines) + "\n"

    mail_person(token.user, write_mail)
    return True
