"""What the doctor finds, and how it ends; the hostile models themselves are in tests/docker."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from dynabench.operations.attacks.cases import CASES
from dynabench.operations.management.commands import doctor as command
from dynabench.operations.soundness import cluster, doctor, health
from dynabench.operations.soundness.cluster import check_cluster
from dynabench.operations.soundness.doctor import Verdict
from dynabench.operations.soundness.health import Finding
from evaluation.models import TrainingRun
from tests.support.factories import RoundFactory, TaskFactory, scripted_target
from tests.support.programs import (
    ENGINE,
    _sound_engine,  # noqa: F401
    told,
)

pytestmark = pytest.mark.django_db


def test_a_sound_installation():
    text, is_well = told(quick=True)
    assert is_well, text
    assert "all migrations applied" in text
    assert "Docker 28.0, cgroup v2" in text
    assert "Hostile" not in text


def test_as_json():
    out = json.loads(told(quick=True, json=True)[0])
    assert out["ok"] is True
    assert {found["what"] for found in out["findings"]} >= {"database", "cache", "queue", "engine"}
    assert out["hostile"] == []


def test_without_an_engine_it_says_what_follows(monkeypatch):
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(doctor, "find_engine", lambda: None)
    monkeypatch.setattr(command, "find_engine", lambda: None)
    text, is_well = told()
    assert is_well
    assert "Submitted images wait" in text
    assert "Hostile models (" not in text


@pytest.mark.parametrize(
    ("is_ok", "is_well", "mark"), [(True, True, "ok"), (False, False, "BAD"), (None, True, "-")]
)
def test_one_hostile_model_decides(monkeypatch, is_ok, is_well, mark):
    verdict = Verdict(CASES[0], "what was seen", is_ok)
    monkeypatch.setattr(command, "run_cases", lambda: iter([verdict]))
    text, ended_well = told()
    assert ended_well is is_well
    assert any(line.split()[:2] == [mark, "1"] for line in text.splitlines()), text
    assert "what was seen" in text
    out = json.loads(told(json=True)[0])
    assert out["ok"] is is_well
    assert out["hostile"][0]["ok"] is is_ok


def test_without_an_image_the_hostile_models_fail(monkeypatch):
    def verdicts():
        raise LookupError("There is no image")

    monkeypatch.setattr(command, "run_cases", verdicts)
    text, is_well = told()
    assert not is_well
    assert "There is no image" in text


def bad(findings) -> list[str]:
    return [found.what for found in findings if found.state == "bad"]


def test_a_database_that_does_not_answer(monkeypatch):
    gone = Finding("database", "bad", "It does not answer")
    monkeypatch.setattr(health, "check_database", lambda: gone)
    found = list(doctor.run_checks())
    assert bad(found) == ["database"]
    assert "queue" not in [one.what for one in found]


def test_migrations_that_wait(monkeypatch):
    name = "0001_squashed_0020_adapters_and_gpus"
    executor = doctor.MigrationExecutor
    monkeypatch.setattr(
        executor,
        "migration_plan",
        lambda self, targets: [(self.loader.get_migration("evaluation", name), False)],
    )
    assert f"evaluation {name}" in doctor.check_migrations().message


def test_a_cache_that_forgets(settings):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    assert health.check_cache().state == "bad"


def test_a_cache_that_is_gone(settings):
    settings.CACHE_URL = "redis://127.0.0.1:1"
    cache_class = "core.data.shared_cache.SharedCache"
    settings.CACHES = {"default": {"BACKEND": cache_class, "LOCATION": settings.CACHE_URL}}
    assert health.check_cache().state == "bad"


def test_a_stuck_job():
    long_ago = timezone.now() - timedelta(hours=1)
    TrainingRun.objects.create(task=TaskFactory(), options={}, queued_at=long_ago)
    assert "waits since" in health.check_queue().message


def test_targets_of_open_rounds_are_asked():
    target = scripted_target(RoundFactory(), output={"label": "neutral"})
    assert doctor.check_targets() == Finding("live targets", "ok", "1 respond")
    target.adapter, target.url = "http", "http://127.0.0.1:1/"
    target.save(update_fields=["adapter", "url"])
    found = doctor.check_targets()
    assert found.state == "bad"
    assert target.name in found.message


def test_a_full_disk(monkeypatch):
    monkeypatch.setattr(doctor, "SPARE_BYTES", 10**18)
    assert bad(doctor.check_disk()) == ["home"]


def test_a_home_that_cannot_be_written_to(settings):
    settings.HOME = Path("/proc")  # for root, who runs some tests, too
    assert bad(doctor.check_disk()) == ["disk"]
    assert not told(quick=True)[1]


def test_an_engine_without_seccomp(monkeypatch):
    weak = ENGINE._replace(has_seccomp=False, has_runsc=False)
    monkeypatch.setattr(doctor, "find_engine", lambda: weak)
    monkeypatch.setattr(doctor, "has_image", lambda name: False)
    found = {one.what: one.state for one in doctor.check_engine()}
    assert found == {"engine": "ok", "seccomp": "bad", "runsc": "note", "runtime image": "note"}


@pytest.mark.parametrize(
    ("status", "words"),
    [(3, "to rebuild it"), (1, "could not be checked: no docker here")],
)
def test_a_runtime_image_of_another_version(monkeypatch, tmp_path, status, words):
    script = tmp_path / "script"
    script.write_text(
        f"#!/bin/sh\n[ $1 = --is-current ] || exit 0\necho no docker here >&2\nexit {status}\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(doctor, "IMAGE_SCRIPT", script)
    found = doctor.check_runtime_image()
    assert found.state == "note"
    assert words in found.message


NODES = """print('[["10.0.0.2", "node-3", "8.8.8.8"], {"CPU": 6.0, "docker": 3.0}]')"""


def test_a_cluster_that_does_not_answer_or_is_open(settings, monkeypatch):
    assert not [*check_cluster()]
    settings.RAY_ADDRESS = "10.0.0.2:6379"
    monkeypatch.setattr(cluster, "NODES_SCRIPT", "print('no')")
    assert [one.state for one in check_cluster()] == ["bad"]
    monkeypatch.setattr(cluster, "NODES_SCRIPT", NODES)
    first, public, other = check_cluster()
    assert (first.state, first.message, other.state) == ("ok", "3 nodes, docker 3, CPU 6", "note")
    assert (public.state, "8.8.8.8" in public.message) == ("bad", True)
    monkeypatch.setenv("RAY_USE_TLS", "1")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert [one.state for one in check_cluster()] == ["ok", "bad", "bad"]
