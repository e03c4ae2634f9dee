"""Create, find and revoke API tokens. Only digests of their keys are stored."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.accounts.erasure_log import record_erasure
from core.accounts.models import TOKEN_WARNING_TIME, ApiToken, Erasure, User
from core.accounts.services import log
from core.errors import Refused
from core.text.taken_names import check_name

MAX_TOKEN_DAYS = 366
MAX_TOKENS = 50
NOTE_INTERVAL = timedelta(minutes=1)  # between two notes of the last use


def hash_key(key: str) -> str:
    """Return the digest that is stored for a key."""
    # A fast hash suffices: keys are 256 random bits, which nobody can guess as they can a password.
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
    name = check_name(name)
    if not scopes:
        raise Refused(_("Choose at least one permission."), field="scopes", status=422)
    if ApiToken.objects.filter(user=user).count() >= MAX_TOKENS:
        message = ngettext(
            "You already have %(most)d token. Revoke it first.",
            "You already have %(most)d tokens. Revoke one first.",
            MAX_TOKENS,
        )
        raise Refused(message % {"most": MAX_TOKENS}, field="name", status=422)
    key = f"dyna_{secrets.token_urlsafe(32)}"
    token = ApiToken.objects.create(
        user=user,
        name=name,
        # All that lists can show of it, because only a digest of the key is stored.
        prefix=key[:12],
        digest=hash_key(key),
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
    record_erasure(Erasure.Kind.TOKEN, token.digest)
    # Only an entry about somebody else's token has to name its owner.
    owner_values = (
        {} if actor == token.user else {"user": token.user.email, "person": token.user_id}
    )
    log(actor, "token.revoked", token.prefix, **owner_values)


def select_expiring_tokens() -> QuerySet[ApiToken]:
    """Return tokens that expire soon and whose owners have not been mailed about it.

    Short-lived tokens and those of suspended people are excluded.
    """
    now = timezone.now()
    expiring_tokens = ApiToken.objects.filter(
        expires_at__gt=now, expires_at__lte=now + TOKEN_WARNING_TIME
    )
    # By its whole life: a token for a few days would be mailed about as soon as it is made.
    long_lived_tokens = expiring_tokens.filter(expires_at__gt=F("created_at") + TOKEN_WARNING_TIME)
    return long_lived_tokens.filter(reminded_at=None, user__is_active=True).select_related("user")


def claim_reminder(token: ApiToken) -> bool:
    """Record that the owner is reminded; return whether the caller should send the mail.

    Takes no lock: only one conditional update succeeds.
    """
    tokens_to_remind = ApiToken.objects.filter(pk=token.pk, reminded_at=None)
    return bool(tokens_to_remind.update(reminded_at=timezone.now()))


def find_token(key: str) -> ApiToken | None:
    """Return the token with this key, expired or not, or None.

    Records the time of use, at most once a minute.
    """
    token = ApiToken.objects.select_related("user").filter(digest=hash_key(key)).first()
    now = timezone.now()
    if token and (token.last_used_at is None or token.last_used_at < now - NOTE_INTERVAL):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token
