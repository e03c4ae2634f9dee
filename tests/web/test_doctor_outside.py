"""What the doctor says of parts that others run: mail, sign-in, folders, backups, models."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from core.accounts.models import Erasure, SiteKey
from core.accounts.sealed import SEALED_COLUMNS, iterate_sealed_columns
from core.data.encryption import encrypt
from core.jobs.models import LastSuccess
from dynabench.operations.soundness import doctor, outside
from evaluation.models import EvaluationRun
from tasks.models import Generator, Round, TargetModel
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import RoundFactory, scripted_target
from tests.support.openid import Provider
from tests.support.parts import free_port
from tests.support.programs import (
    _sound_engine,  # noqa: F401
    told,
)

pytestmark = pytest.mark.django_db
SECRET = "a-password-of-the-mail-server"


def states(findings):
    return {found.what: found.state for found in findings}


def test_a_mail_server_that_is_away_or_takes_no_password(settings, monkeypatch):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    found = outside.check_mail()
    assert (found.state, str(settings.EMAIL_PORT) in found.message) == ("bad", True)
    settings.EMAIL_HOST_PASSWORD = SECRET

    def refuse(backend):
        raise OSError(535, f"{SECRET} was not accepted")

    monkeypatch.setattr(f"{settings.EMAIL_BACKEND}.open", refuse)
    found = outside.check_mail()
    assert (found.state, "not accepted" in found.message) == ("bad", True)
    assert SECRET not in found.message
    monkeypatch.setattr(f"{settings.EMAIL_BACKEND}.open", lambda backend: True)
    assert outside.check_mail().state == "ok"
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert outside.check_mail().state == "note"


def test_a_provider_that_is_away_or_is_none(settings):
    assert not [*outside.check_sign_in()]
    settings.OIDC_ISSUER = f"http://127.0.0.1:{free_port()}"
    assert states(outside.check_sign_in()) == {"sign-in": "bad"}
    provider = Provider()
    settings.OIDC_ISSUER = provider.url
    assert states(outside.check_sign_in()) == {"sign-in": "ok"}
    settings.OIDC_ISSUER = f"{provider.url}/.well-known/openid-configuration"
    assert states(outside.check_sign_in()) == {"sign-in": "ok"}
    provider.discovery = lambda: {"issuer": provider.url}
    [found] = outside.check_sign_in()
    assert (found.state, "token_endpoint" in found.message) == ("bad", True)
    settings.OIDC_ISSUER = f"{provider.url}/.well-known/none"
    assert states(outside.check_sign_in()) == {"sign-in": "bad"}
    provider.server.shutdown()
    provider.server.server_close()


def test_folders_that_cannot_be_written_to(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "made" / "when needed"
    assert not [*outside.check_folders()]
    settings.MEDIA_ROOT = Path("/proc")
    assert states(outside.check_folders()) == {"media folder": "bad"}
    settings.STORAGE_URL = "s3://elsewhere"
    assert not [*outside.check_folders()]
    if connection.vendor == "sqlite":
        (tmp_path / "file").write_text("")
        monkeypatch.setitem(connection.settings_dict, "NAME", tmp_path / "file")
        monkeypatch.setattr(outside.os, "access", lambda path, mode: False)
        assert states(outside.check_folders()) == {"database file": "bad"}


def test_an_erasure_log_that_takes_nothing(settings, tmp_path, monkeypatch):
    settings.ERASURE_LOG = tmp_path / "erasures.log"
    assert outside.check_erasure_log().state == "ok"
    assert not settings.ERASURE_LOG.exists()
    settings.ERASURE_LOG.write_text("")
    monkeypatch.setattr(outside.os, "access", lambda path, mode: False)
    assert outside.check_erasure_log().state == "bad"
    for folder in (tmp_path / "nowhere", Path("/proc")):
        settings.ERASURE_LOG = folder / "erasures.log"
        assert outside.check_erasure_log().state == "bad"


def test_erasures_that_wait_for_their_log(settings, tmp_path):
    settings.ERASURE_LOG = tmp_path / "erasures.log"
    row = Erasure.objects.create(kind="user", digest="x")
    assert outside.check_erasure_log().state == "ok"
    Erasure.objects.filter(pk=row.pk).update(erased_at=timezone.now() - timedelta(hours=2))
    assert outside.check_erasure_log().state == "bad"


@pytest.mark.parametrize(("days", "state"), [(None, "note"), (1, "ok"), (3, "bad")])
def test_backups(days, state):
    if days is not None:
        at = timezone.now() - timedelta(days=days)
        LastSuccess.objects.create(job="backup", succeeded_at=at)
    assert outside.check_backup().state == state


@pytest.mark.parametrize(
    ("url", "state"),
    [("https://bench.example.org", "ok"), ("https://other.test", "bad"), ("", "bad")],
)
def test_an_address_that_the_site_does_not_answer_for(settings, url, state):
    settings.ALLOWED_HOSTS, settings.SITE_URL = ["bench.example.org"], url
    assert outside.check_address().state == state


def test_a_key_that_is_not_the_sites(settings):
    target = scripted_target(RoundFactory())
    TargetModel.objects.update(sealed_secret=encrypt("s3cret"))
    assert outside.check_secrets().state == "ok"
    TargetModel.objects.update(sealed_secret="")
    SiteKey.objects.create(name="marks", sealed=encrypt("key"))
    before = settings.SECRET_KEY
    for expected in ("site key", target.name):
        settings.SECRET_KEY = "another one, of more than fifty letters, as Django wants them"
        found = outside.check_secrets()
        assert (found.state, expected in found.message) == ("bad", True)
        settings.SECRET_KEY = before
        TargetModel.objects.update(sealed_secret=encrypt("s3cret"))
        SiteKey.objects.all().delete()


def test_each_column_of_secrets_is_known():
    """Otherwise a new key, or a restoration, would lose them without a word."""
    secret = re.compile(r"sealed\w*|secret")
    columns = {
        model._meta.label: field.name
        for model in apps.get_models()
        if not model._meta.app_label.startswith(("social", "mfa"))
        for field in model._meta.concrete_fields
        if secret.fullmatch(field.name)
    }
    assert columns == SEALED_COLUMNS
    assert {model._meta.label for model, _ in iterate_sealed_columns()} == set(SEALED_COLUMNS)


def test_models_that_gave_no_answer_when_they_were_registered():
    target = scripted_target(RoundFactory(state=Round.State.DRAFT))
    assert outside.check_contacts().state == "ok"
    muse = Generator.objects.create(task=target.task, name="muse", url="http://muse.test")
    faults = {"contact_reason": "misconfigured", "contact_at": timezone.now()}
    for row in (target, muse):
        rows = type(row).objects.filter(pk=row.pk)
        rows.update(contact_detail=f"No model for {row.name}", **faults)
    found = outside.check_contacts()
    assert found.state == "note"
    assert all(f"No model for {row.name}" in found.message for row in (target, muse))
    assert "No model for muse" in told(quick=True)[0]


@pytest.mark.parametrize(("outcome", "state"), [("infrastructure", "note"), ("timeout", "ok")])
def test_evaluations_that_the_platform_failed(nli, outcome, state):
    queued_run(
        accepted_model(nli.task),
        set_version(nli.task),
        state=EvaluationRun.State.FAILED,
        outcome=outcome,
        error="there is no folder",
        finished_at=timezone.now(),
    )
    found = outside.check_failed_runs()
    assert (found.state, "no folder" in found.message) == (state, state == "note")


def test_migrations_of_a_newer_release():
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('tasks', '9999_later', %s)",
            [timezone.now()],
        )
    found = doctor.check_migrations()
    assert (found.state, "9999_later" in found.message) == ("note", True)


@pytest.mark.parametrize(("host", "state"), [("", "note"), ("tcp://127.0.0.1:1", "bad")])
def test_an_engine_that_the_operator_named(monkeypatch, host, state):
    monkeypatch.setattr(doctor, "find_engine", lambda: None)
    monkeypatch.setenv("DOCKER_HOST", host)
    assert states(doctor.check_engine()) == {"engine": state}
