"""The runner for remote endpoints: batches, patience, and how each failure ends a run."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.contract import Ending, InvalidOutput, Outcome, Runnable, Usage
from evaluation.isolation.sandbox import endpoint
from evaluation.isolation.sandbox.endpoint import EndpointRunner, describe_named_answers
from evaluation.isolation.sandbox.limits import CallLimits, Limits
from evaluation.isolation.sandbox.meter import Meter
from tasks.targets.endpoints.base import EndpointError, Prediction
from tasks.targets.endpoints.base import Usage as Tokens

CALLS = CallLimits(longest_wait_seconds=0.0)  # nobody waits between two tries
MODEL = Runnable(fields=("text",), output="label", labels=("no", "yes"))


class Remote:
    """Answers "yes"; `before` is called with each batch and may raise."""

    def __init__(self, before: Callable[[Sequence[Mapping[str, Any]]], None]) -> None:
        self.before = before
        self.sizes: list[int] = []

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]:
        self.sizes.append(len(batch))
        self.before(batch)
        return [Prediction({"label": "yes"}, {"yes": 1.0}, 0.1, {}) for _ in batch]

    def info(self, *, deadline_seconds: float) -> Any:
        raise AssertionError


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    file = tmp_path / "examples.jsonl"
    rows = [{"id": f"x{n}", "inputs": {"text": f"text {n}"}} for n in range(40)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def run(remote: Remote, examples: Path, **options: Any) -> tuple[Ending, list[dict[str, Any]]]:
    lines: list[bytes] = []
    given = {"limits": Limits(), "take": lines.append, "beat": lambda: None} | options
    limits = given.pop("limits")
    ending = EndpointRunner(remote, CALLS).run(MODEL, examples, limits, **given)
    return ending, [json.loads(line) for line in lines]


def failing(times: int, error: EndpointError) -> Callable[[Any], None]:
    left = [error] * times

    def before(_: Any) -> None:
        if left:
            raise left.pop()

    return before


def always(error: EndpointError) -> Callable[[Any], None]:
    def before(_: Any) -> None:
        raise error

    return before


def test_all_are_answered_in_batches(examples: Path) -> None:
    remote = Remote(lambda batch: None)
    ending, answers = run(remote, examples)
    assert ending.outcome == Outcome.OK
    assert ending.usage.answers == 40
    assert ending.usage.peak_bytes is None
    assert sorted(remote.sizes) == [8, 16, 16]
    assert max(remote.sizes) == CALLS.examples
    assert {answer["id"] for answer in answers} == {f"x{n}" for n in range(40)}
    assert answers[0]["output"] == {"label": "yes"}
    assert answers[0]["prob"] == {"yes": 1.0}


@pytest.mark.parametrize("reason", ["busy", "down", "slow"])
def test_what_may_pass_is_tried_again(examples: Path, reason: Any) -> None:
    ending, answers = run(
        Remote(failing(CALLS.attempts - 1, EndpointError("no", reason))), examples
    )
    assert ending.outcome == Outcome.OK
    assert len(answers) == 40


def test_busy_may_be_said_as_often_as_there_is_time(examples: Path) -> None:
    ending, _ = run(Remote(failing(50, EndpointError("later", "busy", retry_after=9))), examples)
    assert ending.outcome == Outcome.OK
    assert ending.log.count("later") == 50


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (EndpointError("no connection", "down"), Outcome.AWAY),
        (EndpointError("used up", "busy", is_permanent=True), Outcome.MODEL_ERROR),
        (EndpointError("too slow", "slow"), Outcome.AWAY),
        (EndpointError("no label", "rubbish"), Outcome.INVALID_OUTPUT),
        (EndpointError("the secret", "misconfigured", is_permanent=True), Outcome.MODEL_ERROR),
    ],
)
def test_what_does_not_pass_ends_the_run(
    examples: Path, error: EndpointError, outcome: Outcome
) -> None:
    ending, answers = run(Remote(always(error)), examples)
    assert ending.outcome == outcome
    assert str(error) in ending.sentence
    assert not answers


def test_a_server_that_answered_others_in_time_is_a_slow_model(examples: Path) -> None:
    batches: list[int] = []

    def before(_: Any) -> None:
        batches.append(1)
        if len(batches) > 1:
            raise EndpointError("too slow", "slow")

    calls = replace(CALLS, concurrent_calls=1)
    ending = EndpointRunner(Remote(before), calls).run(
        MODEL, examples, Limits(), take=lambda _: None, beat=lambda: None
    )
    assert ending.outcome == Outcome.TIMEOUT


def test_an_example_that_is_declined_is_told_with_its_reason(examples: Path) -> None:
    def before(batch: Sequence[Mapping[str, Any]]) -> None:
        if any(item["text"] == "text 3" for item in batch):
            raise EndpointError("This text is declined.", "refused", is_permanent=True)

    ending, answers = run(Remote(before), examples)
    assert ending.outcome == Outcome.OK
    told = {answer["id"]: answer.get("unanswered") for answer in answers}
    assert told == {f"x{n}": "refused" if n == 3 else None for n in range(40)}
    assert "This text is declined." in ending.log


def test_time_is_up_while_it_is_busy(examples: Path) -> None:
    ending, _ = run(
        Remote(always(EndpointError("later", "busy"))), examples, limits=Limits(seconds=0.3)
    )
    assert ending.outcome == Outcome.AWAY
    assert ending.limit == "0.3 seconds"


def test_time_is_up_while_it_answers(examples: Path) -> None:
    told: list[str] = []

    def before(_: Any) -> None:
        if len(told) == 4:
            slow.wait(1)
        told.append("")
        if len(told) == 1:
            raise EndpointError("later", "busy")

    slow = Event()
    calls = replace(CALLS, examples=1, concurrent_calls=1)
    ending = EndpointRunner(Remote(before), calls).run(
        MODEL, examples, Limits(seconds=0.3), take=lambda _: None, beat=lambda: None
    )
    slow.set()
    assert ending.outcome == Outcome.TIMEOUT


def test_answers_are_capped(examples: Path) -> None:
    ending, _ = run(Remote(lambda batch: None), examples, limits=Limits(output_bytes=100))
    assert ending.outcome == Outcome.OUTPUT_TOO_LARGE


def test_an_answer_that_is_not_taken_ends_the_run(examples: Path) -> None:
    def take(line: bytes) -> None:
        raise InvalidOutput("Line 1: no.")

    ending, _ = run(Remote(lambda batch: None), examples, take=take)
    assert (ending.outcome, ending.sentence) == (Outcome.INVALID_OUTPUT, "Line 1: no.")


def test_what_the_heartbeat_raises_is_passed_on(examples: Path) -> None:
    def beat() -> None:
        raise RuntimeError("the lease is lost")

    with pytest.raises(RuntimeError, match="the lease is lost"):
        run(Remote(lambda batch: None), examples, beat=beat)


def test_come_later_holds_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call is told to wait: no other begins before that time either."""
    now, asked = [100.0], []
    calls = endpoint._OpenCalls(Remote(lambda batch: asked.append(now[0])), CallLimits(), Meter())
    monkeypatch.setattr(endpoint, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return False

    monkeypatch.setattr(calls._stopped, "wait", wait)
    calls._endpoint.before = failing(1, EndpointError("later", "busy", retry_after=7.0))
    item = [{"text": "text 1"}]
    assert None not in calls._predict(item, [])
    assert now[0] == 107.0
    calls._resume_at = 120.0  # as another call would have left it
    calls._endpoint.before = lambda batch: asked.append(now[0])
    calls._predict(item, [])
    assert asked == [120.0]


def test_tokens_prices_and_times_are_counted(examples: Path) -> None:
    paid: list[float] = []

    class Telling(Remote):
        def predict(self, batch: Any, *, deadline_seconds: float) -> list[Prediction]:
            found = super().predict(batch, deadline_seconds=deadline_seconds)
            return [replace(one, usage=Tokens(1000, 10)) for one in found]

    def pay(cost: float) -> bool:
        paid.append(cost)
        return True

    meter = Meter(1.0, 10.0, pay)
    calls = CallLimits(examples=1, concurrent_calls=2)
    ending = EndpointRunner(Telling(lambda batch: None), calls, meter).run(
        MODEL, examples, Limits(), take=lambda line: None, beat=lambda: None
    )
    usage = ending.usage
    assert (usage.tokens_in, usage.tokens_out) == (40_000, 400)
    assert usage.cost == pytest.approx(sum(paid)) == pytest.approx(0.044)
    assert (usage.latency_seconds, usage.latency_p95_seconds) == (0.1, 0.1)


def test_a_paid_run_that_failed_waits_for_no_call_that_never_began(
    examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of forty calls fails, and those after the second are cancelled."""
    ended: list[Any] = []
    monkeypatch.setattr(endpoint, "ThreadPoolExecutor", lambda _: ThreadPoolExecutor(1))
    monkeypatch.setattr(endpoint, "wait", lambda *how: ended.append(wait(*how)) or ended[-1])
    fail, over = failing(1, EndpointError("gone", "misconfigured", is_permanent=True)), Event()
    remote = Remote(lambda batch: fail(batch) or over.wait())
    calls = CallLimits(examples=1, concurrent_calls=40, seconds=0.1)
    ending = EndpointRunner(remote, calls, Meter(1.0, 10.0)).run(
        MODEL, examples, Limits(), take=lambda line: None, beat=lambda: None
    )
    over.set()
    assert ending.outcome == Outcome.MODEL_ERROR
    assert not any(call.cancelled() for call in ended[-1].not_done)


def test_answers_of_no_use_are_counted_and_end_a_hopeless_run(examples: Path) -> None:
    def every_fourth(batch: Sequence[Mapping[str, Any]]) -> None:
        if int(batch[0]["text"].split()[1]) % 4 == 0:
            raise EndpointError("no label", "unmatched")

    calls = CallLimits(examples=1, concurrent_calls=2)

    def ran(before: Callable[[Any], None]) -> tuple[Ending, list[Any]]:
        lines: list[bytes] = []
        runner = EndpointRunner(Remote(before), calls)
        ending = runner.run(MODEL, examples, Limits(), take=lines.append, beat=lambda: None)
        return ending, [json.loads(line) for line in lines]

    _, answers = ran(every_fourth)
    reasons = [answer.get("unanswered") for answer in answers if answer["output"] is None]
    assert (len(answers), reasons) == (40, ["unmatched"] * 10)
    hopeless, _ = ran(always(EndpointError("no label", "unmatched")))
    assert hopeless.outcome == Outcome.INVALID_OUTPUT
    broken, _ = ran(always(EndpointError("no choices", "rubbish")))
    assert broken.outcome == Outcome.INVALID_OUTPUT


def test_the_log_counts_labels_that_sentences_named(examples: Path) -> None:
    class Naming(Remote):
        def predict(self, batch: Any, *, deadline_seconds: float) -> list[Prediction]:
            found = super().predict(batch, deadline_seconds=deadline_seconds)
            return [replace(one, is_named=True) for one in found]

    calls = CallLimits(examples=1, concurrent_calls=2)
    ending = EndpointRunner(Naming(lambda batch: None), calls).run(
        MODEL, examples, Limits(), take=lambda line: None, beat=lambda: None
    )
    assert describe_named_answers(40).strip() in ending.log


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60))
def test_latencies_are_the_nearest_ranks(seconds: list[float]) -> None:
    meter = Meter()
    for one in seconds:
        meter.record_answer(None, one)
    usage = meter.add_to_usage(Usage(seconds=1.0))
    for found, share in ((usage.latency_seconds, 0.5), (usage.latency_p95_seconds, 0.95)):
        # Kept to the millisecond.
        rounded = [round(one, 3) for one in seconds]
        assert sum(one <= found for one in rounded) >= share * len(rounded) - 1e-9
        assert sum(one < found for one in rounded) < share * len(rounded) + 1e-9
