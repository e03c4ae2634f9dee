import time
from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.scripted import ScriptedEndpoint

from .conftest import qa, sentiment


def scripted(**options: Any) -> ScriptedEndpoint:
    return ScriptedEndpoint(sentiment("", options=options))


def ask(endpoint: ScriptedEndpoint, text: str, seconds: float = 5) -> Any:
    return endpoint.predict([{"text": text}], deadline_seconds=seconds)[0]


def test_the_first_rule_that_matches_answers() -> None:
    rules = [
        {"contains": "bad", "label": "negative"},
        {"equals": "meh", "output": {"label": "negative"}, "prob": {"negative": 1}},
        {"contains": "not", "field": "other", "fail": "down"},
    ]
    endpoint = scripted(label="positive", prob={"positive": 0.5, "negative": 0.5}, rules=rules)
    assert ask(endpoint, "good").prob == {"positive": 0.5, "negative": 0.5}
    assert (ask(endpoint, "so bad").output, ask(endpoint, "bad").prob) == (
        {"label": "negative"},
        None,
    )
    assert ask(endpoint, "meh").prob == {"negative": 1.0}
    assert ask(endpoint, "meh, not").output == {"label": "positive"}


def test_answers_are_validated_as_any_targets_are() -> None:
    with pytest.raises(EndpointError) as caught:
        ask(scripted(label="good"), "x")
    assert caught.value.reason == "rubbish"
    with pytest.raises(EndpointError):
        ask(scripted(), "x")


@pytest.mark.parametrize("reason", ["down", "slow", "busy", "rubbish", "refused", "misconfigured"])
def test_it_fails_as_scripted(reason: str) -> None:
    endpoint = scripted(label="positive", rules=[{"contains": "x", "fail": reason}], retry_after=3)
    assert ask(endpoint, "y").output == {"label": "positive"}
    with pytest.raises(EndpointError) as caught:
        ask(endpoint, "x")
    assert (caught.value.reason, caught.value.retry_after) == (reason, 3)


def test_a_delay_is_slept_up_to_the_deadline() -> None:
    started_at = time.monotonic()
    assert ask(scripted(label="positive", delay=0.1), "x").seconds >= 0.1
    assert time.monotonic() - started_at >= 0.1
    with pytest.raises(EndpointError) as caught:
        ask(scripted(label="positive", delay=60), "x", seconds=0.05)
    assert caught.value.reason == "slow"


def test_a_span_is_located() -> None:
    endpoint = ScriptedEndpoint(qa("", options={"output": {"answer": "is"}}))
    item = {"question": "What?", "passage": "a rose is a rose"}
    [prediction] = endpoint.predict([item], deadline_seconds=5)
    assert prediction.output == {"answer": "is", "start": 7, "end": 9}
    assert endpoint.info(deadline_seconds=1).name == "scripted"
