"""Operators end a person's access: at once, by whatever door they came."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db import transaction

from core.accounts.administrators import keep_one
from core.accounts.models import ApiToken, User
from core.accounts.services import log
from core.accounts.tokens import revoke_token


@transaction.atomic
def set_suspended(*, user: User, is_suspended: bool, actor: User | None) -> None:
    """Suspend a person, or lift the suspension.

    Suspending ends their sessions and tokens. Their work and roles are kept, and the roles apply
    again afterwards. actor: None for a command. Locks all administrators. Raises
    LastAdministrator.
    """
    if is_suspended:
        # First, as it locks: of two administrators who suspend each other one stays.
        keep_one(leaving_ids=[user.pk])
        end_access(user=user, actor=actor)
    User.objects.filter(pk=user.pk).update(is_active=not is_suspended)
    action = "person.suspended" if is_suspended else "person.admitted"
    log(actor, action, user.email, user=user.email, person=user.pk)


@transaction.atomic
def set_administrator(*, user: User, administers: bool, actor: User | None) -> None:
    """Grant or revoke a person's administrator rights for the site.

    Locks all administrators. Raises LastAdministrator.
    """
    if not administers:
        keep_one(leaving_ids=[user.pk])
    user.is_superuser = administers
    user.save(update_fields=["is_superuser"])
    action = "person.administrator" if administers else "person.no_administrator"
    log(actor, action, user.email, user=user.email, person=user.pk)


def has_confirmed(user: User, address: str) -> bool:
    """Return whether the person has confirmed on this site that the address is theirs."""
    confirmed = EmailAddress.objects.filter(user=user, email__iexact=address, verified=True)
    return bool(confirmed.exists())


@transaction.atomic
def take_over(*, user: User) -> None:
    """End every access that somebody else may have to an account.

    The password is ended by allauth, not here.
    """
    end_access(user=user, actor=None)
    Authenticator.objects.filter(user=user).delete()
    log(None, "person.taken_over", user.email, user=user.email, person=user.pk)


@transaction.atomic
def end_access(*, user: User, actor: User | None) -> int:
    """End every session and token of a person, who may sign in again; return how many tokens."""
    for session in UserSession.objects.filter(user=user):
        session.end()
    tokens = list(ApiToken.objects.filter(user=user))
    # One by one: each is noted, so that a restored backup brings none of them back.
    for token in tokens:
        revoke_token(token=token, actor=actor)
    return len(tokens)
