"""Checks of what the site needs but does not run: email, sign-in, folders, backups and more."""

import logging
import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import get_connection
from django.db import connection
from django.http.request import validate_host
from django.utils import timezone

from core.accounts.models import Erasure
from core.accounts.sealed import iterate_sealed_columns
from core.data.encryption import UnreadableSecret, decrypt
from core.env import is_real_mail_backend
from core.jobs.keeper import announce_job
from core.jobs.models import LastSuccess
from core.jobs.services import record_job_success
from core.periodic import register_quarter_hourly
from dynabench.operations.soundness.health import Finding, check_stored_files
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun
from tasks.models import Generator, Round, TargetModel
from tasks.targets.endpoints.answers import expect_object, parse_strict_json
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.server_words import clean_message, mask_copies, read_message
from tasks.targets.endpoints.transport import RETRY_IDEMPOTENT, parse_url

logger = logging.getLogger(__name__)
ANSWER_SECONDS = 5.0
RECENT_PERIOD = timedelta(days=7)
BACKUP_AGE = timedelta(days=2)
ERASURE_AGE = timedelta(hours=1)
MAX_SHOWN = 5
SAMPLE_SIZE = 100
"""The number of secrets of a kind to decrypt. One unreadable secret shows that the key changed."""
WELL_KNOWN = "/.well-known/openid-configuration"
PROVIDER_KEYS = ("authorization_endpoint", "token_endpoint")


def check_configured_services() -> Iterator[Finding]:
    """Check the services that environment variables configure, without the database."""
    yield check_stored_files()
    yield check_mail()
    yield from check_sign_in()
    yield check_address()
    yield from check_folders()


def check_parts_in_use() -> Iterator[Finding]:
    """Check the services whose failure would go unnoticed until they are needed."""
    yield check_stored_files()
    yield check_mail()
    yield from check_sign_in()
    yield check_erasure_log()


def check_mail() -> Finding:
    """Check that the mail server accepts a connection and the password. Sends nothing."""
    if not is_real_mail_backend(settings.EMAIL_BACKEND):
        return Finding("mail", "note", "No email is sent. Set EMAIL_BACKEND and EMAIL_HOST.")
    transport = settings.EMAIL_BACKEND
    if transport == "core.mail.transport.LimitedBackend":  # ours, around the operator's
        transport = settings.MAIL_TRANSPORT
    is_smtp = transport == "django.core.mail.backends.smtp.EmailBackend"
    transport_name = transport
    if is_smtp:
        transport_name = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        # Opens and closes it, which tries the password.
        with get_connection():
            pass
    except Exception as error:  # whatever the backend's library raises
        # Some servers repeat the password in what they answer.
        message = clean_message(mask_copies(settings.EMAIL_HOST_PASSWORD, str(error)))
        advice = "Check EMAIL_HOST, EMAIL_PORT, EMAIL_USE_TLS, the user and the password."
        return Finding("mail", "bad", f"{transport_name} accepts no email: {message}. {advice}")
    if is_smtp:
        return Finding("mail", "ok", f"{transport_name} accepts email")
    return Finding("mail", "ok", f"{transport_name} is used. Send an email to check its key")


def check_sign_in() -> Iterator[Finding]:
    """Check that the OpenID Connect provider, if any, publishes its sign-in URL."""
    if not settings.OIDC_ISSUER:
        return
    url = settings.OIDC_ISSUER
    if "/.well-known/" not in url:
        url += WELL_KNOWN
    trouble = _find_provider_trouble(url)
    if trouble:
        yield Finding("sign-in", "bad", f"{url}: {trouble}. Check OIDC_ISSUER.")
    else:
        yield Finding("sign-in", "ok", f"{settings.OIDC_NAME} responds")


def _find_provider_trouble(url: str) -> str:
    """Return why people cannot be sent to the provider; "" if they can."""
    try:
        address = parse_url(url)
        answer = SHARED_TRANSPORT.request(
            "GET", address, seconds=ANSWER_SECONDS, max_bytes=2**20, allowed_hosts=(address.host,),
            secret=None, payload=None, retry=RETRY_IDEMPOTENT,
        )  # fmt: skip
        # An address that answers with a page is not the provider's.
        if answer.status != 200:
            return f"it responded with {answer.status}: {read_message(answer.body)}"
        endpoints = expect_object(parse_strict_json(answer.body), "The answer")
    except EndpointError as error:
        return str(error).replace("The target", "The provider")
    missing_keys = [name for name in PROVIDER_KEYS if not endpoints.get(name)]
    if missing_keys:
        return f"its response lacks {', '.join(missing_keys)}"
    return ""


def check_folders() -> Iterator[Finding]:
    """Check that the media folder and the database's file are writable."""
    if not settings.STORAGE_URL:
        trouble = _explain_unwritable(Path(settings.MEDIA_ROOT))
        if trouble:
            yield Finding("media folder", "bad", trouble)
    if connection.vendor == "sqlite":
        path = str(connection.settings_dict["NAME"])
        if Path(path).exists() and not os.access(path, os.W_OK):
            yield Finding("database file", "bad", f"{path} is not writable.")


