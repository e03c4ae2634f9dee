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
    """Return the user's annotator, created when first needed.

    Takes no lock: a unique constraint lets only one request create it.
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


def set_keyboard_mode(*, annotator: Annotator, is_on: bool) -> None:
    """Switch single-key shortcuts on or off for an annotator."""
    annotator.keyboard_mode = is_on
    annotator.save(update_fields=["keyboard_mode"])


def set_in_ranking(*, annotator: Annotator, is_on: bool) -> None:
    """Show the annotator's pseudonym in rankings of people, or hide it. Takes no lock."""
    annotator.in_ranking = is_on
    annotator.save(update_fields=["in_ranking"])


def leave(*, user: User, is_repeated: bool = False) -> Annotator | None:
    """Delete a user with everything that names them; return the remaining annotator, if any.

    is_repeated: whether they had left before a backup restored them; then they are deleted in any
    case.

    Their work keeps an annotator with a new pseudonym, so that people who knew the old one cannot
    find it. Locks all administrators. A running request may still write for them; `purge_deleted`
    removes that. Raises LastAdministrator.
    """
    with transaction.atomic():
        if not is_repeated:
            keep_one(leaving_ids=[user.pk])
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
    """Remove the person's current and former addresses from log entries about them."""
    about = LogEntry.objects.filter(data__person=user.pk)
    found = {user.email, *EmailAddress.objects.filter(user=user).values_list("email", flat=True)}
    addresses = found | {entry.data["user"] for entry in about}
    pattern = re.compile("|".join(map(re.escape, addresses)), re.IGNORECASE)
    log_filter = Q(data__person=user.pk)
    admin_log_filter = Q(object_id=str(user.pk), content_type__model="user")
    # By text as well: an entry may name the address without the person's id.
    for address in addresses:
        log_filter |= Q(data__user__iexact=address) | Q(target__icontains=address)
        admin_log_filter |= Q(object_repr__icontains=address) | Q(change_message__icontains=address)
    for entry in LogEntry.objects.filter(log_filter):
        entry.target = pattern.sub(GONE, entry.target)
        if pattern.fullmatch(entry.data.get("user") or ""):
            entry.data["user"] = GONE
        entry.data.pop("person", None)
        entry.save(update_fields=["target", "data"])
    account = ContentType.objects.get_for_model(User)
    for admin_entry in AdminLogEntry.objects.filter(admin_log_filter).select_related(
        "content_type"
    ):
        is_account = admin_entry.object_id == str(user.pk) and admin_entry.content_type == account
        admin_entry.object_repr = GONE if is_account else pattern.sub(GONE, admin_entry.object_repr)
        admin_entry.change_message = pattern.sub(GONE, admin_entry.change_message)
        admin_entry.save(update_fields=["object_repr", "change_message"])


def set_language(*, user: User, language: str) -> None:
    """Store the language for mails to a person. Idempotent; takes no lock."""
    User.objects.filter(pk=user.pk).update(language=language)


def log(
    actor: Actor,
    action: str,
    target: object,
    *,
    about: object | None = None,
    **data: Any,
) -> LogEntry:
    """Add an entry to the audit log. Call it in the transaction that makes the change.

    about: an object of the task whose members may read the entry, if `target` is not one.
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
    """Return the code of the task that an object belongs to, or ""."""
    for path in TASK_PATHS:
        related_object: Any = target
        for name in path.split("."):
            related_object = getattr(related_object, name, None)
        if isinstance(related_object, str):
            return related_object
    return ""
