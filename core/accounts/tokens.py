"""Tokens of the API: made once, kept as digests, gone when they expire or are revoked."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.accounts.erasures import note_erasure
from core.accounts.models import TOKEN_WARNING, ApiToken, Erasure, User
from core.accounts.services import log
from core.errors import Refused
from core.text.taken_names import checked_name

LONGEST = 366
MOST = 50
EVERY = timedelta(minutes=1)  # between two notes of the last use


def digest_of(key: str) -> str:
    """Return the digest that is stored for a key."""
    return hashlib.sha256(key.encode()).hexdigest()


@transaction.atomic
def create_token(
    *, user: User, name: str, scopes: Sequence[str], days: int
) -> tuple[ApiToken, str]:
    """Create a token that expires after `days`; return it and its key.

    The key cannot be read again later. The form and the API's serializer have checked each value.
    Raises Refused. Locks the user, because of the limit on tokens.
    """
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
    name = checked_name(name)
    if not scopes:
        raise Refused(_("Choose at least one scope."), field="scopes", status=422)
    if ApiToken.objects.filter(user=user).count() >= MOST:
        words = ngettext(
            "You have %(most)d token. Revoke one first.",
            "You have %(most)d tokens. Revoke one first.",
            MOST,
        )
        raise Refused(words % {"most": MOST}, field="name", status=422)
    key = f"dyna_{secrets.token_urlsafe(32)}"
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=key[:12],
        digest=digest_of(key),
        # In one order and each once, whatever a client sent.
        scopes=[scope for scope in ApiToken.Scope if scope in scopes],
        expires_at=timezone.now() + timedelta(days=days),
    )
    log(user, "token.created", token.prefix, scopes=token.scopes)
    return token, key


@transaction.atomic
def revoke_token(*, token: ApiToken, actor: User | None) -> None:
    """Revoke a token at once. Takes no lock.

    actor: its owner, an administrator, or None for a command.
    """
    ApiToken.objects.filter(pk=token.pk).delete()
    note_erasure(Erasure.Kind.TOKEN, token.digest)
    theirs = {} if actor == token.user else {"user": token.user.email, "person": token.user_id}
    log(actor, "token.revoked", token.prefix, **theirs)


def ending_tokens() -> QuerySet[ApiToken]:
    """Return tokens that expire soon and whose owners have not been mailed.

    Short-lived tokens are excluded.
    """
    now = timezone.now()
    soon = ApiToken.objects.filter(expires_at__gt=now, expires_at__lte=now + TOKEN_WARNING)
    longer = soon.filter(expires_at__gt=F("created_at") + TOKEN_WARNING)
    return longer.filter(reminded_at=None, user__is_active=True).select_related("user")


def note_reminded(token: ApiToken) -> bool:
    """Record that the owner is reminded; return whether the caller should send the mail.

    Takes no lock: only one conditional update succeeds.
    """
    waiting = ApiToken.objects.filter(pk=token.pk, reminded_at=None)
    return bool(waiting.update(reminded_at=timezone.now()))


def find_token(key: str) -> ApiToken | None:
    """Return the token with this key, expired or not, or None. Records its use once a minute."""
    token = ApiToken.objects.select_related("user").filter(digest=digest_of(key)).first()
    now = timezone.now()
    if token and (token.last_used_at is None or token.last_used_at < now - EVERY):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token
