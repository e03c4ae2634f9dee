"""The mail about API tokens that expire soon, before programs stop."""

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.accounts.models import ApiToken
from core.accounts.tokens import ending_tokens, note_reminded
from core.periodic import daily
from tasks.mails import mail_person


@daily(counts="people reminded of tokens", why="Programs fail when a token ends.")
def remind_of_tokens() -> int:
    """Email each person once about each token that expires within two weeks.

    Return how many emails were sent.
    """
    return sum(_send_reminder(token) for token in ending_tokens())


@transaction.atomic
def _send_reminder(token: ApiToken) -> bool:
    """Email the owner of a token unless already done; return whether an email was sent."""
    # One conditional update, which succeeds in one of several workers.
    if not note_reminded(token):
        return False

    def write() -> tuple[str, str]:
        # By its name: the token itself is stored nowhere.
        values = {"token": str(token), "day": date_format(token.expires_at, "j F Y")}
        lines = [
            _("Your token %(token)s ends on %(day)s. Programs that use it stop then.") % values,
            _("Make another one, and revoke this one, on your account page:"),
            settings.SITE_URL + reverse("tokens"),
        ]
        return _("Your token %(token)s ends soon") % values, "\n\n".join(lines) + "\n"

    mail_person(token.user, write)
    return True
