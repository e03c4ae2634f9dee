"""Undoing a change of how somebody signs in, by a link that the former address gets.

Whoever has somebody's session, and even the password, may change the address and so take the
account for good. The link gives it back for seven days.
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

from core.accounts.access_services import end_access, has_confirmed
from core.accounts.models import Undo, User
from core.accounts.services import leave, log
from core.accounts.tokens import digest_of
from core.errors import Refused

KEPT = timedelta(days=7)
JUST_BEFORE = timedelta(minutes=1)
"""Between a change and the row about it."""
SIGNER = Signer(salt="dynabench.accounts.undo_services")


def offer_undo(*, user: User, address: str) -> str:
    """Create an undo link for a current or just removed address; return its key. Takes no lock."""
    key = secrets.token_urlsafe(32)
    Undo.objects.create(user=user, digest=digest_of(key), address=address)
    return SIGNER.sign(key)


def find_undo(key: str) -> Undo | None:
    """Return the row for a link; None if it was used, has expired or never existed."""
    try:
        digest = digest_of(SIGNER.unsign(key))
    except BadSignature:
        return None
    return _live().select_related("user").filter(digest=digest).first()


def _live() -> QuerySet[Undo]:
    return Undo.objects.filter(made_at__gt=timezone.now() - KEPT)


def over() -> QuerySet[Undo]:
    """Return the rows whose links have expired."""
    return Undo.objects.filter(made_at__lte=timezone.now() - KEPT)


@transaction.atomic
def restore_account(*, undo: Undo) -> User:
    """Return the account, given back to whoever reads mail at the link's address.

    That address becomes the only one, confirmed. Sessions, tokens, the password and sign-in
    methods added since the change (passkeys, apps, a provider) end. This link and later ones end,
    too, because whoever made the change may have them; an earlier link keeps working, because it
    restores an earlier state.

    Locks the account. Raises Refused.
    """
    locked = User.objects.select_for_update(of=("self",), no_key=True)
    user = locked.filter(pk=undo.user_id).first()
    if user is None or not _live().filter(pk=undo.pk).exists():
        raise Refused(_("This link was used already, or is too old."), code="gone")
    # First: two accounts cannot have one address, and it may refuse.
    _free(undo.address, user)
    EmailAddress.objects.filter(user=user).exclude(email__iexact=undo.address).delete()
    EmailAddress.objects.update_or_create(
        user=user, email=undo.address.lower(), defaults={"verified": True, "primary": True}
    )
    # Of several changes in a row the first one counts, whichever link somebody follows.
    changes = _live().filter(user=user, address__iexact=undo.address)
    since = changes.earliest("made_at").made_at - JUST_BEFORE
    Authenticator.objects.filter(user=user, created_at__gte=since).delete()
    SocialAccount.objects.filter(user=user, date_joined__gte=since).delete()
    user.email = undo.address.lower()
    user.set_unusable_password()
    user.save(update_fields=["email", "password"])
    # Explicitly: `User.save` keeps the tokens when a password becomes unusable.
    end_access(user=user, actor=None)
    Undo.objects.filter(user=user, pk__gte=undo.pk).delete()
    log(None, "person.restored", user.email, user=user.email, person=user.pk)
    return user


def _free(address: str, user: User) -> None:
    """Remove the address from accounts that never confirmed it. Raises Refused."""
    theirs = Q(email__iexact=address) | Q(emailaddress__email__iexact=address)
    for other_user in User.objects.filter(theirs).exclude(pk=user.pk).distinct():
        if has_confirmed(other_user, address):
            raise Refused(_("Another account has confirmed this address since."), code="taken")
        EmailAddress.objects.filter(user=other_user, email__iexact=address).delete()
        if other_user.email.lower() == address.lower():
            leave(user=other_user)
