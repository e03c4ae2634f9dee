from collections.abc import Callable
from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointConfig, EndpointError
from tasks.targets.endpoints.open_inference import OpenInferenceEndpoint
from tasks.targets.endpoints.transport import Transport

from .conftest import Handler, Seen, Server, answering, qa, sentiment

Serve = Callable[[Callable[[Handler, Seen], None]], Server]


def target(config: EndpointConfig) -> OpenInferenceEndpoint:
    return OpenInferenceEndpoint(config, Transport())


def tensor(name: str, datatype: str, data: Any) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": data}


def answer(*tensors: dict[str, Any]) -> dict[str, Any]:
    return {"model_name": "m", "model_version": "3", "outputs": list(tensors)}


def nli(url: str, **options: Any) -> EndpointConfig:
    labels = ("entailment", "neutral", "contradiction")
    return sentiment(
        url, fields=("premise", "hypothesis"), labels=labels, options={"model": "m", **options}
    )


ITEMS = [{"premise": "p1", "hypothesis": "h1"}, {"premise": "p2", "hypothesis": "h2"}]


def test_each_field_is_a_tensor_of_texts(serve: Serve) -> None:
    labels = tensor("label", "BYTES", ["neutral", "entailment"])
    server = serve(answering(answer(labels)))
    config = nli(server.url, label_output="label", inputs={"premise": "TEXT_A"})
    predictions = target(config).predict(ITEMS, deadline_seconds=5)
    assert server.seen[0].path == "/v2/models/m/infer"
    assert server.seen[0].body == {
        "inputs": [
            {"name": "TEXT_A", "shape": [2], "datatype": "BYTES", "data": ["p1", "p2"]},
            {"name": "hypothesis", "shape": [2], "datatype": "BYTES", "data": ["h1", "h2"]},
        ]
    }
    assert [p.output for p in predictions] == [{"label": "neutral"}, {"label": "entailment"}]
    assert predictions[0].prob is None
    assert predictions[0].fingerprint == {"model_name": "m", "model_version": "3"}


@pytest.mark.parametrize(
    "data", [[0.1, 0.2, 0.7, 0.6, 0.2, 0.2], [[0.1, 0.2, 0.7], [0.6, 0.2, 0.2]]]
)
def test_probabilities_are_mapped_to_labels_in_the_order_given(serve: Serve, data: Any) -> None:
    server = serve(answering(answer(tensor("probs", "FP32", data))))
    config = nli(
        server.url,
        prob_output="probs",
        label_order=["LABEL_0", "LABEL_1", "LABEL_2"],
        label_map={"LABEL_0": "contradiction", "LABEL_1": "neutral", "LABEL_2": "entailment"},
        template="{premise} </s> {hypothesis}",
        template_input="text",
        rank=2,
        version="7",
    )
    predictions = target(config).predict(ITEMS, deadline_seconds=5)
    assert server.seen[0].path == "/v2/models/m/versions/7/infer"
    assert server.seen[0].body["inputs"] == [
        {
            "name": "text",
            "shape": [2, 1],
            "datatype": "BYTES",
            "data": ["p1 </s> h1", "p2 </s> h2"],
        }
    ]
    assert [p.output["label"] for p in predictions] == ["entailment", "contradiction"]
    assert predictions[0].prob == {"contradiction": 0.1, "neutral": 0.2, "entailment": 0.7}


def test_a_text_that_looks_like_a_template_stays_text(serve: Serve) -> None:
    server = serve(answering(answer(tensor("label", "BYTES", ["neutral"]))))
    config = nli(server.url, label_output="label", template="{premise}|{hypothesis}|{other}")
    item = {"premise": "{hypothesis}", "hypothesis": "h"}
    target(config).predict([item], deadline_seconds=5)
    assert server.seen[0].body["inputs"][0]["data"] == ["{hypothesis}|h|{other}"]


