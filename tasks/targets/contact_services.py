"""What came of asking a model whether it answers: stored with its row, for who can mend it."""

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
"""The columns of what was not asked since its settings changed."""


class Contact(NamedTuple):
    """The result of a test request. words: the answer, or the failure if `reason` is set."""

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
    """Store the contact, unless the model has another address by now. One update, no lock."""
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
    """Store a contact as `note_contact` does, except a failure that concerns only this text."""
    if contact.is_answer or contact.reason in COUNTED_REASONS:
        note_contact(row, contact)
