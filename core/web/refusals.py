"""Show refusals as a form error, a message on the next page or the last line of a command.

The API does not need them, because `core.web.api.build_error_response` handles every refusal.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.management.base import CommandError
from django.forms import BaseForm
from django.http import HttpRequest

from core.errors import Refused


class CurableDenial(PermissionDenied):
    """Raised if the reader cannot open a page but can change that on another page.

    page: the URL of the other page. link: the link's text.
    """

    def __init__(self, message: str, *, page: str, link: str) -> None:
        super().__init__(message)
        self.page, self.link = page, link


@contextmanager
def show_as_form_error(
    form: BaseForm, *other_errors: type[Exception], field: str = ""
) -> Iterator[None]:
    """Within the context, add a refusal to the form instead of raising it.

    field: the field to add it to; by default the refusal's own field, if the form has it.
    other_errors: further exceptions whose messages are meant for people.
    """
    refusals: tuple[type[Exception], ...] = (Refused, *other_errors)
    try:
        yield
    except refusals as error:
        field_name = field or getattr(error, "field", "")
        form.add_error(field_name if field_name in form.fields else None, str(error))


@contextmanager
def show_as_message(request: HttpRequest, *other_errors: type[Exception]) -> Iterator[None]:
    """Within the context, show a refusal as a message on the next page instead of raising it.

    other_errors: further exceptions whose messages are meant for people.
    """
    refusals: tuple[type[Exception], ...] = (Refused, *other_errors)
    try:
        yield
    except refusals as error:
        messages.error(request, str(error))


@contextmanager
def raise_as_command_error(*other_errors: type[Exception]) -> Iterator[None]:
    """Within the context, raise a refusal as CommandError. Also usable as a decorator of `handle`.

    other_errors: further exceptions whose messages are meant for people.
    """
    refusals: tuple[type[Exception], ...] = (Refused, *other_errors)
    try:
        yield
    except refusals as error:
        raise CommandError(str(error)) from None
