"""The sandbox on a real engine: what it gives, what it measures, how it ends."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dynabench.operations.attacks.bench import BENCH_LIMITS, EXAMPLE_COUNT, LABELS, Bench
from evaluation.contract import MIB, BeatCallback, Outcome, Runnable
from evaluation.isolation.inference.exchange import CollectedAnswers
from evaluation.isolation.sandbox import usage as sandbox_usage
from evaluation.isolation.sandbox.containers import (
    NAME_PREFIX,
    NO_GPU_MESSAGE,
    DockerRunner,
    list_own_containers,
    remove_container,
)
from evaluation.isolation.sandbox.engine import connect_to_engine, find_engine
from evaluation.isolation.sandbox.images import has_image

SLEEP = "import time\ntime.sleep(60)"


def once_running(key: str, act: Callable[[], None]) -> BeatCallback:
    """A heartbeat that does something as soon as the container runs."""
    waiting = [act]

    def beat() -> None:
        if waiting and any(ours.is_running for ours in list_own_containers(key)):
            waiting.pop()()

    return beat


def test_the_engine_says_what_it_is():
    found = find_engine()
    assert found.version
    assert found.cgroup in ("1", "2")
    assert found.cpus >= 1
    assert DockerRunner("x").name == ("docker-runsc" if found.has_runsc else "docker")


def test_a_gpu_is_asked_of_the_engine_and_one_that_has_none_says_so(bench: Bench, tmp_path):
    model, inputs = Runnable(image=bench.image, gpu="3"), tmp_path / "inputs.jsonl"
    inputs.touch()
    runner = DockerRunner(f"gpu-{bench.token}")
    with closing(connect_to_engine()) as client:
        image, runtimes = client.images.get(bench.image), client.info()["Runtimes"]
    (asked,) = runner._build_options(image, model, inputs, BENCH_LIMITS)["device_requests"]
    assert (asked.device_ids, asked.capabilities) == (["3"], [["gpu"]])
    assert not runner._build_options(image, replace(model, gpu=""), inputs, BENCH_LIMITS)[
        "device_requests"
    ]
    if "nvidia" not in runtimes:
        ending = runner.run(model, inputs, BENCH_LIMITS, take=lambda line: None, beat=lambda: None)
        assert (ending.outcome, ending.sentence) == (Outcome.INFRASTRUCTURE, NO_GPU_MESSAGE)
        assert runner.name.endswith("-gpu")


def test_a_good_model_is_measured(bench: Bench):
    seen = bench.run(
        """
import time
kept = bytearray(60 * 2**20)
end = time.process_time() + 1
while time.process_time() < end: pass
for example in examples:
    answer(example, "no")
    time.sleep(0.05)
