"""The client at a real installation: the published snippet, a killed upload, wrong input, data."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.accounts.tokens import create_token
from dynabench import DynabenchClient
from dynabench import client as errors
from dynabench.client import as_dataset, as_pandas
from dynabench.client.archive import compute_file_digest, open_packed
from evaluation.isolation.uploads.chunked import PIECE_BYTES, count_received_bytes
from evaluation.models import EvaluationSet, Submission, Upload
from evaluation.test_sets.services import make_version
from tests.support.boards import ranks_any
from tests.support.evaluations import nli_rows, without_deltas
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.live import ROOT, queue_worker, web_server
from tests.support.releases import closed, people, released  # noqa: F401 - fixtures
from tests.support.serving_models import tiny_model
from tests.support.submissions import work_off

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = ROOT / "docs" / "client.md"


@pytest.fixture
def home(tmp_path, settings, monkeypatch) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def nli(home):
    """Round 1 of a task, which is over and has a set."""
    round = RoundFactory(task=TaskFactory(code="nli"), state="closed")
    ContextFactory.create_batch(3, round=round)
    one = EvaluationSet.objects.create(
        task=round.task, name="round-1", source="round", round=round, access="scoring",
        may_leave=True, answers_public=True,
    )  # fmt: skip
    make_version(one, nli_rows(12), None)
    return round


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
def tiny(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", "pair-classification")


@pytest.fixture
def large(tiny, tmp_path) -> Path:
    """A folder whose archive takes four pieces; nobody loads it."""
    folder = shutil.copytree(tiny, tmp_path / "large")
    with (folder / "model.safetensors").open("ab") as file:
        file.truncate(int(3.5 * PIECE_BYTES))
    return folder


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


def test_the_published_snippet_runs_as_it_stands(home, nli, key, tiny):
    program = snippet(key, tiny)
    without_deltas(nli.task)
    ranks_any(nli.task)
    costs = ", throughput: 1, memory: 1"  # which nothing but a container measures
    nli.task.config_text = nli.task.config_text.replace(costs, "")
    nli.task.save(update_fields=["config_text"])
    assert nli.task.config.leaderboard.weights == {"accuracy": 4}
    with web_server(home) as url:
        with queue_worker(home):
            done = python(program, url, home)
        assert done.returncode == 0, done.stderr + (home / "web.log").read_text()
        score, accuracy = done.stdout.splitlines()
        assert re.fullmatch(r"Dynascore: \d+(\.\d+)?", score)
        assert re.fullmatch(r"Round 1 Accuracy: [01]\.\d+", accuracy)
        assert done.stderr.startswith("tiny.tar: ")
        again = python(program.partition("results =")[0], url, home)
        assert again.returncode == 0, again.stderr
    first, second = Submission.objects.order_by("queued_at")
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


def test_a_killed_upload_goes_on(home, nli, key, large, live_server):
    dead = subprocess.run(
        [sys.executable, "-c", KILLED, key, large], cwd=home,
        env={**os.environ, "DYNABENCH_URL": live_server.url, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert dead.returncode == -signal.SIGKILL
    (upload,) = Upload.objects.all()
    here = count_received_bytes(upload)
    assert 0 < here < upload.size
    told: list[int] = []
    client = DynabenchClient(key, live_server.url, progress=False)
    client._http.event_hooks["request"] = [
        lambda request: (
            told.append(int(request.headers["Content-Length"])) if request.method == "PUT" else None
        )
    ]
    model = client.submit_model(large, "nli")
    submission = Submission.objects.get(pk=model)
    assert submission.upload_id == upload.pk
    assert sum(told) == upload.size - here
    with open_packed(large) as archive:
        assert compute_file_digest(archive) in upload.file_name
        assert count_received_bytes(upload) == archive.seek(0, os.SEEK_END)


@pytest.fixture
def client(home, nli, key, live_server) -> Iterator[DynabenchClient]:
    with DynabenchClient(key, live_server.url, progress=False, retries=0) as client:
        yield client


def test_a_failed_model_says_why(client, tiny, tmp_path):
    broken = shutil.copytree(tiny, tmp_path / "broken")
    (broken / "config.json").write_text("{}")
    model = client.submit_model(broken, "nli")
    work_off()
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
        (lambda c: c.submit_model("nowhere", "nli"), FileNotFoundError, "nowhere"),
        (lambda c: c.submit_model(ROOT / "docs", "nli"), ValueError, "config.json is missing"),
        (lambda c: c.model("no-id"), errors.NotFound, ""),
        (lambda c: c.get_results("0" * 32), errors.NotFound, ""),
        (lambda c: c.leaderboard("nli", {"accuracy": 99}), errors.Invalid, ""),
        (lambda c: c.download_data("nli", 1), errors.NotFound, "none yet"),
        (lambda c: c.download_inputs("nli", "none"), errors.NotFound, ""),
        (lambda c: c.assignment("nli"), errors.DynabenchError, "round"),
        (lambda c: c.validate("0" * 32, "correct"), errors.NotFound, ""),
    ],
)
def test_wrong_input_is_refused_in_words(client, call, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a download goes where the caller is
    with pytest.raises(error) as caught:
        call(client)
    assert words in str(caught.value)
    assert not Submission.objects.exists()


def test_keys_that_do_not_fit(person, nli, live_server, tiny):
    with pytest.raises(errors.AuthenticationError):
        DynabenchClient("dyna_wrong", live_server.url).tasks()
    reading = create_token(user=person, name="reads", scopes=["read"], days=1)[1]
    with pytest.raises(errors.PermissionDenied, match="submit") as caught:
        DynabenchClient(reading, live_server.url).submit_model(tiny, "nli")
    assert caught.value.code == "scope"
    assert [task["code"] for task in DynabenchClient(url=live_server.url).tasks()] == ["nli"]


def test_released_data_comes_whole_and_goes_on(client, home, closed, monkeypatch):  # noqa: F811
    monkeypatch.setenv("HF_DATASETS_CACHE", str(home / "cache"))
    released(closed, private_test=True)
    folder = client.download_data("nli", 1, to=home)
    assert {"train.jsonl", "train.parquet", "dev.jsonl"} <= {path.name for path in folder.iterdir()}
    assert not (folder / "test.jsonl").exists()  # private
    whole = (folder / "train.jsonl").read_bytes()
    (folder / "train.jsonl").unlink()
    (folder / "train.jsonl.part").write_bytes(whole[:100])
    client.download_data("nli", 1, to=home)
    assert (folder / "train.jsonl").read_bytes() == whole
    frame = as_pandas(folder)
    assert set(frame["split"]) == {"train", "dev", "test-unlabelled"}
    assert frame["uid"].is_unique
    assert set(as_dataset(folder)) >= {"train", "dev"}


def test_examples_are_written_and_judged(client, nli, live_server):
    """One account writes, another one judges, both by program."""
    nli.task.config_text += "\nprograms: {judge: true}\n"
    nli.task.save(update_fields=["config_text"])
    round = RoundFactory(task=nli.task, number=2)
    ContextFactory(round=round)
    scripted_target(round, output={"label": "entailment"}, prob={"entailment": 1.0})
    assignment = client.assignment("nli")
    while assignment["goal"] == "entailment":
        assignment = client.assignment("nli", want="goal")
    with pytest.raises(errors.Invalid, match="hypothesis"):
        client.annotate(assignment["id"], {})
    example = client.annotate(assignment["id"], {"hypothesis": "Nobody was ever in this shop."})
    assert (example["outcome"], example["by_program"]) == ("fooled", True)
    assert example["answers"][0]["output"] == {"label": "entailment"}
    assert client.next_to_judge("nli") is None  # it is one's own
    _, key = create_token(user=UserFactory(), name="judges", scopes=["read", "annotate"], days=1)
    other = DynabenchClient(key, live_server.url)
    item = other.next_to_judge("nli")
    assert item["example"] == example["id"]
    assert "label" not in item["inputs"]
    vote = item["choices"][0]["vote"]
    assert other.validate(item["example"], vote)["by_program"]
    other.undo_validation(item["example"])
    assert other.next_to_judge("nli")["example"] == example["id"]
    other.skip(item["example"])
    assert other.next_to_judge("nli") is None
    assert client.my_examples()[0]["id"] == client.example(example["id"])["id"] == example["id"]
    assert client.retract(example["id"])["retracted_at"]


def test_predictions_for_a_set_and_the_board(client, home):
    inputs = client.download_inputs("nli", "round-1", home)
    answers = home / "answers.jsonl"
    with inputs.open() as asked, answers.open("w") as told:
        for line in asked:
            answer = {"id": json.loads(line)["id"], "output": {"label": "neutral"}}
            told.write(json.dumps(answer) + "\n")
    models = [
        client.submit_predictions(answers, "nli", "round-1", name=name, license="MIT")
        for name in ("a", "b")
    ]
    work_off()
    found = [client.get_results(model) for model in models]
    assert [one["round1_acc"] for one in found] == [pytest.approx(1 / 3)] * 2
    (run,) = [run for run in client.runs(models[0]) if run["suite"] == "plain"]
    assert (run["evaluation_set"], run["outcome"]) == ("round-1", "ok")
    assert any(one["metric"] == "accuracy" for one in client.scores(models[0]))
    board = client.leaderboard("nli", {"accuracy": 1}, mine=True)
    assert {row["model"] for row in board["rows"]} == {"a", "b"}
    assert client.leaderboard("nli")["rows"] == []
    assert client.publish(models[0])["is_published"]
    assert [row["model"] for row in client.leaderboard("nli")["rows"]] == ["a"]
    assert client.compare(*models)["rows"][0]["difference"]["value"] == 0
    assert client.update_card(models[0], license="BSD")["card"]["license"] == "BSD"
    assert client.quota("nli")["left"] == client.quota("nli")["most"] - 2
    assert {model["name"] for model in client.models()} == {"a", "b"}
    assert [model["name"] for model in client.models("nli")] == ["a"]
    assert client.snapshots("nli") == []
    assert client.withdraw(models[1])["phase"] == "withdrawn"
    with pytest.raises(errors.EvaluationFailed, match="withdrawn"):
        client.get_results(models[1])
