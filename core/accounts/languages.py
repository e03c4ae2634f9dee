"""The language that a person chose for pages and mails."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.utils.translation import get_language, override

from core.accounts.models import User

WriteMail = Callable[[], tuple[str, str]]
"""A function that returns the subject and text of a mail in the active language."""


def find_user_language(user: User) -> str:
    """Return the language that the person chose, or else the site's language."""
    language_codes = {code for code, _name in settings.LANGUAGES}
    return user.language if user.language in language_codes else settings.LANGUAGE_CODE


@contextmanager
def activate_user_language(user: User) -> Iterator[None]:
    """Activate the person's language within the context."""
    with override(find_user_language(user)):
        yield


def write_in_user_language(user: User, write: WriteMail) -> tuple[str, str]:
    """Return the subject and text of a mail in the person's language."""
    with activate_user_language(user):
        subject, text = write()
        # Lazy translations must not outlive the context.
        return str(subject), str(text)


def get_active_language() -> str:
    """Return the code of the current request's language, as stored in `User.language`."""
    # None where translations are switched off, as in commands.
    return get_language() or settings.LANGUAGE_CODE