""",
    )
    ending, usage = seen.ending, seen.ending.usage
    assert ending.outcome == Outcome.OK
    assert (ending.sentence, ending.log, ending.warnings) == ("", "", ())
    assert seen.labels == ["no"] * EXAMPLE_COUNT
    assert usage.answers == EXAMPLE_COUNT
    assert usage.cpu_seconds >= 0.8  # the last look may have been before the end
    assert 60 * MIB < usage.peak_bytes < 120 * MIB
    assert 30 * MIB < usage.mean_bytes <= usage.peak_bytes
    assert usage.start_seconds >= 1
    assert usage.answer_seconds >= (EXAMPLE_COUNT - 1) * 0.05
    assert 0 < usage.examples_per_second <= 20
    assert usage.seconds >= usage.start_seconds + usage.answer_seconds


def test_who_computes_first_and_answers_then_is_not_fast(bench: Bench, monkeypatch):
    monkeypatch.setattr(sandbox_usage, "STARTING_SECONDS", 0.5)
    seen = bench.run(
        "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass\n"
        "for example in examples:\n    answer(example)\n    time.sleep(0.01)"
    )
    usage = seen.ending.usage
    assert usage.examples_per_second <= EXAMPLE_COUNT / 2
    assert "worked ahead" in seen.ending.warnings[0]


def test_the_environment_is_empty(bench: Bench, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "must not be seen")
    seen = bench.run(
        "import os\nprint(sorted(os.environ), os.getuid(), os.getgid(), file=sys.stderr)\n"
        "print(open('/etc/resolv.conf').read(), file=sys.stderr)\nanswer_all()"
    )
    names = "['HOME', 'HOSTNAME', 'LANG', 'OMP_NUM_THREADS', 'PATH', 'PYTHONUNBUFFERED']"
    assert seen.ending.log.strip() == f"{names} 65534 65534"


def test_who_dies_in_the_middle_of_a_line_is_told_why(bench: Bench):
    script = "answer_all()\nprint('{\"id\": ', end='', flush=True)\n"
    assert bench.run(script + "bytearray(10**9)").ending.outcome == Outcome.OOM
    ending = bench.run(script + "sys.exit(3)").ending
    assert ending.outcome == Outcome.MODEL_ERROR
    assert "exit code 3" in ending.sentence
    assert bench.run(script).ending.outcome == Outcome.INVALID_OUTPUT


def test_two_processors_are_not_more_than_one(bench: Bench):
    """Two busy processes for 2 s use 2 processor seconds, not 4."""
    seen = bench.run(
        "import os, time\nos.fork()\nend = time.monotonic() + 2\n"
        "while time.monotonic() < end: pass\nos._exit(0)"
    )
    assert seen.ending.usage.cpu_seconds < 2.6


def test_a_folder_needs_the_runtime_image(bench: Bench, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "evaluation.isolation.sandbox.containers.RUNTIME_IMAGE", "dynabench-no-such-image"
    )
    ending = DockerRunner(bench.create_key()).run(
        Runnable(folder=tmp_path),
        bench.write_inputs(""),
        BENCH_LIMITS,
        take=print,
        beat=lambda: None,
    )
    assert ending.outcome == Outcome.INFRASTRUCTURE
    assert "scripts/runtime_image.sh" in ending.sentence
    monkeypatch.setattr(
        "evaluation.isolation.sandbox.containers.CUDA_IMAGE", "dynabench-no-such-image"
    )
    ending = DockerRunner(bench.create_key()).run(
        Runnable(folder=tmp_path, gpu="0"),
        bench.write_inputs(""),
        BENCH_LIMITS,
        take=print,
        beat=lambda: None,
    )
    assert "runtime_image.sh --cuda" in ending.sentence


def test_an_image_that_is_gone_is_our_fault(bench: Bench):
    seen = bench.run("", image=f"sha256:{'0' * 64}")
    assert seen.ending.outcome == Outcome.INFRASTRUCTURE
    assert seen.ending.sentence == "The image is not on this worker."


@pytest.mark.parametrize(
    ("instructions", "outcome", "told"),
    [
        (["ENTRYPOINT []", "CMD []"], Outcome.REJECTED, "No command specified"),
        (["VOLUME /proc"], Outcome.REJECTED, "unable to start container process"),
        (['ENTRYPOINT ["/none"]'], Outcome.MODEL_ERROR, "cannot be started (exit code 127)"),
        (['ENTRYPOINT ["/etc/passwd"]'], Outcome.MODEL_ERROR, "(exit code 126)"),
    ],
)
def test_an_image_that_cannot_start_is_told_why(bench: Bench, instructions, outcome, told):
    ending = bench.run("", image=bench.build_image(*instructions)).ending
    assert ending.outcome == outcome
    assert told in ending.sentence
    assert not bench.list_leftover_containers()


def kill(key: str) -> None:
    with closing(connect_to_engine()) as client:
        client.api.kill(NAME_PREFIX + key)


@pytest.mark.parametrize("end_it", [kill, lambda key: remove_container(NAME_PREFIX + key)])
def test_who_ends_a_container_from_outside_is_not_the_model(bench: Bench, end_it):
    key = bench.create_key()
    seen = bench.run(SLEEP, key=key, beat=once_running(key, lambda: end_it(key)))
    assert seen.ending.outcome == Outcome.INFRASTRUCTURE


def test_what_is_left_of_the_same_attempt_is_no_obstacle(bench: Bench):
    key, lines = bench.create_key(), []
    with closing(connect_to_engine()) as client:
        client.containers.create(bench.image, name=NAME_PREFIX + key)
    ending = DockerRunner(key).run(
        Runnable(image=bench.image, labels=LABELS),
        bench.write_inputs("for example in examples: answer(example)"),
        BENCH_LIMITS,
        take=lines.append,
        beat=lambda: None,
    )
    assert ending.outcome == Outcome.OK, ending
    assert len(lines) == EXAMPLE_COUNT
    assert not list_own_containers(key)


def test_the_lease_is_kept_while_nothing_comes(bench: Bench):
    beats = []
    bench.run(
        SLEEP, limits=replace(BENCH_LIMITS, seconds=5), beat=lambda: beats.append(time.monotonic())
    )
    assert len(beats) >= 3


def test_a_bug_of_ours_ends_the_model_and_is_seen(bench: Bench):
    def take(line: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        DockerRunner(bench.create_key()).run(
            Runnable(image=bench.image), bench.write_inputs("answer_all()"), BENCH_LIMITS,
            take=take, beat=lambda: None,
        )  # fmt: skip
    assert not bench.list_leftover_containers()


def test_a_full_disk_is_not_the_model(bench: Bench):
    def take(line: bytes) -> None:
        raise OSError(28, "No space left on device")

    ending = DockerRunner(bench.create_key()).run(
        Runnable(image=bench.image), bench.write_inputs("answer_all()"), BENCH_LIMITS,
        take=take, beat=lambda: None,
    )  # fmt: skip
    assert ending.outcome == Outcome.INFRASTRUCTURE


def test_answers_that_come_late_keep_their_place(bench: Bench):
    answers = CollectedAnswers("label", LABELS, [f"e{number}" for number in range(EXAMPLE_COUNT)])
    script = "for n in reversed(range(40)): answer(examples[n], 'no' if n == 3 else 'yes')"
    DockerRunner(bench.create_key()).run(
        Runnable(image=bench.image), bench.write_inputs(script), BENCH_LIMITS, take=answers.take,
        beat=lambda: None,
    )  # fmt: skip
    assert [answer.value for answer in answers.iterate_in_order()].index("no") == 3


def test_the_engine_dies_in_the_middle_and_what_it_left_is_found_later(
    bench: Bench, wire, monkeypatch
):
    key = bench.create_key()
    seen = bench.run(SLEEP, key=key, beat=once_running(key, wire.close))
    assert seen.ending.outcome == Outcome.INFRASTRUCTURE
    monkeypatch.delenv("DOCKER_HOST")
    assert [ours.name for ours in list_own_containers(key)] == [NAME_PREFIX + key]
    remove_container(NAME_PREFIX + key)
    assert not list_own_containers(key)


def test_the_engine_starts_again_in_the_middle(bench: Bench, wire):
    key = bench.create_key()
    seen = bench.run(SLEEP, key=key, beat=once_running(key, wire.cut))
    assert seen.ending.outcome == Outcome.INFRASTRUCTURE
    assert not bench.list_leftover_containers()


def test_no_engine_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert find_engine() is None


def test_an_image_is_there_or_not(bench: Bench):
    assert has_image(bench.image)
    assert not has_image("dynabench-no-such-image")


def test_inputs_of_a_private_folder_can_be_read(bench: Bench, tmp_path: Path):
    inputs = bench.write_inputs("answer_all()")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    moved = inputs.rename(private / "inputs.jsonl")
    moved.chmod(0o600)
    ending = DockerRunner(bench.create_key()).run(
        Runnable(image=bench.image), moved, BENCH_LIMITS, take=lambda line: None, beat=lambda: None
    )
    assert ending.outcome == Outcome.OK
