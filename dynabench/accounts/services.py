"""Writes about people."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from dynabench.accounts.models import Annotator, LogEntry, User


def annotator_of(user: User) -> Annotator:
    """The annotator of a signed-in user, made at the first need; no lock, a unique constraint."""
    try:
        return user.annotator  # type: ignore[no-any-return]
    except Annotator.DoesNotExist:
        pass
    for _ in range(5):  # a pseudonym may be taken, or another request was first
        try:
            with transaction.atomic():
                return Annotator.objects.get_or_create(user=user)[0]
        except IntegrityError:
            continue
    raise RuntimeError("No free pseudonym was found in five tries.")


def set_keyboard_mode(*, annotator: Annotator, on: bool) -> None:
    """Switch single-key shortcuts on or off for one annotator."""
    annotator.keyboard_mode = on
    annotator.save(update_fields=["keyboard_mode"])


def log(actor: User | AnonymousUser | None, action: str, target: object, **data: Any) -> LogEntry:
    """Note that somebody did something; call it inside the transaction of the deed."""
    user = actor if isinstance(actor, User) else None
    return LogEntry.objects.create(actor=user, action=action, target=str(target), data=data)
