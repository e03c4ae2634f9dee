"""First contact at the doors of the site: asks, and shows the person what came back."""

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from core.accounts.people import person
from tasks.models import Generator, TargetModel
from tasks.targets.contact_services import Contact
from tasks.targets.first_contact import contact_generator, contact_target


def show_contact(request: HttpRequest, row: TargetModel | Generator) -> None:
    """Send a test request to a model that is new or was changed, and show the person the result.

    Call it outside transactions.
    """
    if row.contact_at is not None:
        return
    actor = person(request)
    if isinstance(row, TargetModel):
        contact = contact_target(row, actor)
    else:
        contact = contact_generator(row, actor)
    show_answer(request, row.name, contact)


def show_answer(request: HttpRequest, name: str, contact: Contact | None) -> None:
    """Show the person a model's answer or failure; nothing if the model was not asked."""
    if contact is None:
        return
    values = {"name": name, "words": contact.words}
    if contact.is_answer:
        # Translators: name: a model; words: its answer
        messages.info(request, _("%(name)s answered: %(words)s") % values)
    else:
        messages.warning(request, _("%(name)s did not answer. %(words)s") % values)
