"""The language of a person: of the pages that they chose, and of the mails that they get."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.utils.translation import get_language, override

from core.accounts.models import User

Letter = Callable[[], tuple[str, str]]
"""Writes subject and text of a mail in the language that is active while it runs."""


def language_of(user: User) -> str:
    """Return the language that the person chose, else the site's."""
    offered = {code for code, _name in settings.LANGUAGES}
    return user.language if user.language in offered else settings.LANGUAGE_CODE


@contextmanager
def in_language_of(user: User) -> Iterator[None]:
    """Activate the person's language within the context."""
    with override(language_of(user)):
        yield


def write_in_language_of(user: User, write: Letter) -> tuple[str, str]:
    """Return the subject and text of a mail in the person's language."""
    with in_language_of(user):
        subject, text = write()
        # Lazy translations must not outlive the context.
        return str(subject), str(text)


def active_language() -> str:
    """Return the language of the current request, in the form stored for a person."""
    return get_language() or settings.LANGUAGE_CODE
