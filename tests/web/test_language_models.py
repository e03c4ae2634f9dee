"""Language models that write their answers here: handed in, run, shown with their prompt."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile

from dynabench.lib.errors import Invalid
from evaluation.chat.settings import settings_for
from evaluation.contract import Outcome, Writing
from evaluation.models import Submission
from evaluation.runs.endpoints import identity_of
from evaluation.submissions.services import submit_model
from evaluation.uploads.chunked import add_file
from tests.support.archives import zipped
from tests.support.made_sets import make_set, task  # noqa: F401
from tests.support.said import Said
from tests.support.serving_models import tiny_writer
from tests.support.submissions import url_of, work_off

State = Submission.State


@pytest.fixture(autouse=True)
def _places(settings, tmp_path):
    settings.MEDIA_ROOT, settings.MODEL_CACHE = tmp_path / "media", tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_writer(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def said(monkeypatch):
    runner = Said(lambda n: "Neutral.")
    monkeypatch.setattr("evaluation.runs.execute.runner_for", lambda *_: runner)
    return runner


def hand_in(task, owner, folder, name="Neutral", **told):
    data = zipped(folder)
    upload = add_file(owner, "model.zip", len(data), ContentFile(data))
    chat = settings_for(task.config, **told)
    return submit_model(task=task, owner=owner, kind="llm", name=name, upload=upload, chat=chat)


def test_it_is_asked_with_its_prompt_and_scored(task, as_alice, folder, said):
    make_set(task, "sealed")
    told = {"kind": "llm", "name": "N", "prompt": "own", "instructions": "Decide.", "stop": "\\n"}
    file = SimpleUploadedFile("model.zip", zipped(folder))
    reply = as_alice.post("/t/nli/submit/", told | {"upload": file})
    assert reply.status_code == 302
    work_off()
    submission = Submission.objects.get()
    assert (submission.state, submission.error) == (State.DONE, "")
    run = submission.runs.get()
    assert run.outcome == Outcome.OK
    assert run.scores.get(metric="accuracy", slice="").value == 1.0
    assert run.usage["tokens_out"] == 2 * 6
    assert said.models[-1].writing == Writing(256, ("\n",))
    assert said.asked[-1][0]["content"].startswith("Decide.")
    page = as_alice.get(url_of(submission)).text
    assert "Decide." in page
    assert submission.chat["stop"] == ["\n"]


def test_prompt_and_files_are_its_identity(task, alice, folder):
    one, same, other = (
        hand_in(task, alice, folder, name, instructions=text)
        for name, text in (("a", "Decide."), ("b", "Decide."), ("c", "Choose."))
    )
    digests = [identity_of(each, "f" * 64) for each in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
    assert identity_of(one, "e" * 64) != digests[0]


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"model": "m"}, "model"),
        ({"temperature": 1.0}, "temperature"),
        ({"most_cost": 2.0}, "most_cost"),
        ({"stop": ("",)}, "stop"),
        ({"template": "{premise}"}, "template"),
        ({}, "revision"),  # neither a file nor a whole hub id
    ],
)
def test_what_is_wrong_is_named(task, alice, told, field):
    with pytest.raises(Invalid) as refused:
        submit_model(
            task=task, owner=alice, kind="llm", name="N", source="org/name",
            chat=settings_for(task.config, **told),
        )  # fmt: skip
    assert refused.value.field == field
    assert not Submission.objects.exists()
