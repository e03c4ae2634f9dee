"""Mail by SMTP, for which only some threads of a web process wait at once."""

from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

from dynabench.lib.outside import Hanging, Places

_places = Places()


class LimitedBackend(EmailBackend):
    """Django's, which tells a server that hangs as one that does not answer."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send them and return how many were sent. Raises OSError, as smtplib does."""
        try:
            with _places.take():
                return super().send_messages(email_messages) or 0
        except Hanging:
            raise TimeoutError("The mail server does not answer others that wait for it.") from None