def _explain_unwritable(folder: Path) -> str:
    """Return why a folder is not writable; "" if it is. The folder may not exist yet."""
    existing_folder = folder
    while not existing_folder.exists():
        existing_folder = existing_folder.parent
    try:
        with tempfile.TemporaryFile(dir=existing_folder):
            return ""
    except OSError as error:
        return f"{existing_folder} is not writable: {error.strerror}."


def check_erasure_log() -> Finding:
    """Check that the erasure log is writable, and that no erasure waits to be logged.

    Without the log, a restored backup would undo erasures.
    """
    path = Path(settings.ERASURE_LOG)
    if not path.parent.is_dir():
        trouble = f"The folder {path.parent} doesn't exist. Create it, or change ERASURE_LOG."
    elif path.exists() and not os.access(path, os.W_OK):
        trouble = f"{path} is not writable."
    else:
        trouble = _explain_unwritable(path.parent)
    late_count = Erasure.objects.filter(erased_at__lt=timezone.now() - ERASURE_AGE).count()
    if late_count:
        trouble = f"{trouble} {late_count} erasures are not logged yet.".strip()
    if trouble:
        return Finding("erasure log", "bad", trouble)
    return Finding("erasure log", "ok", str(path))


def check_backup() -> Finding:
    """Check that a recent backup succeeded."""
    last_success = LastSuccess.objects.filter(job="backup").first()
    if last_success is None:
        return Finding("backup", "note", "No backup yet. Schedule manage.py backup.")
    success_time = f"{last_success.succeeded_at:%Y-%m-%d %H:%M} UTC"
    if timezone.now() - last_success.succeeded_at > BACKUP_AGE:
        return Finding("backup", "bad", f"The last successful backup was at {success_time}.")
    return Finding("backup", "ok", success_time)


def check_address() -> Finding:
    """Check that links in emails point to a host of this site."""
    host = urlsplit(settings.SITE_URL).hostname or ""
    if validate_host(host, settings.ALLOWED_HOSTS):
        return Finding("address", "ok", settings.SITE_URL)
    message = (
        f"SITE_URL is {settings.SITE_URL}, but ALLOWED_HOSTS does not contain {host or 'a host'}."
    )
    return Finding("address", "bad", message)


def check_failed_runs() -> Finding:
    """Report evaluations of the last seven days that failed because of the platform."""
    failed_runs = EvaluationRun.objects.filter(
        outcome=Outcome.INFRASTRUCTURE, finished_at__gte=timezone.now() - RECENT_PERIOD
    )
    lines = [
        f"{run.submission}: {run.error}"
        for run in failed_runs.select_related("submission").order_by("-finished_at")[:MAX_SHOWN]
    ]
    if lines:
        count = failed_runs.count()
        return Finding("evaluations", "note", "\n".join([f"{count} failed recently:", *lines]))
    return Finding("evaluations", "ok", "none failed recently")


def check_secrets() -> Finding:
    """Check that stored secrets can be decrypted, that is, that SECRET_KEY has not changed.

    Only the latest SAMPLE_SIZE secrets of each kind are decrypted.
    """
    count = 0
    unreadable = []
    for model, column in iterate_sealed_columns():
        # A few of each kind: decrypting all of them would take minutes on a large site.
        for row in model._default_manager.exclude(**{column: ""}).order_by("-pk")[:SAMPLE_SIZE]:
            count += 1
            if not _is_readable(getattr(row, column)):
                name = f"{model._meta.verbose_name} {row.pk}"
                if isinstance(row, TargetModel | Generator):
                    name = str(row)
                unreadable.append(name)
    if unreadable:
        names = ", ".join(unreadable[:MAX_SHOWN])
        message = (
            f"SECRET_KEY can't decrypt the secrets of {names}. Restore the old key, or "
            "enter them again."
        )
        return Finding("secrets", "bad", message)
    return Finding("secrets", "ok", f"{count} can be decrypted")


def _is_readable(token: str) -> bool:
    try:
        decrypt(token)
    except UnreadableSecret:
        return False
    return True


def check_contacts() -> Finding:
    """Report targets and generators that did not respond to the last request.

    Leaves out targets of open rounds, which `doctor.check_targets` contacts.
    """
    targets_in_use = TargetModel.objects.filter(
        rounds__state=Round.State.OPEN
    )  # these are asked now
    targets = TargetModel.objects.exclude(contact_reason="").exclude(pk__in=targets_in_use)
    generators = Generator.objects.exclude(contact_reason="")
    lines = []
    for rows in (targets, generators):
        for row in rows.select_related("task").order_by("-contact_at")[:MAX_SHOWN]:
            lines.append(f"{row.task.code}: {row.name}: {row.contact_detail}")
    if lines:
        return Finding("other models", "note", "\n".join(lines))
    return Finding("other models", "ok", "none failed at the last request")


@register_quarter_hourly(
    counts="unresponsive parts",
    why="A broken mail server would stay unnoticed until an email is needed.",
)
def ask_parts() -> int:
    """Run `check_parts_in_use` and record the successes; return the number of failures.

    Monitors report parts without a recent success. Otherwise, nobody would notice a failing mail
    server or erasure log before it is needed.
    """
    failure_count = 0
    for finding in check_parts_in_use():
        announce_job()
        if finding.state == "bad":
            logger.warning("%s: %s", finding.what, finding.message)
            failure_count += 1
        else:
            with record_job_success(finding.what):  # only notes the time
                pass
    return failure_count
