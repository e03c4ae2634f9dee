"""Undo a change to how somebody signs in, by a link that is mailed to the former address.

Somebody who steals a session, and perhaps the password, could change the address and so take over
the account for good. The link restores the account for seven days.
"""

import secrets
from datetime import timedelta

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.access_services import end_access, is_address_confirmed
from core.accounts.deletion_services import delete_user
from core.accounts.models import Undo, User
from core.accounts.services import log
from core.accounts.tokens import hash_key
from core.errors import Refused

KEEP_TIME = timedelta(days=7)
RECENT_TIME = timedelta(minutes=1)
"""The maximum time between a change and the row of its undo link."""
SIGNER = Signer(salt="dynabench.accounts.undo_services")


def create_undo_link(*, user: User, address: str) -> str:
    """Create an undo link for a current or just removed address; return its key. Takes no lock."""
    key = secrets.token_urlsafe(32)
    Undo.objects.create(user=user, digest=hash_key(key), address=address)
    return SIGNER.sign(key)


def find_undo(key: str) -> Undo | None:
    """Return the row for a link; None if it was used, has expired or never existed."""
    try:
        digest = hash_key(SIGNER.unsign(key))
    except BadSignature:
        return None
    return _select_live_undos().select_related("user").filter(digest=digest).first()


def _select_live_undos() -> QuerySet[Undo]:
    return Undo.objects.filter(made_at__gt=timezone.now() - KEEP_TIME)


def select_expired_undos() -> QuerySet[Undo]:
    """Return the rows whose links have expired."""
    return Undo.objects.filter(made_at__lte=timezone.now() - KEEP_TIME)


@transaction.atomic
def restore_account(*, undo: Undo) -> User:
    """Return the account to the person who reads mail at the link's address; return the user.

    That address becomes the account's only one and counts as confirmed. All sessions and tokens
    end. The password and the sign-in methods added since the change (passkeys, apps, a provider)
    are removed. This link and later ones stop working, because the person who made the change may
    have them. An earlier link keeps working, because it restores an earlier state.

    Other accounts that have the address unconfirmed lose it. If it is their main address, they are
    deleted.

    Locks the account. Raises Refused if the link is used or expired, or if another account has
    confirmed the address.
    """
    locked_users = User.objects.select_for_update(of=("self",), no_key=True)
    user = locked_users.filter(pk=undo.user_id).first()
    if user is None or not _select_live_undos().filter(pk=undo.pk).exists():
        raise Refused(
            _(
                "This link has been used or has expired. If you can't sign in, contact the "
                "site's operator."
            ),
            code="gone",
        )
    # First: two accounts cannot have one address, and it may refuse.
    _free_address(undo.address, user)
    EmailAddress.objects.filter(user=user).exclude(email__iexact=undo.address).delete()
    EmailAddress.objects.update_or_create(
        user=user, email=undo.address.lower(), defaults={"verified": True, "primary": True}
    )
    # Of several changes in a row the first one counts, whichever link somebody follows.
    changes = _select_live_undos().filter(user=user, address__iexact=undo.address)
    since = changes.earliest("made_at").made_at - RECENT_TIME
    # Whoever took the account over may have added ways to sign in since then.
    Authenticator.objects.filter(user=user, created_at__gte=since).delete()
    SocialAccount.objects.filter(user=user, date_joined__gte=since).delete()
    user.email = undo.address.lower()
    # Whoever made the change may know the password.
    user.set_unusable_password()
    user.save(update_fields=["email", "password"])
    # Explicitly: `User.save` keeps the tokens when a password becomes unusable.
    end_access(user=user, actor=None)
    # Earlier links stay, because each of them restores an earlier state.
    Undo.objects.filter(user=user, pk__gte=undo.pk).delete()
    log(None, "person.restored", user.email, user=user.email, person=user.pk)
    return user


def _free_address(address: str, user: User) -> None:
    """Remove the address from other accounts, which are deleted if it is their main address.

    Raises Refused if another account has confirmed the address.
    """
    has_address = Q(email__iexact=address) | Q(emailaddress__email__iexact=address)
    for other_user in User.objects.filter(has_address).exclude(pk=user.pk).distinct():
        if is_address_confirmed(other_user, address):
            raise Refused(
                _(
                    "Another account has since confirmed this email address, so we can't restore "
                    "it. Contact the site's operator."
                ),
                code="taken",
            )
        EmailAddress.objects.filter(user=other_user, email__iexact=address).delete()
        if other_user.email.lower() == address.lower():
            delete_user(user=other_user)
