"""Test a new or changed model on a page, and show the person the result."""

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from core.accounts.people import get_person
from tasks.models import Generator, TargetModel
from tasks.targets.contact_services import Contact
from tasks.targets.first_contact import try_generator, try_target


def show_contact(request: HttpRequest, row: TargetModel | Generator) -> None:
    """Send a test request to a model that is new or was changed, and show the person the result.

    Call it outside transactions.
    """
    if row.contact_at is not None:
        return
    actor = get_person(request)
    if isinstance(row, TargetModel):
        contact = try_target(row, actor)
    else:
        contact = try_generator(row, actor)
    show_test_result(request, row.name, contact)


def show_test_result(request: HttpRequest, name: str, contact: Contact | None) -> None:
    """Show the person a model's answer or failure. Show nothing if the model was not called."""
    if contact is None:
        return
    values = {"name": name, "words": contact.words}
    if contact.is_answer:
        # Translators: name: a model; words: its answer
        messages.info(request, _("%(name)s answered: %(words)s") % values)
    else:
        messages.warning(request, _("%(name)s didn't answer. %(words)s") % values)
