"""Deletes an account: what names the person is removed, and their work stays without a name.

The texts that the person wrote are erased by `dynabench/people/deletion/services.py`.
"""

import re

from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry as AdminLogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Q

from core.accounts.administrators import check_administrator_remains
from core.accounts.erasure_log import get_erasure_name, record_erasure
from core.accounts.models import Annotator, Erasure, LogEntry, User, new_pseudonym
from core.accounts.services import log

DELETED_NAME = "somebody who left"


def delete_user(*, user: User, is_repeated: bool = False) -> Annotator | None:
    """Delete a user and everything that names them; return their anonymous annotator, if any.

    is_repeated: whether the user had already left before a backup restored them. They are then
    deleted even if they are the last administrator.

    Their work keeps an annotator with a new pseudonym, so that people who knew the old one cannot
    find it. Locks all administrators. A running request may still write rows for them, which
    `purge_deleted` removes. Raises LastAdministrator.
    """
    with transaction.atomic():
        if not is_repeated:
            check_administrator_remains(leaving_ids=[user.pk])
        annotator = Annotator.objects.filter(user=user).first()
        # Before the user goes: these rows name the sessions, which would live on.
        for session in UserSession.objects.filter(user=user):
            session.end()
        # Both read what goes with the user: the addresses, and the id.
        _remove_addresses_from_logs(user)
        record_erasure(Erasure.Kind.PERSON, get_erasure_name(user))
        user.delete()
        if annotator:
            # The row stays, as texts and votes refer to it, under a pseudonym that nobody has seen.
            annotator.user = None
            annotator.pseudonym, annotator.in_ranking = new_pseudonym(), False
            annotator.save(update_fields=["user", "pseudonym", "in_ranking"])
        log(None, "person.left", annotator or "a user without an annotator")
    return annotator


def _remove_addresses_from_logs(user: User) -> None:
    """Remove the person's current and former addresses from the audit log and the admin's log.

    The audit log loses the person's id, too.
    """
    entries_about_user = LogEntry.objects.filter(data__person=user.pk)
    current_addresses = {
        user.email,
        *EmailAddress.objects.filter(user=user).values_list("email", flat=True),
    }
    addresses = current_addresses | {entry.data["user"] for entry in entries_about_user}
    pattern = re.compile("|".join(map(re.escape, addresses)), re.IGNORECASE)
    log_filter = Q(data__person=user.pk)
    admin_log_filter = Q(object_id=str(user.pk), content_type__model="user")
    # By text as well: an entry may name the address without the person's id.
    for address in addresses:
        log_filter |= Q(data__user__iexact=address) | Q(target__icontains=address)
        admin_log_filter |= Q(object_repr__icontains=address) | Q(change_message__icontains=address)
    for entry in LogEntry.objects.filter(log_filter):
        entry.target = pattern.sub(DELETED_NAME, entry.target)
        if pattern.fullmatch(entry.data.get("user") or ""):
            entry.data["user"] = DELETED_NAME
        entry.data.pop("person", None)
        entry.save(update_fields=["target", "data"])
    user_content_type = ContentType.objects.get_for_model(User)
    for admin_entry in AdminLogEntry.objects.filter(admin_log_filter).select_related(
        "content_type"
    ):
        is_account = (
            admin_entry.object_id == str(user.pk) and admin_entry.content_type == user_content_type
        )
        admin_entry.object_repr = (
            DELETED_NAME if is_account else pattern.sub(DELETED_NAME, admin_entry.object_repr)
        )
        admin_entry.change_message = pattern.sub(DELETED_NAME, admin_entry.change_message)
        admin_entry.save(update_fields=["object_repr", "change_message"])
