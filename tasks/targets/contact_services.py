"""Store the results of test requests with the model, for the people who can fix it."""

import json
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from tasks.models import Generator, TargetModel
from tasks.targets.circuit_breaker.breaker import COUNTED_REASONS
from tasks.targets.endpoints.base import Prediction, Reason
from tasks.targets.endpoints.server_words import clean_message

MAX_DETAIL_CHARS = 500
UNKNOWN_CONTACT = {"contact_at": None, "contact_reason": "", "contact_detail": ""}
"""The columns of a model that was not called since its settings changed."""


class Contact(NamedTuple):
    """The result of a test request.

    reason: "" after an answer, otherwise the kind of failure. words: the answer, or the message of
    the failure.
    """

    reason: Reason | str
    words: str

    @property
    def is_answer(self) -> bool:
        """Return whether there was an answer."""
        return not self.reason


def build_contact(answer: Prediction) -> Contact:
    """Return the contact for an answer, without anything that looks like a key."""
    return Contact("", clean_message(json.dumps(dict(answer.output), ensure_ascii=False)))


def note_contact(row: TargetModel | Generator, contact: Contact) -> None:
    """Store a contact, unless the model's URL has changed since. One update, no lock."""
    columns = {
        "contact_at": timezone.now(),
        "contact_reason": contact.reason,
        "contact_detail": contact.words[:MAX_DETAIL_CHARS],
    }
    rows: QuerySet[TargetModel] | QuerySet[Generator] = type(row)._default_manager.all()
    # The condition is part of the update: an answer from an old address must not be shown for a
    # new one that an editor just saved.
    if rows.filter(pk=row.pk, adapter=row.adapter, url=row.url).update(**columns):
        for name, value in columns.items():
            setattr(row, name, value)


def note_lasting_contact(row: TargetModel | Generator, contact: Contact) -> None:
    """Store a contact with `note_contact`, unless it is a failure that concerns only this text."""
    if contact.is_answer or contact.reason in COUNTED_REASONS:
        note_contact(row, contact)
