"""System checks of an installation: what must be set before strangers may use it."""

import os
import stat
import sys
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from core.env import sends_mail

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
        if not (os.environ.get(name) or os.environ.get(f"{name}_FILE"))
    ]


@register(Tags.security, deploy=True)
def check_key_source(**kwargs: Any) -> list[CheckMessage]:
    """Warn if SECRET_KEY is the one stored in the home folder, which exists on one machine only."""
    if os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE"):
        return []
    return [
        Warning(
            f"SECRET_KEY is not set, so {settings.HOME / 'secret_key'} is used.",
            hint="Keep that file with your backups, and set SECRET_KEY where machines share no "
            "home folder.",
            id="dynabench.W005",
        )
    ]


@register(Tags.caches, deploy=True)
def check_shared_cache(**kwargs: Any) -> list[CheckMessage]:
    """Warn that without a shared cache each process has its own limits and circuit breakers."""
    if settings.CACHE_URL or settings.WEB_CONCURRENCY == 1:
        return []
    return [
        Warning(
            "Several web processes, but the cache is not shared.",
            hint="Set CACHE_URL=redis://HOST:PORT.",
            id="dynabench.W001",
        )
    ]


@register(Tags.security, deploy=True)
def check_address_confirmation(**kwargs: Any) -> list[CheckMessage]:
    """Warn if email addresses need no confirmation.

    Sign-up then reveals which addresses have an account, and new roles take effect only
    after a confirmation.
    """
    if not sends_mail(settings.EMAIL_BACKEND):
        hint = "Set EMAIL_BACKEND and EMAIL_HOST. Otherwise only your log has the links of mails."
        return [Warning("No mails are sent.", hint=hint, id="dynabench.W002")]
    if settings.ACCOUNT_EMAIL_VERIFICATION != "mandatory":
        hint = "Remove EMAIL_VERIFICATION. Otherwise sign-up tells which addresses have an account."
        return [Warning("Addresses need not be confirmed.", hint=hint, id="dynabench.W003")]
    return []


@register(Tags.security, deploy=True)
def check_private_home(**kwargs: Any) -> list[CheckMessage]:
    """Warn if other users of the machine can read the database's file, emails and drafts."""
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
    """Refuse torch in web processes, where importing it costs a second and 250 MB each."""
    if "torch" not in sys.modules:
        return []
    return [Error("torch is imported by a web module.", id="dynabench.E003")]


@register()
def check_finished_restoration(**kwargs: Any) -> list[CheckMessage]:
    """Refuse to start any process while a restoration of the site is unfinished.

    Parts of the site may be missing, and erased people may be back.
    """
    if not (settings.HOME / "restoring").exists():
        return []
    hint = "Run the same manage.py restore again; it goes on where it was."
    return [Error("A restoration was cut short.", hint=hint, id="dynabench.E004")]


@register()
def check_privacy_text(**kwargs: Any) -> list[CheckMessage]:
    """Require that the operator's privacy notice is readable."""
    if not settings.PRIVACY_TEXT or os.access(settings.PRIVACY_TEXT, os.R_OK):
        return []
    hint = "Name a readable file, or unset PRIVACY_TEXT."
    return [Error("The data protection text cannot be read.", hint=hint, id="dynabench.E005")]
