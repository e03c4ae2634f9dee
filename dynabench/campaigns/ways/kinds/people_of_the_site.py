"""People of this site: everybody with an account, or those whom the owner invites."""

from django.utils.translation import gettext_lazy as _

from dynabench.campaigns.ways.registry import Way


class Account(Way, name="account"):
    """An account of this site; news tells people of the campaign."""

    title = _("accounts of this site")
    place = 4
    takes_accounts = True


class Invitation(Way, name="invitation"):
    """An invitation by mail, or in the news of an account."""

    title = _("invitations by mail")
    place = 5
    invites = True
