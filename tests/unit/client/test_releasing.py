"""Releases, trainings and evaluation sets, at the real API."""

import gzip
import json

import pytest
from django.utils import timezone

from annotation.models import Example
from dynabench.client import Invalid, Refused, TimedOut
from evaluation.isolation.queue import leases
from evaluation.jobs import build_dataset
from evaluation.models import Dataset, EvaluationSet, TrainingRun, Upload
from tests.support.factories import TaskFactory
from tests.support.releases import _own_storage, closed, people  # noqa: F401 - fixtures
from tests.support.training_pages import REPORT

ROWS = [
    {"uid": "a", "premise": "One.", "hypothesis": "It.", "label": "neutral"},
    {"uid": "b", "premise": "Two.", "hypothesis": "It.", "label": "entailment"},
]


@pytest.fixture
def meanwhile(monkeypatch):
    """`meanwhile(do, …)`: what happens at the server while the client waits, one after another."""

    def told(*actions):
        waiting = iter(actions)
        monkeypatch.setattr("dynabench.client.client.sleep", lambda seconds: next(waiting)())

    return told


@pytest.fixture
def owner(client_of, alice, closed):  # noqa: F811
    client = client_of(alice, closed.task, "owner")
    client.progress = True
    return client


def test_a_round_is_released_and_waited_for(owner, meanwhile, capsys, tmp_path):
    meanwhile(lambda: build_dataset(Dataset.objects.get().pk))
    made = owner.release("nli", 1, license="cc-by-4.0", test=20, dev=10)
    assert (made["version"], made["state"]) == (1, "done")
    assert capsys.readouterr().err == "queued (0%)\ndone (100%)\n"
    assert owner.releases("nli", 1) == [made]
    folder = owner.download_data("nli", 1, to=tmp_path)
    assert (folder / "dev.jsonl").exists()
    with pytest.raises(Refused) as used:
        owner.undo_release("nli", 1)
    assert used.value.code == "final"
    Dataset.objects.update(downloaded_at=None)
    owner.undo_release("nli", 1)
    assert owner.releases("nli", 1) == []


def test_a_release_is_previewed_and_holds_what_was_confirmed(owner, closed):  # noqa: F811
    first = owner.preview_release("nli", 1)
    best = first["proposals"][0]
    assert first["rows"] == best["rows"]
    assert first["left_out"].keys() == first["reasons"].keys()
    preview = owner.preview_release("nli", 1, dev=10, test=20)
    assert (preview["rows"]["dev"], preview["rows"]["test"]) == (10, 20)
    total = sum(preview["rows"].values()) + sum(preview["left_out"].values())
    assert total == closed.examples.count()
    with pytest.raises(Refused) as too_many:
        owner.preview_release("nli", 1, test=5000)
    with pytest.raises(Invalid, match="dev: "):
        owner.preview_release("nli", 1, dev=-1)
    assert not Dataset.objects.exists()
    now = {"license": "cc-by-4.0", "dev": 10, "test": 20, "confirmed": preview["rows"]}
    Example.objects.filter(pk=closed.examples.first().pk).update(retracted_at=timezone.now())
    with pytest.raises(Refused) as changed:
        owner.release("nli", 1, **now)
    Example.objects.update(retracted_at=None)
    owner.release("nli", 1, wait=False, **now)
    build_dataset(Dataset.objects.get().pk)
    assert Dataset.objects.get().numbers["rows"] == preview["rows"]
    with pytest.raises(Refused) as released:
        owner.preview_release("nli", 1)
    codes = [one.value.code for one in (too_many, changed, released)]
    assert codes == ["release", "changed", "release"]


def test_a_release_need_not_be_waited_for(owner, pauses):
    made = owner.release("nli", 1, wait=False, license="cc0-1.0")
    assert (made["version"], made["state"]) == (1, "queued")
    with pytest.raises(Refused) as again:
        owner.release("nli", 1, license="cc0-1.0")
    assert again.value.code == "release"
    assert not pauses


