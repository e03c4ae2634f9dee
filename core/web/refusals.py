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
    """A page that does not open, and another page on which its reader can change that.

    page: the address of the other one. link: what the link to it says.
    """

    def __init__(self, message: str, *, page: str, link: str) -> None:
        super().__init__(message)
        self.page, self.link = page, link


@contextmanager
def as_form_error(form: BaseForm, *also: type[Exception], field: str = "") -> Iterator[None]:
    """Add a refusal to the form, at `field` or at the field that it names if the form has it.

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
    """End a command with a refusal's message; decorates `handle`, too."""
    refusals: tuple[type[Exception], ...] = (Refused, *also)
    try:
        yield
    except refusals as error:
        raise CommandError(str(error)) from None
