"""Mails to a task's members and to administrators about what waits for them."""

import logging
from collections.abc import Collection
from functools import partial

from django.core.mail import send_mail
from django.db import transaction

from dynabench.accounts.models import User
from tasks.models import Task

logger = logging.getLogger(__name__)


def mail_members(task: Task, roles: Collection[str], subject: str, text: str) -> None:
    """Mail each member of the task with one of the roles that counts, after the commit."""
    members = task.members.standing().filter(role__in=roles, user__is_active=True)
    for address in members.values_list("user__email", flat=True):
        transaction.on_commit(partial(_send, subject, text, address))


def mail_person(user: User, subject: str, text: str) -> None:
    """Mail a person, after the commit."""
    mail_address(user.email, subject, text)


def mail_administrators(subject: str, text: str) -> None:
    """Mail each administrator, after the commit."""
    for boss in User.objects.filter(is_superuser=True, is_active=True):
        mail_person(boss, subject, text)


def mail_address(address: str, subject: str, text: str) -> None:
    """Mail an address, after the commit."""
    transaction.on_commit(partial(_send, subject, text, address))


def _send(subject: str, text: str, address: str) -> None:
    try:
        send_mail(" ".join(subject.split()), text, None, [address])
    except Exception:  # mail servers fail in many ways; what the mail reports stands
        logger.exception("No mail could be sent to a person")
