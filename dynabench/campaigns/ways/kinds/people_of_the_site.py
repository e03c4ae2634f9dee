"""Ways for people of this site: everybody with an account, or people whom the owner invites."""

from django.utils.translation import gettext_lazy as _

from dynabench.campaigns.ways.registry import Way


class SiteAccounts(Way, name="account"):
    """A way to recruit people with accounts on this site, who see the campaign in their news."""

    title = _("Accounts on this site")
    place = 4
    takes_accounts = True


class EmailInvitations(Way, name="invitation"):
    """A way to recruit people whom the owner invites by email or in their account's news."""

    title = _("Email invitations")
    place = 5
    invites = True
