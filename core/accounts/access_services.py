"""Suspend people, change administrator rights, and end all access to an account."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db import transaction

from core.accounts.administrators import check_administrator_remains
from core.accounts.models import ApiToken, User
from core.accounts.services import log
from core.accounts.tokens import revoke_token


@transaction.atomic
def change_suspension(*, user: User, is_suspended: bool, actor: User | None) -> None:
    """Suspend a person, or lift the suspension.

    Suspending ends their sessions and revokes their tokens. Their work and roles are kept. The
    roles apply again once the suspension is lifted.

    actor: None for a management command. Locks all administrators. Raises LastAdministrator.
    """
    if is_suspended:
        # First, as it locks: of two administrators who suspend each other one stays.
        check_administrator_remains(leaving_ids=[user.pk])
        end_access(user=user, actor=actor)
    User.objects.filter(pk=user.pk).update(is_active=not is_suspended)
    action = "person.suspended" if is_suspended else "person.admitted"
    log(actor, action, user.email, user=user.email, person=user.pk)


@transaction.atomic
def change_administrator_rights(*, user: User, is_administrator: bool, actor: User | None) -> None:
    """Grant or revoke a person's administrator rights for the site.

    Locks all administrators. Raises LastAdministrator.
    """
    if not is_administrator:
        # First, under its locks: of the last two, both could otherwise leave at once.
        check_administrator_remains(leaving_ids=[user.pk])
    user.is_superuser = is_administrator
    user.save(update_fields=["is_superuser"])
    action = "person.administrator" if is_administrator else "person.no_administrator"
    log(actor, action, user.email, user=user.email, person=user.pk)


def is_address_confirmed(user: User, address: str) -> bool:
    """Return whether the person has confirmed on this site that the address is theirs."""
    confirmed_addresses = EmailAddress.objects.filter(
        user=user, email__iexact=address, verified=True
    )
    return bool(confirmed_addresses.exists())


@transaction.atomic
def secure_account(*, user: User) -> None:
    """End all access to an account that somebody else may have.

    Ends its sessions, revokes its tokens, and deletes its passkeys and second factors. The caller,
    allauth, removes the password.
    """
    end_access(user=user, actor=None)
    Authenticator.objects.filter(user=user).delete()
    log(None, "person.taken_over", user.email, user=user.email, person=user.pk)


@transaction.atomic
def end_access(*, user: User, actor: User | None) -> int:
    """End every session of a person and revoke their tokens; return the number of tokens.

    The person may sign in again.
    """
    for session in UserSession.objects.filter(user=user):
        session.end()
    tokens = list(ApiToken.objects.filter(user=user))
    # One by one: each is noted, so that a restored backup brings none of them back.
    for token in tokens:
        revoke_token(token=token, actor=actor)
    return len(tokens)
