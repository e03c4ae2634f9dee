"""One's own model on one's own machine, at the real API: from the permission to the scores."""

import json

import pytest
from django.core.files.base import ContentFile

from dynabench.client import NotFound
from evaluation import jobs
from tests.support.evaluations import accepted_model, queued_run, set_version


def test_a_lease_is_taken_answered_and_scored(client_of, alice, bob, nli, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    owner, worker = client_of(alice, nli.task, "owner"), client_of(bob)
    made = owner.add_own_worker("nli", bob.email, takes_sealed=True, second="nobody")
    assert [one["id"] for one in owner.own_workers("nli")] == [made["id"]]
    assert worker.take_lease("nli") is None
    model = accepted_model(nli.task, bob, digest="d")
    model.file.save("model.tar", ContentFile(b"weights"))
    run = queued_run(model, set_version(nli.task, may_leave=True))
    lease = worker.take_lease("nli", model=str(model.pk))
    worker.fetch_lease(lease["token"], tmp_path)
    assert (tmp_path / "model.tar").read_bytes() == b"weights"
    ids = [json.loads(line)["id"] for line in (tmp_path / "inputs.jsonl").read_text().splitlines()]
    answers = tmp_path / "answers.jsonl"
    lines = [json.dumps({"id": id, "output": {"label": "neutral"}}) + "\n" for id in ids]
    answers.write_text("".join(lines))
    worker.keep_lease(lease["token"], 0.9)
    ending = {"outcome": "ok", "usage": {"seconds": 2.0, "answers": len(ids)}}
    worker.end_lease(lease["token"], answers, "process", ending)
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    assert (run.outcome, run.runner) == ("ok", "own-process"), run.error
    assert run.scores.get(metric="accuracy", slice="").value == pytest.approx(1 / 3)
    owner.remove_own_worker("nli", made["id"])
    with pytest.raises(NotFound):
        worker.take_lease("nli")
