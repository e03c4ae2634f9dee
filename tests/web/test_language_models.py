"""Language models that write their answers here: handed in, run, shown with their prompt."""

# ruff: noqa: F811  (fixtures are named where they are used)

import shutil
from functools import partial

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile

from core.errors import Invalid
from evaluation.contract import Outcome, Runnable, WritingSettings
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.uploads.chunked import add_file
from evaluation.models import Submission
from evaluation.runs.chat.settings import make_chat_settings
from evaluation.runs.endpoints import compute_identity
from evaluation.runs.folders import equip_model
from evaluation.submissions.services import submit_model
from tasks.models import TargetModel
from tests.support.adapters import sound_adapter
from tests.support.archives import zipped
from tests.support.made_sets import make_set, task  # noqa: F401
from tests.support.said import Said
from tests.support.serving_models import tiny_writer
from tests.support.submissions import url_of, work_off

State = Submission.State
IMAGE = f"registry/name@sha256:{'0' * 64}"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def _places(settings, tmp_path):
    settings.MEDIA_ROOT, settings.MODEL_CACHE = tmp_path / "media", tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_writer(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def said(monkeypatch):
    runner = Said(lambda n: "Neutral.")
    monkeypatch.setattr("evaluation.runs.carriers.choose_runner", lambda *_: runner)
    return runner


def hand_in(task, owner, folder, name="Neutral", base="", **told):
    data = zipped(folder)
    upload = add_file(owner, "model.zip", len(data), ContentFile(data))
    asked = {"chat": make_chat_settings(task.config, **told), "base": base}
    return submit_model(task=task, owner=owner, kind="llm", name=name, upload=upload, **asked)


@pytest.fixture
def lora(tmp_path):
    return sound_adapter(tmp_path / "lora")


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
    assert said.models[-1].writing_settings == WritingSettings(256, ("\n",))
    assert said.asked[-1][0]["content"].startswith("Decide.")
    page = as_alice.get(url_of(submission)).text
    assert "Decide." in page
    assert submission.chat["stop"] == ["\n"]


def test_prompt_and_files_are_its_identity(task, alice, folder):
    one, same, other = (
        hand_in(task, alice, folder, name, instructions=text)
        for name, text in (("a", "Decide."), ("b", "Decide."), ("c", "Choose."))
    )
    digests = [compute_identity(each, "f" * 64) for each in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
    assert compute_identity(one, "e" * 64) != digests[0]


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
            chat=make_chat_settings(task.config, **told),
        )  # fmt: skip
    assert refused.value.field == field
    assert not Submission.objects.exists()


def test_an_adapter_runs_on_its_base(task, alice, folder, lora, said):
    make_set(task, "sealed")
    whole = hand_in(task, alice, folder)
    work_off()
    said.models.clear()
    one = hand_in(task, alice, lora, "Adapter", base=str(whole.pk))
    work_off()
    one.refresh_from_db()
    assert (one.state, one.error) == (State.DONE, "")
    assert one.runs.get().outcome == Outcome.OK
    used = said.models[-1]
    assert (used.folder.name, used.lora.name) == (
        Submission.objects.get(pk=whole.pk).digest,
        one.digest,
    )
    assert compute_identity(one, "f" * 64) != compute_identity(whole, "f" * 64)


def test_a_base_of_the_hub_is_fetched_once(task, alice, folder, lora, said, monkeypatch):
    fetched = []

    def fetch(spec, into, most):
        fetched.append((spec.source, spec.revision))
        shutil.copytree(folder, into)

    monkeypatch.setattr("evaluation.runs.folders.fetch_public_model", fetch)
    make_set(task, "sealed")
    hand_in(task, alice, lora, base=f"org/name@{COMMIT}")
    work_off()
    assert Submission.objects.get().runs.get().outcome == Outcome.OK
    assert fetched == [("org/name", COMMIT)]


def test_what_is_no_adapter_or_has_no_base_is_refused(task, alice, folder, lora, said):
    whole = hand_in(task, alice, folder, base=f"org/name@{COMMIT}")
    alone = hand_in(task, alice, lora, "Adapter")
    work_off()
    for one in (whole, alone):
        one.refresh_from_db()
        assert (one.state, one.outcome) == (State.FAILED, Outcome.REJECTED)


def test_only_a_model_that_may_be_seen_is_a_base(task, alice, bob, folder, lora, said):
    make_set(task, "sealed")
    whole = hand_in(task, bob, folder)
    work_off()
    for base in ("org/name", "org/name@main", str(whole.pk), "no id"):
        with pytest.raises(Invalid) as refused:
            hand_in(task, alice, lora, base=base)
        assert refused.value.field == "base"
    Submission.objects.update(is_published=True)
    assert hand_in(task, alice, lora, name="Mine", base=str(whole.pk)).base


def image(task, owner, **told):
    asked = {"kind": "image", "source": IMAGE} | told
    return submit_model(task=task, owner=owner, name="I", **asked)


def test_a_gpu_is_refused_with_the_reason_where_there_is_none(task, as_alice, alice, settings):
    told = {"kind": "image", "name": "I", "source": IMAGE, "adapter": "jsonl", "gpus": "on"}
    reply = as_alice.post("/t/nli/submit/", told)
    assert (reply.status_code, 'href="#id_gpus"' in reply.text) == (422, True)
    settings.EVALUATION_GPUS = 2
    writer = {"kind": "llm", "source": "org/name", "revision": COMMIT, "gpus": 1}
    for wrong in ({"gpus": 2}, writer):
        with pytest.raises(Invalid) as refused:
            image(task, alice, **wrong)
        assert refused.value.field == "gpus"
    assert as_alice.post("/t/nli/submit/", told).status_code == 302
    assert Submission.objects.get().gpus == 1


def test_no_two_models_have_one_gpu(task, alice, settings):
    settings.EVALUATION_GPUS = 2
    submission = image(task, alice, gpus=1)
    take = partial(equip_model, submission, Runnable(image="sha256:0"), lambda: None)
    with take() as one, take() as other:
        assert {one.gpu, other.gpu} == {"0", "1"}
        with pytest.raises(NoEngine), take():
            pass
    with take() as again:
        assert again.gpu == "0"
    submission.target, submission.gpus = TargetModel(gpus=1), 0  # which says it itself
    with take() as target:
        assert target.gpu == "0"
    settings.EVALUATION_GPUS = 0
    with pytest.raises(NoEngine), take():
        pass
