"""The log of what was erased: in the transaction that erases, and then in a file, without names."""

import json
import stat

import pytest
from django.db import transaction

from annotation.moderation import withdraw_example
from core.accounts.erasure_log import (
    count_erased_names,
    derive_erasure_key,
    get_erasure_name,
    hash_erased_name,
    read_erasure_log,
    write_erasure_log,
)
from core.accounts.models import Erasure, User
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.restoring import _read_erasures
from evaluation.submissions.services import withdraw_model
from tests.support.factories import PASSWORD
from tests.support.judging import write
from tests.support.submissions import submission_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def log(settings, tmp_path):
    settings.ERASURE_LOG = tmp_path / "erasures.log"
    return settings.ERASURE_LOG


def test_what_is_erased_stands_in_the_log(log, nli, alice, bob, client, settings):
    key = derive_erasure_key(settings.SECRET_KEY)
    example, model = write(nli, alice), submission_of(nli.task, alice)
    names = {"example": example.uuid, "submission": model.pk, "person": get_erasure_name(bob)}
    withdraw_example(example=example, actor=None, reason="")
    withdraw_model(submission=model, actor=None)
    boss = User.objects.create_superuser("boss@example.com", PASSWORD)
    client.force_login(boss)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    client.post(f"/admin/accounts/user/{bob.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(pk=bob.pk).exists()
    assert write_erasure_log() == 3
    assert write_erasure_log() == 0
    assert read_erasure_log() == {
        kind: {hash_erased_name(kind, name, key)} for kind, name in names.items()
    }
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_what_is_not_erased_after_all_is_not_noted(log, nli, alice):
    with transaction.atomic():
        withdraw_example(example=write(nli, alice), actor=None, reason="")
        transaction.set_rollback(True)
    assert not Erasure.objects.exists()


def test_a_lost_log_is_refused_and_an_empty_one_is_none(log, settings):
    """Where nobody was erased there is an empty log, so a restoration needs no exception."""
    with pytest.raises(BackupError):
        _read_erasures(min_names=0)
    assert write_erasure_log() == 0
    assert _read_erasures(min_names=0) == {}
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    with pytest.raises(BackupError):  # somebody put an empty one in its place
        _read_erasures(min_names=1)
    log.write_text('{"at": "", "kind": "person", "digest": "x"}\n' * 2)
    assert count_erased_names() == 1
    assert _read_erasures(min_names=1) == {"person": {"x"}}


def test_a_log_that_cannot_be_written_costs_nothing(log, settings, nli, alice):
    withdraw_example(example=write(nli, alice), actor=None, reason="")
    log.mkdir()
    assert write_erasure_log() == 0
    log.rmdir()
    log.write_text('{"at": "2026-11-26", "ki')  # a full disk
    assert write_erasure_log() == 1
    assert [len(found) for found in read_erasure_log().values()] == [1]
    assert json.loads(log.read_text().splitlines()[-1])["kind"] == "example"
