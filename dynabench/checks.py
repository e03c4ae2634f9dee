"""System checks of an installation: what has to be set before the site is public."""

import os
import stat
import sys
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from core.env import is_real_mail_backend

REQUIRED_SETTINGS = ("ALLOWED_HOSTS", "DATABASE_URL")


@register(Tags.security, deploy=True)
def check_required_settings(**kwargs: Any) -> list[CheckMessage]:
    """Require the settings for hosts and database in production."""
    return [
        Error(
            f"{name} is not set.",
            hint=f"Set the environment variable {name} (docs/operators.md).",
            id="dynabench.E001",
        )
        for name in REQUIRED_SETTINGS
        # Containers get their secrets as files.
        if not (os.environ.get(name) or os.environ.get(f"{name}_FILE"))
    ]


@register(Tags.security, deploy=True)
def check_key_source(**kwargs: Any) -> list[CheckMessage]:
    """Warn if SECRET_KEY comes from the home folder, which other machines may not share."""
    if os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE"):
        return []
    return [
        Warning(
            f"SECRET_KEY is not set, so {settings.HOME / 'secret_key'} is used.",
            hint="Back up this file. Set SECRET_KEY if several machines don't share a home folder.",
            id="dynabench.W005",
        )
    ]


@register(Tags.caches, deploy=True)
def check_shared_cache(**kwargs: Any) -> list[CheckMessage]:
    """Warn if several web processes have no shared cache.

    Each process then has its own rate limits and circuit breakers.
    """
    if settings.CACHE_URL or settings.WEB_CONCURRENCY == 1:
        return []
    return [
        Warning(
            "Several web processes are running without a shared cache.",
            hint="Set CACHE_URL=redis://HOST:PORT.",
            id="dynabench.W001",
        )
    ]


@register(Tags.security, deploy=True)
def check_address_confirmation(**kwargs: Any) -> list[CheckMessage]:
    """Warn if no email is sent, or email addresses need no confirmation.

    Without confirmations, sign-up reveals which addresses have an account. Without email, links
    appear only in the log.
    """
    if not is_real_mail_backend(settings.EMAIL_BACKEND):
        hint = (
            "Set EMAIL_BACKEND and EMAIL_HOST. Until then, links in emails appear only in the log."
        )
        return [Warning("No email is sent.", hint=hint, id="dynabench.W002")]
    if settings.ACCOUNT_EMAIL_VERIFICATION != "mandatory":
        hint = (
            "Remove EMAIL_VERIFICATION. Without it, sign-up reveals which addresses have an "
            "account."
        )
        return [Warning("Email addresses are not verified.", hint=hint, id="dynabench.W003")]
    return []


@register(Tags.security, deploy=True)
def check_private_home(**kwargs: Any) -> list[CheckMessage]:
    """Warn if all users of the machine can read the home folder: database file, emails, drafts."""
    # The group may read it: on many machines it is that of the operators.
    if not settings.HOME.stat().st_mode & stat.S_IRWXO:
        return []
    return [
        Warning(
            f"Every user of this machine can read {settings.HOME}.",
            hint=f"chmod o-rwx {settings.HOME}",
            id="dynabench.W004",
        )
    ]


@register()
def check_no_torch(**kwargs: Any) -> list[CheckMessage]:
    """Report torch in a web process as an error, because it costs each one a second and 250 MB."""
    # Without deploy=True, so that each start and each test checks it.
    if "torch" not in sys.modules:
        return []
    return [Error("A web module imports torch.", id="dynabench.E003")]


@register()
def check_finished_restoration(**kwargs: Any) -> list[CheckMessage]:
    """Report an unfinished restoration of the site as an error, so that no process starts.

    Until it is finished, parts of the site may be missing, and erased people may be back.
    """
    if not (settings.HOME / "restoring").exists():
        return []
    hint = "Run the same manage.py restore command again. It resumes where it stopped."
    return [Error("A restore was interrupted.", hint=hint, id="dynabench.E004")]


@register()
def check_privacy_text(**kwargs: Any) -> list[CheckMessage]:
    """Require that the operator's privacy notice is readable, if one is set."""
    if not settings.PRIVACY_TEXT or os.access(settings.PRIVACY_TEXT, os.R_OK):
        return []
    hint = "Set PRIVACY_TEXT to a readable file, or unset it."
    return [Error("The privacy notice can't be read.", hint=hint, id="dynabench.E005")]
