"""A kind of submission from one new file, the example of docs/extending.md, at each door."""

import pytest

from evaluation.jobs import check_submission
from evaluation.models import Submission
from evaluation.submissions import intake
from tests.support import schema_watch
from tests.support.evaluations import ScriptedRunner
from tests.support.factories import TaskFactory
from tests.support.guide import example_of
from tests.support.submissions import make_set, url_of


@pytest.fixture
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def _space():
    with example_of("Add a kind of submission"):
        yield


@pytest.mark.usefixtures("_space")
def test_one_file_makes_a_kind_at_every_door(as_alice, api, media, monkeypatch):
    monkeypatch.setattr(intake, "_choose_runner", lambda *_: ScriptedRunner())
    task = TaskFactory(code="nli")
    make_set(task, "open", may_leave=True)
    assert 'href="?kind=space"' in as_alice.get("/t/nli/submit/").text
    assert 'name="source"' in as_alice.get("/t/nli/submit/?kind=space").text
    sent = {"kind": "space", "name": "Mine", "source": "example"}
    assert as_alice.post("/t/nli/submit/", sent).context["form"].errors.keys() == {"source"}
    sent["source"] = "org/demo"
    assert as_alice.post("/t/nli/submit/", sent).status_code == 302
    submission = Submission.objects.get()
    check_submission(submission.pk)
    submission.refresh_from_db()
    assert (submission.state, submission.source) == ("done", "https://org-demo.hf.space")
    assert submission.runs.count() == 1 + len(task.config.metrics.deltas)
    assert submission.get_kind_display() == "a Space on the hub"
    # The head of the page begins with it.
    assert "A Space on the hub" in as_alice.get(url_of(submission)).text
    reply = api.post("/api/v1/tasks/nli/models/", {**sent, "name": "Another"})
    assert (reply.status_code, reply.json()["kind"]) == (201, "space")
    # The committed schema does not name this kind.
    assert all("space" in difference for difference in schema_watch.found)
    schema_watch.found.clear()
