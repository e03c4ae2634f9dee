"""Our adapters for allauth: mails that survive a failing server, own URLs, stricter checks."""

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

from core.accounts.access_services import is_address_confirmed
from core.accounts.languages import find_user_language, get_active_language
from core.accounts.models import User
from core.accounts.reauthentication import has_authenticated_recently, list_other_methods
from core.accounts.return_page import pop_return_page
from core.accounts.undo_services import create_undo_link
from core.env import is_real_mail_backend
from core.mail.addresses import check_address
from core.web.guest_text import get_guest_text

logger = logging.getLogger(__name__)

MAIL_FOLDER = "account/email/"
INVITATION_KEY = "invitation"
"""The name of the signed cookie with the key of the invitation that led somebody to sign up."""
ESSENTIAL_MAILS = {"password_reset_key", "unknown_account"}
"""The allauth mails without which the person cannot continue, so that a failure is reported."""
CONFIRMATION_MAILS = {"email_confirmation", "email_confirmation_signup", "account_already_exists"}
SENT_MESSAGE_TEMPLATE = "account/messages/email_confirmation_sent.txt"


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]
    """An allauth adapter with URLs of our own and stricter checks.

    If a mail cannot be sent, the request fails only if the person cannot continue without the mail.
    """

    error_messages: ClassVar = {
        # Those of features that are switched off here keep allauth's words.
        **DefaultAccountAdapter.error_messages,
        "account_inactive": gettext_lazy("This account is closed."),
        "cannot_remove_primary_email": gettext_lazy(
            "Make another address primary before you remove this one."
        ),
        "duplicate_email": gettext_lazy("Your account already has this address."),
        "email_password_mismatch": gettext_lazy(
            "Check your email and password. They don't match an account."
        ),
        "email_taken": gettext_lazy("Another account already uses this address."),
        "enter_current_password": gettext_lazy("Enter your current password."),
        "incorrect_code": gettext_lazy("Check the code. It isn't correct."),
        "incorrect_password": gettext_lazy("Check your password. It isn't correct."),
        # Without the cause, which could tell strangers whether an account exists.
        "invalid_login": gettext_lazy("We couldn't sign you in. Try again."),
        "invalid_or_expired_key": gettext_lazy("This link has expired or is incomplete."),
        "invalid_password_reset": gettext_lazy("This link has expired or is incomplete."),
        "max_email_addresses": gettext_lazy("You can have at most %d email addresses."),
        "too_many_login_attempts": gettext_lazy(
            "Too many attempts. Wait a few minutes, then try again."
        ),
        "unknown_email": gettext_lazy("No account has this address."),
        "unverified_primary_email": gettext_lazy("Confirm your primary address first."),
        "rate_limited": gettext_lazy("Too many attempts. Wait a few minutes, then try again."),
    }
    """What forms say, in the site's words instead of allauth's."""

    def new_user(self, request: HttpRequest) -> User:
        """Return a new account that is not stored yet, with the language of the page."""
        user: User = super().new_user(request)
        user.language = get_active_language()
        return user

    def clean_email(self, email: str) -> str:
        """Return the address in its stored form. Raises ValidationError.

        All of allauth's forms call this.
        """
        check_address(email)
        cleaned_address: str = super().clean_email(email)
        return cleaned_address

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Return False if the person authenticated recently.

        Otherwise raises ReauthenticationRequired, also for a person without a password, whom
        allauth would exempt.
        """
        if has_authenticated_recently(context.request):
            return False
        raise ReauthenticationRequired  # allauth would let pass who has no password

    def get_reauthentication_methods(self, user: User) -> list[dict[str, Any]]:
        """Return allauth's methods, or ours for an account that has no password and no passkey."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return methods or (list_other_methods(user) if user.is_authenticated else [])

    def can_delete_email(self, email_address: EmailAddress) -> bool:
        """Return whether the address may be deleted, as allauth decides.

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
        """Mail the person about a change to how they sign in.

        If the primary address is confirmed, its mail has a link that undoes the change. A deleted
        address gets the same mail if it had been confirmed. An unconfirmed primary address gets the
        mail without a link.
        """
        values = dict(context or {})
        removed_address = values.get("deleted_email", "")
        primary_address = email or EmailAddress.objects.get_primary_email(user)
        recipients = (
            [primary_address]
            if primary_address and is_address_confirmed(user, primary_address)
            else []
        )
        # An address that nobody confirmed may be a stranger's, who must not get such a link.
        if removed_address and getattr(self.request, "was_confirmed", False):
            recipients.append(removed_address)
        for recipient in recipients:
            key = create_undo_link(user=user, address=recipient)
            link = f"{settings.SITE_URL}{reverse('undo', args=[key])}"
            super().send_notification_mail(
                template_prefix, user, {**values, "undo": link}, recipient
            )
        if primary_address and primary_address not in recipients:
            super().send_notification_mail(template_prefix, user, values, primary_address)

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return allauth's password link, but with the site's own host and port."""
        return _build_own_url(super().get_reset_password_from_key_url(key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        """Return allauth's confirmation link, but with the site's own host and port."""
        return _build_own_url(super().get_email_confirmation_url(request, emailconfirmation))

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return the URL after signing in: an invitation, a page for writing, or otherwise home.

        The invitation is the one that led the person to sign up, even if they first confirmed an
        address by mail. The page for writing belongs to the task in which they wrote a text before
        they had an account.
        """
        if key := request.get_signed_cookie(INVITATION_KEY, default=""):
            return reverse("join", args=[key])
        if text := get_guest_text(request):
            return reverse("annotation:write", args=[text.task])
        return str(super().get_login_redirect_url(request))

    def get_email_verification_redirect_url(self, email_address: EmailAddress) -> str:
        """Return the page that asked for a confirmed address, or otherwise allauth's URL."""
        return_page = pop_return_page(self.request)
        return return_page or str(super().get_email_verification_redirect_url(email_address))

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        """Return the same URL as after signing in, because signing up may have dropped `next`."""
        return self.get_login_redirect_url(request)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail in the person's language. If that fails, log the failure and tell the person.

        If they cannot continue without the mail, raises ImmediateHttpResponse with a page about the
        failure. The failure of a notification is only logged.
        """
        try:
            is_provider_required = settings.PASSWORD_SIGN_IN == "administrators"  # noqa: S105
            provider = settings.OIDC_NAME if is_provider_required else ""
            site_values = {"site_url": settings.SITE_URL, "provider": provider}
            # Without an account of theirs, people get it in the language of the page.
            person = context.get("user")
            language = (
                find_user_language(person) if person and person.language else get_active_language()
            )
            with override(language):
                super().send_mail(template_prefix, email, {**site_values, **context})
        except OSError as error:  # smtplib's errors, too
            logger.error("The mail %s could not be sent: %s", template_prefix, error)
            self._report_unsent_mail(template_prefix.removeprefix(MAIL_FOLDER), email)
        else:
            self._report_logged_mail(template_prefix.removeprefix(MAIL_FOLDER), email)

    def _report_logged_mail(self, mail: str, email: str) -> None:
        request = context.request
        if (
            is_real_mail_backend(settings.EMAIL_BACKEND)
            or mail not in ESSENTIAL_MAILS | CONFIRMATION_MAILS
        ):
            return
        # For `add_message`, which must not say afterwards that a mail was sent.
        request.is_mail_logged = True
        message = _(
            "This site sends no email. It writes messages to its web server's log (logs/web.log "
            "in the site's folder, var/ by default). Find the message to %(email)s there and open "
            "its link."
        )
        messages.warning(request, message % {"email": email})

    def _report_unsent_mail(self, mail: str, email: str) -> None:
        request = context.request
        if mail in ESSENTIAL_MAILS:
            response = render(request, "accounts/mail_down.html", status=503)
            response["Retry-After"] = "60"
            raise ImmediateHttpResponse(response)
        if mail in CONFIRMATION_MAILS:
            request.is_mail_down = True
            # No mail went out, so the pause before the next one would be for nothing.
            ratelimit.clear(request, action="confirm_email", key=email.lower())
            message = _(
                "We couldn't send the email to %(email)s because our mail server isn't responding. "
                "Try again in a few minutes in Settings, or by signing in."
            )
            messages.error(request, message % {"email": email})

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        template: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Add allauth's message, unless it claims that a mail was sent when it was not."""
        is_sent = not (hasattr(request, "is_mail_down") or hasattr(request, "is_mail_logged"))
        if is_sent or template != SENT_MESSAGE_TEMPLATE:
            super().add_message(request, level, template, *args, **kwargs)

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

        If they were counted only by account, anybody who knows an email address could lock out its
        owner.
        """
        key = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{key}:{self.get_client_ip(request)}"


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """An allauth adapter whose message about an unconfirmed address says what to do."""

    error_messages: ClassVar = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": gettext_lazy("Check the code. It isn't correct."),
        "add_email_blocked": gettext_lazy(
            "Turn off two-factor sign-in before you add an email address."
        ),
        "cannot_generate_recovery_codes": gettext_lazy(
            "Add an authenticator app or a security key first."
        ),
        "unverified_email": gettext_lazy(
            "Confirm your email address first. You can request a new link on your account page."
        ),
    }


def _build_own_url(url: str) -> str:
    return f"{settings.SITE_URL}{urlsplit(url).path}"