def test_a_release_that_fails_says_why(owner, meanwhile):
    def fail():
        leases.fail_job(leases.claim_job(Dataset, Dataset.objects.get().pk), "The disk is full.")

    meanwhile(fail)
    with pytest.raises(Refused) as failed:
        owner.release("nli", 1, license="cc-by-4.0")
    assert (failed.value.code, failed.value.message) == ("failed", "The disk is full.")


def test_a_licence_is_one_of_a_list(owner):
    with pytest.raises(Invalid, match="license: "):
        owner.release("nli", 1, license="mine")


def test_a_training_is_followed_and_its_model_put_into_the_loop(owner, meanwhile, capsys, closed):  # noqa: F811
    Dataset.objects.create(round=closed, version=1, state="done")
    begun = owner.train("nli", weights={"round1": 1}, base=None, epochs=1)
    assert begun["state"] == "queued"
    assert owner.training("nli", begun["id"], wait=False)["report"] is None
    held = []
    meanwhile(
        lambda: held.append(leases.claim_job(TrainingRun, begun["id"])),
        lambda: leases.write_heartbeat(held[0], 0.25, "epoch 1"),
        lambda: leases.finish_job(held[0], report=REPORT),
    )
    done = owner.training("nli", begun["id"])
    assert done["report"]["training"]["best_epoch"] == 1
    assert capsys.readouterr().err.splitlines() == [
        "queued (0%)", "running (0%)", "epoch 1 (25%)", "done (100%)"
    ]  # fmt: skip
    registered = owner.register_target("nli", begun["id"], 2, name="fresh")
    assert (registered["target"], registered["round"]) == ("fresh", 2)
    assert [one["target"] for one in owner.trainings("nli")] == ["fresh"]


def test_a_training_that_is_not_over(owner, closed):  # noqa: F811
    run = TrainingRun.objects.create(task=closed.task, options={"weights": {"round1": 1.0}})
    with pytest.raises(TimedOut, match="after 0 seconds"):
        owner.training("nli", run.pk, timeout=0)
    leases.fail_job(leases.claim_job(TrainingRun, run.pk), "There are no rows.")
    with pytest.raises(Refused) as failed:
        owner.training("nli", run.pk)
    assert (failed.value.code, failed.value.message) == ("failed", "There are no rows.")


@pytest.fixture
def editor(client_of, alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return client_of(alice, TaskFactory(code="nli"), "editor")


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_a_set_and_its_next_version_come_from_files(editor, tmp_path):
    file, packed = tmp_path / "v1.0.rows.jsonl", tmp_path / "rows.jsonl.gz"
    file.write_bytes(lines(ROWS))
    packed.write_bytes(gzip.compress(lines(ROWS[:1])))
    made = editor.create_set("nli", "reviews", file, access="standard", description="Mine.")
    assert (made["access"], made["newest"]["version"], made["newest"]["size"]) == ("standard", 1, 2)
    newer = editor.add_set_version("nli", "reviews", str(packed))
    assert (newer["newest"]["version"], newer["newest"]["size"]) == (2, 1)
    assert editor.change_set("nli", "reviews", access="hidden")["access"] == "hidden"
    assert not Upload.objects.exists()


def test_wrong_lines_of_a_set_are_named(editor, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(lines([*ROWS, {**ROWS[0], "label": "perhaps"}]))
    with pytest.raises(Invalid, match="upload: line 3: "):
        editor.create_set("nli", "reviews", file)
    assert not EvaluationSet.objects.exists()


def test_a_closed_round_is_taken_into_its_set(owner, closed):  # noqa: F811
    EvaluationSet.objects.create(
        task=closed.task, name="round-1", source="round", round=closed, access="scoring"
    )
    Example.objects.filter(consensus=None).update(outcome="fooled")  # so each waits to be judged
    with pytest.raises(Refused):
        owner.take_round("nli", "round-1")
    taken = owner.take_round("nli", "round-1", "The paper is due.")
    assert taken["newest"]["version"] == 1
    assert taken["newest"]["is_provisional"]
