"""What allauth asks of us: a mail server that is down fails no request."""

import logging
from typing import Any, ClassVar
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.core import context, ratelimit
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from core.accounts.access_services import has_confirmed
from core.accounts.languages import active_language, language_of
from core.accounts.models import User
from core.accounts.places import leave_place
from core.accounts.reauthentication import did_recently, other_ways
from core.accounts.undo_services import offer_undo
from core.env import sends_mail
from core.mail.addresses import check_address
from core.web.kept_text import kept_text

logger = logging.getLogger(__name__)

MAIL = "account/email/"
INVITATION = "invitation"
"""The signed cookie with the key of the invitation by which somebody came to sign up."""
ONLY_BY_MAIL = {"password_reset_key", "unknown_account"}
"""The mail is all that was asked for; without it there is nothing to go on with."""
CONFIRMING = {"email_confirmation", "email_confirmation_signup", "account_already_exists"}
SAYS_IT_WAS_SENT = "account/messages/email_confirmation_sent.txt"


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]
    """allauth's adapter, with which a request succeeds even if a mail cannot be sent."""

    def new_user(self, request: HttpRequest) -> User:
        """Return a new account that is not stored yet, with the language of the page."""
        user: User = super().new_user(request)
        user.language = active_language()
        return user

    def clean_email(self, email: str) -> str:
        """Return the address in its stored form. Raises ValidationError.

        All of allauth's forms call this.
        """
        check_address(email)
        cleaned: str = super().clean_email(email)
        return cleaned

    def is_reauthentication_required(self, *, app: str, **named: Any) -> bool:
        """Return False if the person authenticated recently. Raises ReauthenticationRequired."""
        if did_recently(context.request):
            return False
        raise ReauthenticationRequired  # allauth would let pass who has no password

    def get_reauthentication_methods(self, user: User) -> list[dict[str, Any]]:
        """Return allauth's methods, or ours for accounts without password and passkey."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return methods or (other_ways(user) if user.is_authenticated else [])

    def can_delete_email(self, email_address: EmailAddress) -> bool:
        """Return allauth's answer.

        Also stores on the request whether the address was confirmed, for the mail about its
        deletion.
        """
        context.request.was_confirmed = email_address.verified
        return bool(super().can_delete_email(email_address))

    def send_notification_mail(
        self,
        template_prefix: str,
        user: User,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        """Mail the person about a change to how they sign in, with a link that undoes the change.

        A deleted address also gets the mail if it had been confirmed.
        """
        values = dict(context or {})
        removed_address = values.get("deleted_email", "")
        primary = email or EmailAddress.objects.get_primary_email(user)
        places = [primary] if primary and has_confirmed(user, primary) else []
        # An address that nobody confirmed may be a stranger's, who must not get such a link.
        if removed_address and getattr(self.request, "was_confirmed", False):
            places.append(removed_address)
        for place in places:
            key = offer_undo(user=user, address=place)
            link = f"{settings.SITE_URL}{reverse('undo', args=[key])}"
            super().send_notification_mail(template_prefix, user, {**values, "undo": link}, place)
        if primary and primary not in places:
            super().send_notification_mail(template_prefix, user, values, primary)

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return a link with the site's own host and port, which the request's may not be."""
        return _at_home(super().get_reset_password_from_key_url(key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        """Return a link with the site's own host and port, as for a password."""
        return _at_home(super().get_email_confirmation_url(request, emailconfirmation))

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return the URL after signing in: the person's invitation, their text's task, or home.

        The invitation is the one by which they came, even if they first confirmed an address by
        mail. The task is the one in which they wrote a text before they had an account.
        """
        if key := request.get_signed_cookie(INVITATION, default=""):
            return reverse("join", args=[key])
        if text := kept_text(request):
            return reverse("annotation:write", args=[text.task])
        return str(super().get_login_redirect_url(request))

    def get_email_verification_redirect_url(self, email_address: EmailAddress) -> str:
        """Return the page that asked for a confirmed address, else allauth's choice."""
        place = leave_place(self.request)
        return place or str(super().get_email_verification_redirect_url(email_address))

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        """Return the URL after signing in: signing up may have dropped the `next` parameter."""
        return self.get_login_redirect_url(request)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail, or tell the person that it could not be sent.

        If a notification cannot be sent, that is only logged.
        """
        try:
            is_closed = settings.PASSWORD_SIGN_IN == "administrators"  # noqa: S105
            provider = settings.OIDC_NAME if is_closed else ""
            site_values = {"site_url": settings.SITE_URL, "provider": provider}
            # Without an account of theirs, people get it in the language of the page.
            person = context.get("user")
            chosen = language_of(person) if person and person.language else active_language()
            with override(chosen):
                super().send_mail(template_prefix, email, {**site_values, **context})
        except OSError as error:  # smtplib's errors, too
            logger.error("The mail %s could not be sent: %s", template_prefix, error)
            self._not_sent(template_prefix.removeprefix(MAIL), email)
        else:
            self._only_logged(template_prefix.removeprefix(MAIL), email)

    def _only_logged(self, mail: str, email: str) -> None:
        request = context.request
        if sends_mail(settings.EMAIL_BACKEND) or mail not in ONLY_BY_MAIL | CONFIRMING:
            return
        # For `add_message`, which must not say afterwards that a mail was sent.
        request.is_mail_logged = True
        message = _(
            "This site sends no mails: it writes them to the log of its web server (./run keeps "
            "it in logs/web.log of its folder, which is var/ by default). Look there for the mail "
            "to %(email)s and its link."
        )
        messages.warning(request, message % {"email": email})

    def _not_sent(self, mail: str, email: str) -> None:
        request = context.request
        if mail in ONLY_BY_MAIL:
            response = render(request, "accounts/mail_down.html", status=503)
            response["Retry-After"] = "60"
            raise ImmediateHttpResponse(response)
        if mail in CONFIRMING:
            request.is_mail_down = True
            # No mail went out, so the pause before the next one would be for nothing.
            ratelimit.clear(request, action="confirm_email", key=email.lower())
            message = _(
                "The mail to %(email)s could not be sent: our mail server does not answer. Ask for "
                "it again in a few minutes, under Account, E-mail addresses, or by signing in."
            )
            messages.error(request, message % {"email": email})

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        template: str | None = None,
        *more: Any,
        **named: Any,
    ) -> None:
        """Add allauth's message, unless it claims that a mail was sent when it was not."""
        is_sent = not (hasattr(request, "is_mail_down") or hasattr(request, "is_mail_logged"))
        if is_sent or template != SAYS_IT_WAS_SENT:
            super().add_message(request, level, template, *more, **named)

    def respond_email_verification_sent(
        self, request: HttpRequest, user: User | None
    ) -> HttpResponse:
        """Redirect to the page about the mail, or to the sign-in page if no mail was sent."""
        if hasattr(request, "is_mail_down"):
            return redirect("account_login")
        response: HttpResponse = super().respond_email_verification_sent(request, user)
        return response

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Return a cache key that counts wrong passwords by account and network address.

        Counted by account alone, anybody who knows an email address could lock its owner out.
        """
        key = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{key}:{self.get_client_ip(request)}"


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """allauth's adapter, whose message about an unconfirmed address says what to do."""

    error_messages: ClassVar = {
        **DefaultMFAAdapter.error_messages,
        "unverified_email": gettext_lazy(
            "Confirm your e-mail address first: under Account, E-mail addresses, choose “Send the "
            "link again” and follow the link in the mail."
        ),
    }


def _at_home(url: str) -> str:
    return f"{settings.SITE_URL}{urlsplit(url).path}"