@pytest.mark.parametrize(
    "tensors",
    [
        [],
        [tensor("other", "BYTES", ["neutral"])],
        [tensor("label", "FP32", [1.0])],
        [tensor("label", "BYTES", [1])],
        [tensor("label", "BYTES", ["no label"])],
        [tensor("label", "BYTES", ["neutral", "neutral"])],
        [tensor("label", "BYTES", [])],
        [None],
    ],
)
def test_label_tensors_that_are_rubbish(serve: Serve, tensors: Any) -> None:
    config = nli(serve(answering({"outputs": tensors})).url, label_output="label")
    with pytest.raises(EndpointError) as caught:
        target(config).predict(ITEMS[:1], deadline_seconds=5)
    assert caught.value.reason == "rubbish"


@pytest.mark.parametrize("data", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.0, 0.0, "0"], [2.0, -1.0, 0.0],
                                  [1, 0, None], {}])  # fmt: skip
def test_probability_tensors_that_are_rubbish(serve: Serve, data: Any) -> None:
    config = nli(serve(answering(answer(tensor("p", "FP32", data)))).url, prob_output="p")
    with pytest.raises(EndpointError) as caught:
        target(config).predict(ITEMS[:1], deadline_seconds=5)
    assert caught.value.reason == "rubbish"


def test_spans_come_with_or_without_offsets(serve: Serve) -> None:
    with_offsets = answer(
        tensor("answer", "BYTES", ["rose"]),
        tensor("start", "INT64", [12]),
        tensor("end", "INT64", [16]),
    )
    server = serve(answering(with_offsets, answer(tensor("answer", "BYTES", ["is"]))))
    endpoint = target(qa(server.url, options={"model": "m", "label_output": "answer"}))
    item = {"question": "What?", "passage": "a rose is a rose"}
    first = endpoint.predict([item], deadline_seconds=5)[0].output
    assert first == {"answer": "rose", "start": 12, "end": 16}
    second = endpoint.predict([item], deadline_seconds=5)[0].output
    assert second == {"answer": "is", "start": 7, "end": 9}


def test_probabilities_are_for_tasks_with_labels() -> None:
    with pytest.raises(EndpointError, match="prob_output"):
        target(qa("http://127.0.0.1", options={"model": "m", "prob_output": "p"}))


def described(handler: Handler, seen: Seen) -> None:
    if seen.path == "/v2/health/ready":
        handler.send(b"")
    else:
        inputs = [{"name": name, "datatype": "BYTES"} for name in ("premise", "hypothesis")]
        handler.send({"name": "m", "versions": ["3"], "platform": "onnx", "inputs": inputs})


def test_info_checks_readiness_and_the_names_of_the_inputs(serve: Serve) -> None:
    server = serve(described)
    info = target(nli(server.url, label_output="label")).info(deadline_seconds=5)
    assert [seen.path for seen in server.seen] == ["/v2/health/ready", "/v2/models/m"]
    assert (info.name, info.fingerprint) == ("m", {"platform": "onnx", "versions": ["3"]})
    with pytest.raises(EndpointError, match="map them") as caught:
        target(nli(server.url, label_output="label", inputs={"premise": "a"})).info(
            deadline_seconds=5
        )
    assert caught.value.reason == "misconfigured"


def test_a_model_that_is_not_ready_is_down(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({}, 503))
    with pytest.raises(EndpointError) as caught:
        target(nli(server.url, label_output="label")).info(deadline_seconds=5)
    assert caught.value.reason == "down"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (404, {"error": "Model m not found"}),
        (400, {"error": "Request for unknown model: 'm' is not found"}),
        (400, {"error": "unexpected inference input 'premise' for model 'm'"}),
    ],
)
def test_a_wrong_setting_is_told_in_the_servers_words(
    serve: Serve, status: int, told: dict[str, str]
) -> None:
    server = serve(lambda handler, seen: handler.send(told, status))
    with pytest.raises(EndpointError) as failure:
        target(nli(server.url, label_output="label")).predict(ITEMS, deadline_seconds=5)
    assert failure.value.reason == "misconfigured"
    assert told["error"] in str(failure.value)
