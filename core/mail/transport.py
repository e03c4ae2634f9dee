"""Send mail through any backend, while limiting how many threads wait for it at once."""

import logging
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.module_loading import import_string

from core.outside import ServiceHanging, ThreadSlots

_slots = ThreadSlots()
logger = logging.getLogger("dynabench.mails")


class LimitedBackend(BaseEmailBackend):
    """A wrapper of the operator's mail backend that limits how many threads wait for the server."""

    def __init__(self, fail_silently: bool = False, **options: Any) -> None:
        super().__init__(fail_silently=fail_silently)
        transport = import_string(settings.MAIL_TRANSPORT)
        self.transport: BaseEmailBackend = transport(fail_silently=fail_silently, **options)

    def open(self) -> bool | None:
        """Open the wrapped backend's connection; return whether that opened a new one.

        Returns None if the backend returns nothing.
        """
        return self.transport.open()

    def close(self) -> None:
        """Close the wrapped backend's connection."""
        self.transport.close()

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send messages; return how many were sent.

        Raises the wrapped backend's OSError if the server fails, and TimeoutError if too many
        threads are waiting for it.
        """
        try:
            with _slots.take_slot():
                return self.transport.send_messages(email_messages) or 0
        except ServiceHanging:
            raise TimeoutError("The mail server does not answer others that wait for it.") from None


class LoggedBackend(BaseEmailBackend):
    """A mail backend that logs each mail as one record, for logs with one object per line."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Log messages instead of sending them; return how many."""
        for message in email_messages:
            logger.info("%s", message.message().as_string())
        return len(email_messages)
