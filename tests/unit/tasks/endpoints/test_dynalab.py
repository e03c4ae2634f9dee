from collections.abc import Callable
from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.dynalab import DynalabEndpoint
from tasks.targets.endpoints.transport import Transport

from .conftest import Handler, Seen, Server, answering, qa, sentiment

Serve = Callable[[Callable[[Handler, Seen], None]], Server]
LABELS = ("entailment", "neutral", "contradiction")
MAP = {"e": "entailment", "n": "neutral", "c": "contradiction"}


def nli(url: str, **options: Any) -> DynalabEndpoint:
    fields = ("premise", "hypothesis")
    options = {"field_map": {"premise": "context"}, "label_map": MAP} | options
    config = sentiment(url, fields=fields, labels=LABELS, options=options)
    return DynalabEndpoint(config, Transport())


ITEMS = [{"premise": "p1", "hypothesis": "h1"}, {"premise": "p2", "hypothesis": "h2"}]


def handler_of_version_1(handler: Handler, seen: Seen) -> None:
    shares = {"e": 0.2, "n": 0.1, "c": 0.1}
    handler.send({"id": seen.body["uid"], "label": "e", "prob": shares, "signature": "s"})


def test_version_1_sends_one_example_at_a_time(serve: Serve) -> None:
    server = serve(handler_of_version_1)
    endpoint = nli(f"{server.url}/predictions/model")
    predictions = endpoint.predict(ITEMS, deadline_seconds=5)
    assert [seen.path for seen in server.seen] == ["/predictions/model"] * 2
    first = server.seen[0].body
    assert first == {"uid": first["uid"], "context": "p1", "hypothesis": "h1"}
    assert first["uid"] != server.seen[1].body["uid"]
    assert predictions[0].output == {"label": "entailment"}
    assert predictions[0].prob == {
        "entailment": pytest.approx(0.5),
        "neutral": pytest.approx(0.25),
        "contradiction": pytest.approx(0.25),
    }


@pytest.mark.parametrize(
    "answer",
    [
        {"id": "another", "label": "e"}, {"label": "x"}, {"prob": {"e": 1}}, [], "e",
        {"label": "e", "prob": {"e": 0, "n": 0}}, {"label": "e", "prob": {"e": 1.5, "n": -0.5}},
        {"label": "e", "prob": {"x": 1}}, {"label": "e", "prob": {}}, {"label": "e", "prob": [1]},
        {"label": "e", "prob": {"e": "1"}}, b'{"label": "e", "prob": {"e": NaN}}', {"label": 1},
    ],
)  # fmt: skip
def test_answers_that_are_rubbish(serve: Serve, answer: Any) -> None:
    with pytest.raises(EndpointError) as caught:
        nli(serve(answering(answer)).url).predict(ITEMS[:1], deadline_seconds=5)
    assert caught.value.reason == "rubbish"


def test_the_confidence_of_an_answer_is_kept(serve: Serve) -> None:
    server = serve(answering({"answer": "rose", "conf": 0.75}, {"answer": "rose", "conf": 2}))
    config = qa(server.url, options={"field_map": {"passage": "context"}})
    endpoint = DynalabEndpoint(config, Transport())
    item = {"question": "What?", "passage": "a rose is a rose"}
    [prediction] = endpoint.predict([item], deadline_seconds=5)
    assert prediction.output == {"answer": "rose", "start": 2, "end": 6}
    assert prediction.prob == {"rose": 0.75}
    assert server.seen[0].body["context"] == "a rose is a rose"
    with pytest.raises(EndpointError):
        endpoint.predict([item], deadline_seconds=5)


def handler_of_version_2(handler: Handler, seen: Seen) -> None:
    answer = {"label": "neutral", "prob": {"entailment": 0, "neutral": 1, "contradiction": 0}}
    if seen.path.endswith("/model/batch_evaluation"):
        handler.send([answer] * len(seen.body["dataset_samples"]))
    else:
        handler.send(answer)


@pytest.mark.parametrize("ending", ["", "/", "/model/single_evaluation"])
def test_version_2_has_a_single_and_a_batch_route(serve: Serve, ending: str) -> None:
    server = serve(handler_of_version_2)
    endpoint = nli(f"{server.url}/app{ending}", version=2)
    assert endpoint.predict(ITEMS[:1], deadline_seconds=5)[0].output == {"label": "neutral"}
    assert len(endpoint.predict(ITEMS, deadline_seconds=5)) == 2
    single, batch = server.seen
    assert single.path == "/app/model/single_evaluation"
    assert single.body == {"context": "p1", "hypothesis": "h1"}
    assert batch.path == "/app/model/batch_evaluation"
    assert batch.body["dataset_samples"][1] == {"context": "p2", "hypothesis": "h2"}


def test_a_batch_with_a_missing_answer_is_rubbish(serve: Serve) -> None:
    server = serve(answering([{"label": "neutral"}]))
    with pytest.raises(EndpointError, match="list of 2"):
        nli(server.url, version=2).predict(ITEMS, deadline_seconds=5)


def test_info_names_the_adapter_only(serve: Serve) -> None:
    info = nli("http://127.0.0.1/predictions/model").info(deadline_seconds=5)
    assert (info.name, info.fingerprint) == ("model", {"adapter": "dynalab 1"})
