"""The runner without an engine: our harness in a real process, under real limits."""

import json
import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.contract import MIB, Ending, InvalidOutput, Outcome, Runnable
from evaluation.isolation.sandbox import limits as sandbox_limits
from evaluation.isolation.sandbox import process as process_runner
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.process import ProcessRunner, sample_process
from tests.support.serving_models import tiny_model

KIND = "sequence-classification"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Runnable:
    folder = tiny_model(tmp_path_factory.mktemp("models") / "tiny", KIND)
    return Runnable(folder=folder, fields=("text",), output="label", labels=("no", "yes"))


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    file = tmp_path / "examples.jsonl"
    rows = [{"id": f"x{n}", "inputs": {"text": "word " * (n % 7 + 1)}} for n in range(300)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def run(model: Runnable, inputs: Path, **options: Any) -> tuple[Ending, list[dict[str, Any]]]:
    lines: list[bytes] = []
    given = {"limits": Limits(), "take": lines.append, "beat": lambda: None} | options
    limits = given.pop("limits")
    ending = ProcessRunner().run(model, inputs, limits, **given)
    return ending, [json.loads(line) for line in lines]


def test_a_folder_is_answered_and_measured_until_an_answer_is_not_taken(
    model: Runnable, inputs: Path
) -> None:
    beats: list[None] = []
    ending, answers = run(model, inputs, beat=lambda: beats.append(None))
    assert ending.outcome == Outcome.OK, ending
    assert {answer["id"] for answer in answers} == {f"x{n}" for n in range(300)}
    assert {answer["output"]["label"] for answer in answers} <= {"no", "yes"}
    usage = ending.usage
    assert usage.answers == 300
    assert 50 * MIB < usage.mean_bytes <= usage.peak_bytes
    assert usage.cpu_seconds > 0
    assert 0 < usage.latency_seconds <= usage.latency_p95_seconds
    assert 0 < usage.start_seconds <= usage.seconds
    assert beats

    again: list[Any] = []

    def take(line: bytes) -> None:
        again.append(json.loads(line))
        if len(again) == 300:
            raise InvalidOutput("Line 300: no.")

    ending, _ = run(model, inputs, take=take)
    assert (ending.outcome, ending.sentence) == (Outcome.INVALID_OUTPUT, "Line 300: no.")
    assert again == answers  # the same model, the same numbers


@pytest.mark.parametrize("more", [0, 12])
def test_it_is_behind_the_site_and_never_gets_ahead(more: int) -> None:
    nice = min(19, os.getpriority(os.PRIO_PROCESS, 0) + more)
    behind = {"preexec_fn": lambda: os.nice(more)}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, **behind) as one:
        process_runner._apply_limits(one.pid, Limits())
        assert os.getpriority(os.PRIO_PROCESS, one.pid) == max(10, nice)


def test_its_last_word_is_the_reason(model: Runnable, inputs: Path) -> None:
    ending, answers = run(replace(model, labels=("no", "maybe")), inputs)
    assert ending.outcome == Outcome.MODEL_ERROR
    assert re.search(r" no, yes;.* no, maybe\.", ending.sentence)
    assert ending.sentence in ending.log
    assert not answers


@pytest.mark.parametrize(
    ("limits", "outcome", "limit"),
    [
        (Limits(memory_bytes=64 * MIB), Outcome.OOM, "64 MiB"),
        (Limits(seconds=0.5), Outcome.TIMEOUT, "0.5 seconds"),
        (Limits(output_bytes=1000), Outcome.OUTPUT_TOO_LARGE, "1000 bytes"),
    ],
)
def test_a_limit_ends_it(
    limits: Limits, outcome: Outcome, limit: str, model: Runnable, inputs: Path
) -> None:
    ending, _ = run(model, inputs, limits=limits)
    assert (ending.outcome, ending.limit) == (outcome, limit)
    assert ending.sentence
    assert ending.measured


def test_more_than_the_address_space_is_an_error_of_the_model(
    model: Runnable, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What asks for everything at once is refused before anything can be sampled."""
    monkeypatch.setattr(sandbox_limits, "PROCESS_SLACK_BYTES", 0)
    ending, _ = run(model, inputs, limits=Limits(memory_bytes=600 * MIB))
    assert ending.outcome == Outcome.MODEL_ERROR


def test_no_process_is_left_when_the_heartbeat_fails(
    model: Runnable, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int] = []

    def noted(pid: int) -> Any:
        pids.append(pid)
        return sample_process(pid)

    def beat() -> None:
        if pids:
            raise RuntimeError("the lease is lost")

    monkeypatch.setattr(process_runner, "sample_process", noted)
    with pytest.raises(RuntimeError, match="the lease is lost"):
        run(model, inputs, beat=beat)
    assert not Path(f"/proc/{pids[0]}").exists()


def test_it_sees_nothing_of_our_environment_and_killed_from_outside_it_has_no_fault(
    model: Runnable, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def kill_once_started(pid: int) -> None:
        with suppress(ProcessLookupError):  # it may have been killed at the last look
            found.append(Path(f"/proc/{pid}/environ").read_text())
            if "evaluation.isolation.sandbox.harness" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)

    monkeypatch.setenv("SECRET_KEY", "of the site")
    monkeypatch.setattr(process_runner, "sample_process", kill_once_started)
    assert run(model, inputs)[0].outcome == Outcome.INFRASTRUCTURE
    assert any("PYTHONPATH" in text for text in found)
    assert not any("of the site" in text for text in found)


def test_what_is_gone_cannot_be_sampled() -> None:
    assert sample_process(2**22 + 1) is None
