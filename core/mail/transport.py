"""Mail by any backend, for which only some threads of a web process wait at once."""

import logging
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.module_loading import import_string

from core.outside import Hanging, Places

_places = Places()
logger = logging.getLogger("dynabench.mails")


class LimitedBackend(BaseEmailBackend):
    """A wrapper of the operator's mail backend that treats a hanging server as unavailable."""

    def __init__(self, fail_silently: bool = False, **options: Any) -> None:
        super().__init__(fail_silently=fail_silently)
        transport = import_string(settings.MAIL_TRANSPORT)
        self.transport: BaseEmailBackend = transport(fail_silently=fail_silently, **options)

    def open(self) -> bool | None:
        """Connect as the wrapped backend does."""
        return self.transport.open()

    def close(self) -> None:
        """Disconnect as the wrapped backend does."""
        self.transport.close()

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send messages and return how many were sent. Raises OSError, as backends do."""
        try:
            with _places.take():
                return self.transport.send_messages(email_messages) or 0
        except Hanging:
            raise TimeoutError("The mail server does not answer others that wait for it.") from None


class LoggedBackend(BaseEmailBackend):
    """A mail backend that logs each mail as one record, for logs with one object per line."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Log messages and return how many."""
        for message in email_messages:
            logger.info("%s", message.message().as_string())
        return len(email_messages)
