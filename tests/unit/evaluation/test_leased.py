"""What a machine of others runs for a lease: the model in the sandbox, its answers in a file."""

import hashlib
import json
import os
import signal
import tarfile
import time

import pytest
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from core.web.api import read
from evaluation.api.own_workers import LeaseAnswersSerializer
from evaluation.contract import MIB, Ending, Outcome
from evaluation.isolation.inference import leased
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.sandbox.usage import ResourceSample, RunMeasurements
from tasks.services import OFFICIAL_FOLDER
from tests.support.evaluations import ScriptedRunner

LINES = [{"id": f"x{n}", "inputs": {"premise": "a", "hypothesis": "b"}} for n in range(3)]


@pytest.fixture(autouse=True)
def signals():
    """As they were before."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def asked(tmp_path):
    """The arguments for a lease, whose model is a folder of one file."""
    (tmp_path / "inputs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in LINES))
    (tmp_path / "config.json").write_text("{}")
    with tarfile.open(tmp_path / "model.tar", "w") as archive:
        archive.add(tmp_path / "config.json", "config.json")
    config, name = OFFICIAL_FOLDER / "nli" / "task.yaml", hashlib.sha256(b"config.json\x002\x00{}")
    digest = f"--digest={name.hexdigest()}"
    return [str(tmp_path), f"--config={config}", "--key=own-1", digest, "--memory-gib=2"]


def test_answers_are_written_and_the_end_is_told(asked, tmp_path, monkeypatch, capsys):
    models = []
    monkeypatch.setattr(
        leased, "choose_runner", lambda model, key, name: models.append(model) or ScriptedRunner()
    )
    assert leased.main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["runner"], told["ending"]["outcome"]) == ("scripted", "ok")
    assert told["ending"]["usage"]["examples_per_second"] == 3
    answers = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in answers] == ["x0", "x1", "x2"]
    assert (models[0].folder / "config.json").read_text() == "{}"


def test_the_api_takes_the_usage_of_a_real_run(asked, monkeypatch, capsys):
    """Its measurements stay on that machine."""
    measurements = RunMeasurements(0.0)
    for second in range(1, 9):
        measurements.record_sample(ResourceSample(float(second), MIB), float(second))
        measurements.record_answers(1, float(second))
    measurements.single_seconds = [0.5, 0.25]
    usage, _warning = measurements.compute_usage(9.0, is_trusted=True)
    assert usage.measurements
    runner = ScriptedRunner(ending=Ending(Outcome.OK, usage))
    monkeypatch.setattr(leased, "choose_runner", lambda *arguments: runner)
    leased.main(asked)
    told = json.loads(capsys.readouterr().out)
    request = APIRequestFactory().post("/", told, format="json")
    taken = read(LeaseAnswersSerializer, APIView().initialize_request(request))
    assert taken["ending"]["usage"]["latency_p95_seconds"] == usage.latency_p95_seconds


def test_no_sandbox_is_left_where_the_lease_is_lost(asked, monkeypatch):
    removed = []

    class Slow(ScriptedRunner):
        def run(self, *arguments, **more):
            try:
                assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(5)
            finally:
                removed.append("sandbox")

    monkeypatch.setattr(leased, "choose_runner", lambda *arguments: Slow())
    with pytest.raises(SystemExit):
        leased.main(asked)
    assert removed == ["sandbox"]


def test_another_model_than_the_checked_one_is_not_run(asked, monkeypatch, capsys):
    monkeypatch.setattr(leased, "choose_runner", lambda *arguments: pytest.fail("it ran"))
    assert leased.main([*asked, "--digest=another"]) == 0
    assert json.loads(capsys.readouterr().out)["ending"]["outcome"] == "infrastructure"


def test_where_nothing_runs_it_the_machine_has_failed(asked, monkeypatch, capsys):
    def none(*arguments):
        raise NoEngine("No engine.")

    monkeypatch.setattr(leased, "choose_runner", none)
    assert leased.main(asked) == 0
    ending = json.loads(capsys.readouterr().out)["ending"]
    assert (ending["outcome"], ending["sentence"]) == ("infrastructure", "No engine.")
