"""Turn a refusal into a form error, a message on the next page or the last line of a command.

The API needs none of these: `core.web.api.answer_error` answers every refusal.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.management.base import CommandError
from django.forms import BaseForm
from django.http import HttpRequest

from core.errors import Refused


class Curable(PermissionDenied):
    """Raised for a page that the reader cannot open but can unlock on another page.

    page: the URL of the other page. link: the link's text.
    """

    def __init__(self, message: str, *, page: str, link: str) -> None:
        super().__init__(message)
        self.page, self.link = page, link


@contextmanager
def as_form_error(form: BaseForm, *also: type[Exception], field: str = "") -> Iterator[None]:
    """Add a refusal to the form, at `field` or at the refusal's own field if the form has it.

    also: further exceptions whose message is for people.
    """
    refusals: tuple[type[Exception], ...] = (Refused, *also)
    try:
        yield
    except refusals as error:
        at = field or getattr(error, "field", "")
        form.add_error(at if at in form.fields else None, str(error))


@contextmanager
def as_message(request: HttpRequest, *also: type[Exception]) -> Iterator[None]:
    """Show a refusal on the next page."""
    refusals: tuple[type[Exception], ...] = (Refused, *also)
    try:
        yield
    except refusals as error:
        messages.error(request, str(error))


@contextmanager
def as_command_error(*also: type[Exception]) -> Iterator[None]:
    """Convert a refusal to a CommandError. It can also decorate `handle`."""
    refusals: tuple[type[Exception], ...] = (Refused, *also)
    try:
        yield
    except refusals as error:
        raise CommandError(str(error)) from None
