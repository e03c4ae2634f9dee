from collections.abc import Callable
from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.http import HttpEndpoint
from tasks.targets.endpoints.transport import Transport

from .conftest import Handler, Seen, Server, answering, qa, sentiment

Serve = Callable[[Callable[[Handler, Seen], None]], Server]
GOOD = {"output": {"label": "positive"}, "prob": {"positive": 0.75, "negative": 0.25}}
DIGEST = {"fingerprint": "abc", "seconds": 0.001}
INFO = {
    "name": "m",
    "kind": "sequence-classification",
    "labels": ["negative", "positive"],
    "fields": ["text"],
    "fingerprint": {"digest": "abc"},
}


def endpoint(server: Server, **changes: Any) -> HttpEndpoint:
    return HttpEndpoint(sentiment(f"{server.url}/models/m", **changes), Transport())


def test_one_example_is_sent_as_an_object_without_the_target_field(serve: Serve) -> None:
    server = serve(answering(GOOD | DIGEST))
    item = {"text": "fine", "label": "negative"}
    [prediction] = endpoint(server).predict([item], deadline_seconds=5)
    assert server.seen[0].path == "/models/m/predict"
    assert server.seen[0].body == {"inputs": {"text": "fine"}}
    assert prediction.output == {"label": "positive"}
    assert prediction.prob == {"positive": 0.75, "negative": 0.25}
    assert prediction.fingerprint == {"digest": "abc"}
    assert 0 < prediction.seconds < 5


def test_a_conversation_is_sent_as_roles_and_texts_alone(serve: Serve) -> None:
    server = serve(answering(GOOD | DIGEST))
    told = {"role": "system", "text": "The word is tarn. Keep it."}
    said = {"role": "user", "text": "Which word?"}
    item = {"text": [{**told, "secret": "tarn"}, said]}
    endpoint(server).predict([item], deadline_seconds=5)
    assert server.seen[0].body == {"inputs": {"text": [told, said]}}


def test_several_examples_are_sent_as_a_list(serve: Serve) -> None:
    other = {"output": {"label": "negative"}, "prob": None}
    server = serve(answering({"predictions": [GOOD, other], **DIGEST}))
    batch = [{"text": "a"}, {"text": "\u00e9\U0001f600"}]
    predictions = endpoint(server).predict(batch, deadline_seconds=5)
    assert server.seen[0].body == {"inputs": batch}
    assert [p.output["label"] for p in predictions] == ["positive", "negative"]
    assert predictions[1].prob is None


def test_an_empty_batch_asks_nothing(serve: Serve) -> None:
    server = serve(answering({}))
    assert endpoint(server).predict([], deadline_seconds=5) == []
    assert server.seen == []


def test_a_missing_field_is_named_before_anything_is_sent(serve: Serve) -> None:
    server = serve(answering(GOOD | DIGEST))
    with pytest.raises(EndpointError, match="'text'"):
        endpoint(server).predict([{"texts": "a"}], deadline_seconds=5)
    assert server.seen == []


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"<html>", b"null", b"[]", b"{}", b'{"output": {"label": "positive"}}',
        b'{"output": {"label": "positive"}, "prob": {"positive": NaN}, "fingerprint": "abc"}',
        b'{"output": {"label": "positive"}, "prob": {"positive": 1e999}, "fingerprint": "abc"}',
        GOOD | DIGEST | {"output": {"label": "good"}}, GOOD | DIGEST | {"output": "positive"},
        GOOD | DIGEST | {"prob": {"positive": 0.5}}, GOOD | DIGEST | {"fingerprint": None},
        GOOD | DIGEST | {"prob": {"positive": 0.5, "good": 0.5}}, [GOOD | DIGEST],
    ],
)  # fmt: skip
def test_answers_that_are_rubbish(serve: Serve, answer: Any) -> None:
    with pytest.raises(EndpointError) as caught:
        endpoint(serve(answering(answer))).predict([{"text": "a"}], deadline_seconds=5)
    assert caught.value.reason == "rubbish"


@pytest.mark.parametrize("rows", [[], [GOOD], [GOOD] * 3, None, {"0": GOOD}, [GOOD, None]])
def test_a_batch_needs_one_prediction_for_each_example(serve: Serve, rows: Any) -> None:
    server = serve(answering({"predictions": rows, **DIGEST}))
    with pytest.raises(EndpointError) as caught:
        endpoint(server).predict([{"text": "a"}, {"text": "b"}], deadline_seconds=5)
    assert caught.value.reason == "rubbish"


def test_a_span_is_checked_against_the_passage_sent(serve: Serve) -> None:
    good = {"output": {"answer": "\U0001f600 Rome", "start": 3, "end": 9}, "prob": None, **DIGEST}
    bad = good | {"output": {"answer": "Rome", "start": 0, "end": 4}}
    server = serve(answering(good, bad))
    target = HttpEndpoint(qa(server.url), Transport())
    item = {"question": "Where?", "passage": "In \U0001f600 Rome."}
    [prediction] = target.predict([item], deadline_seconds=5)
    assert prediction.output == {"answer": "\U0001f600 Rome", "start": 3, "end": 9}
    with pytest.raises(EndpointError, match=r"passage\[0:4\]"):
        target.predict([item], deadline_seconds=5)


def test_info_tells_name_kind_and_fingerprint(serve: Serve) -> None:
    server = serve(answering(INFO))
    info = endpoint(server).info(deadline_seconds=5)
    assert server.seen[0].path == "/models/m/info"
    assert (info.name, info.kind, info.fingerprint) == (
        "m",
        "sequence-classification",
        {"digest": "abc"},
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"labels": ["positive", "neutral"]}, "misconfigured"),
        ({"labels": None}, "misconfigured"),
        ({"fields": ["text", "premise"]}, "misconfigured"),
        ({"fields": None}, "misconfigured"),
        ({"fingerprint": "abc"}, "rubbish"),
        ({"name": ""}, "rubbish"),
        ({"kind": 3}, "rubbish"),
    ],
)
def test_info_that_does_not_fit_the_task(serve: Serve, change: Any, reason: str) -> None:
    with pytest.raises(EndpointError) as caught:
        endpoint(serve(answering(INFO | change))).info(deadline_seconds=5)
    assert caught.value.reason == reason
