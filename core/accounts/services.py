"""Writes about people."""

import re
from typing import Any

from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry as AdminLogEntry
from django.contrib.auth.models import AnonymousUser
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, transaction
from django.db.models import Q

from core.accounts.administrators import keep_one
from core.accounts.erasures import name_of, note_erasure
from core.accounts.models import Annotator, Erasure, LogEntry, User, new_pseudonym

GONE = "somebody who left"
Actor = User | AnonymousUser | None


def annotator_of(user: User) -> Annotator:
    """Return the annotator of a signed-in user, created when first needed.

    No lock, a unique constraint.
    """
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


def set_in_ranking(*, annotator: Annotator, on: bool) -> None:
    """Let the annotator appear in people rankings, by pseudonym, or no longer; no lock."""
    annotator.in_ranking = on
    annotator.save(update_fields=["in_ranking"])


def leave(*, user: User, is_repeated: bool = False) -> Annotator | None:
    """Delete a user with everything that names them; returns the annotator that is left, if any.

    is_repeated: they had left before a backup brought them back, so they go in any case.

    What they made keeps an annotator under a new pseudonym, so that nobody who knew the old one
    finds it. Locks all administrators. A request that has begun may still write, and
    `purge_deleted` finds it. Raises LastAdministrator.
    """
    with transaction.atomic():
        if not is_repeated:
            keep_one(without=[user.pk])
        annotator = Annotator.objects.filter(user=user).first()
        # Before the user goes: these rows name the sessions, which would live on.
        for session in UserSession.objects.filter(user=user):
            session.end()
        # Both read what goes with the user: the addresses, and the id.
        _forget_name(user)
        note_erasure(Erasure.Kind.PERSON, name_of(user))
        user.delete()
        if annotator:
            annotator.user = None
            annotator.pseudonym, annotator.in_ranking = new_pseudonym(), False
            annotator.save(update_fields=["user", "pseudonym", "in_ranking"])
        log(None, "person.left", annotator or "a user without an annotator")
    return annotator


def _forget_name(user: User) -> None:
    """Take the person's e-mail addresses, former ones too, out of what others did to them."""
    about = LogEntry.objects.filter(data__person=user.pk)
    found = {user.email, *EmailAddress.objects.filter(user=user).values_list("email", flat=True)}
    addresses = found | {entry.data["user"] for entry in about}
    pattern = re.compile("|".join(map(re.escape, addresses)), re.IGNORECASE)
    named = Q(data__person=user.pk)
    written = Q(object_id=str(user.pk), content_type__model="user")
    # By text as well: an entry may name the address without the person's id.
    for address in addresses:
        named |= Q(data__user__iexact=address) | Q(target__icontains=address)
        written |= Q(object_repr__icontains=address) | Q(change_message__icontains=address)
    for entry in LogEntry.objects.filter(named):
        entry.target = pattern.sub(GONE, entry.target)
        if pattern.fullmatch(entry.data.get("user") or ""):
            entry.data["user"] = GONE
        entry.data.pop("person", None)
        entry.save(update_fields=["target", "data"])
    account = ContentType.objects.get_for_model(User)
    for one in AdminLogEntry.objects.filter(written).select_related("content_type"):
        is_account = one.object_id == str(user.pk) and one.content_type == account
        one.object_repr = GONE if is_account else pattern.sub(GONE, one.object_repr)
        one.change_message = pattern.sub(GONE, one.change_message)
        one.save(update_fields=["object_repr", "change_message"])


def set_language(*, user: User, language: str) -> None:
    """Store the language of the mails to a person; repeating it changes nothing, no lock."""
    User.objects.filter(pk=user.pk).update(language=language)


def log(
    actor: Actor,
    action: str,
    target: object,
    *,
    about: object | None = None,
    **data: Any,
) -> LogEntry:
    """Note that somebody did something; call it inside the same transaction.

    about: what belongs to the task whose members read it, where the target does not.
    """
    user = actor if isinstance(actor, User) else None
    return LogEntry.objects.create(
        actor=user, action=action, target=str(target), task=_task_code(about or target), data=data
    )


TASK_PATHS = (
    "code",
    "task.code",
    "round.task.code",
    "context.round.task.code",
    "evaluation_set.task.code",
    "version.evaluation_set.task.code",
    "board.task.code",
    "example.round.task.code",
)


def _task_code(target: object) -> str:
    """Return the code of the task that an object belongs to; empty where it belongs to none."""
    for path in TASK_PATHS:
        related: Any = target
        for name in path.split("."):
            related = getattr(related, name, None)
        if isinstance(related, str):
            return related
    return ""
