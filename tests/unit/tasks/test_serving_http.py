"""The wire format through real sockets, with small models."""

import base64
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from serving.asgi import (
    MAX_BODY_BYTES,
    MAX_INLINE_BODY_BYTES,
    MAX_INPUTS,
    MAX_PICTURE_BODY_BYTES,
)
from serving.errors import BusyError, MisconfiguredError, NotFoundError
from serving.registry import MAX_ENCODINGS, ModelRegistry
from serving.spec import SEQUENCE, ModelFolder, ModelSpec, open_folder
from tests.support.model_server import serving, wait_for
from tests.support.serving_models import tiny_model, tiny_vilt

Reply = tuple[int, dict[str, str], Any]
SENTIMENT, NLI, QA = "sentiment", "nli", "qa"
KIND = {SENTIMENT: "sequence-classification", NLI: "pair-classification", QA: "extractive-qa"}
ROWS = {
    SENTIMENT: {"text": "The soup was cold, the waiter warm."},
    NLI: {"premise": "It rained all night.", "hypothesis": "The street is wet."},
    QA: {"question": "Who sang?", "passage": "After the meal Zoë sang 🎵 and Ana danced."},
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelRegistry]:
    base = tmp_path_factory.mktemp("models")
    specs = {
        name: ModelSpec(name, str(tiny_model(base / name, kind)), backend="torch")
        for name, kind in KIND.items()
    }
    specs["picture"] = ModelSpec("picture", str(tiny_vilt(base / "picture")), backend="torch")
    specs["broken"] = ModelSpec("broken", str(base / "nothing"))
    registry = ModelRegistry(specs.get, specs.keys, base / "cache")
    for name in (*KIND, "picture"):
        wait_for(registry, name)
    yield registry
    registry.close()


@pytest.fixture(scope="module")
def port(registry: ModelRegistry) -> Iterator[int]:
    with serving(registry) as port:
        yield port


def call(port: int, method: str, path: str, body: object = None, **headers: str) -> Reply:
    """`body` is sent as it is when it is bytes, else as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, sent, named)
    reply = connection.getresponse()
    answer = json.loads(reply.read())
    connection.close()
    return reply.status, dict(reply.getheaders()), answer


def predict(port: int, name: str, inputs: object, **headers: str) -> Reply:
    return call(port, "POST", f"/models/{name}/predict", {"inputs": inputs}, **headers)


def test_health_and_names(port: int) -> None:
    assert call(port, "GET", "/health")[::2] == (200, {"status": "ok"})
    assert call(port, "GET", "/models/nli/health")[::2] == (200, {"status": "ok"})
    names = ["broken", NLI, "picture", QA, SENTIMENT]
    assert call(port, "GET", "/models")[::2] == (200, {"models": names})


def test_batches_and_tokens_are_counted(port: int) -> None:
    def counted() -> dict[tuple[str, str], float]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/metrics")
        families = text_string_to_metric_families(connection.getresponse().read().decode())
        connection.close()
        samples = [sample for family in families for sample in family.samples]
        return {(one.name, one.labels.get("model", "")): one.value for one in samples}

    before = counted()
    assert predict(port, NLI, [ROWS[NLI]] * 3)[0] == 200
    after = counted()
    for name, least in (("batch_size_sum", 3), ("tokens_total", 3 * 8)):
        key = f"dynabench_model_{name}", NLI
        assert after[key] >= before.get(key, 0) + least


def test_info_tells_the_kind_and_what_answers(port: int) -> None:
    status, _, info = call(port, "GET", "/models/nli/info")
    assert (status, info["name"], info["kind"]) == (200, NLI, KIND[NLI])
    assert info["labels"] == ["entailment", "neutral", "contradiction"]
    assert info["fields"] == ["premise", "hypothesis"]
    assert set(info["fingerprint"]) == {
        *("digest", "weights_sha256", "tokenizer_sha256", "config_sha256", "backend"),
        *("backend_version", "precision", "transformers", "code"),
    }
    assert call(port, "GET", "/models/qa/info")[2]["labels"] is None


def test_a_classifier_answers_with_its_probabilities(port: int) -> None:
    status, _, answer = predict(port, NLI, ROWS[NLI])
    assert (status, set(answer)) == (200, {"output", "prob", "seconds", "fingerprint"})
    assert answer["output"] == {"label": max(answer["prob"], key=answer["prob"].get)}
    assert sum(answer["prob"].values()) == pytest.approx(1)
    assert (
        answer["fingerprint"] == call(port, "GET", "/models/nli/info")[2]["fingerprint"]["digest"]
    )


def test_a_span_is_told_in_code_points(port: int) -> None:
    status, _, answer = predict(port, QA, ROWS[QA])
    output, passage = answer["output"], ROWS[QA]["passage"]
    assert (status, list(answer["prob"])) == (200, [output["answer"]])
    assert passage[output["start"] : output["end"]] == output["answer"] != ""


@pytest.mark.parametrize("name", KIND)
def test_a_list_is_answered_in_order_like_its_single_inputs(port: int, name: str) -> None:
    last = list(ROWS[name])[-1]
    rows = [ROWS[name] | {last: ROWS[name][last] + " Well," * n} for n in (0, 20, 1, 7)]
    status, _, together = predict(port, name, rows)
    assert (status, set(together)) == (200, {"predictions", "seconds", "fingerprint"})
    alone = [predict(port, name, row)[2] for row in rows]
    assert [p["output"] for p in together["predictions"]] == [a["output"] for a in alone]
    for one, other in zip(together["predictions"], alone, strict=True):
        assert one["prob"] == pytest.approx(other["prob"], abs=1e-5)


@pytest.mark.parametrize(
    ("inputs", "fields"),
    [
        ({"premise": "x"}, {"hypothesis": "missing"}),
        ({**ROWS[NLI], "label": "neutral"}, {"label": "not a field"}),
        ({**ROWS[NLI], "premise": 3}, {"premise": "a string"}),
        ({**ROWS[NLI], "hypothesis": "word " * 70}, {"hypothesis": "53 fit"}),
        ([ROWS[NLI], {"premise": None}], {"inputs[1].premise": "", "inputs[1].hypothesis": ""}),
        ([ROWS[NLI], "x"], {"inputs[1]": "object"}),
        ([], {"inputs": "not empty"}),
        (None, {"inputs": "object of fields"}),
    ],
)
def test_wrong_inputs_name_the_field(port: int, inputs: object, fields: dict[str, str]) -> None:
    status, _, answer = predict(port, NLI, inputs)
    assert (status, set(answer)) == (400, {"error"})
    error = answer["error"]
    assert (error["code"], set(error["fields"])) == ("invalid", set(fields))
    for field, words in fields.items():
        assert field in error["message"]
        assert words in error["fields"][field]


HALF = b'{"inputs": {"premise": "\\ud83d", "hypothesis": "Half of a surrogate pair."}}'


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b"[1]", b"3", HALF])
def test_a_body_that_is_not_the_format_is_refused(port: int, body: bytes) -> None:
    status, _, answer = call(port, "POST", "/models/nli/predict", body)
    assert (status, answer["error"]["code"]) == (400, "invalid")


def test_sizes_are_capped(port: int) -> None:
    for inputs in (
        {**ROWS[NLI], "premise": "x" * MAX_BODY_BYTES},
        [ROWS[NLI]] * (MAX_INPUTS + 1),
    ):
        status, _, answer = predict(port, NLI, inputs)
        assert (status, answer["error"]["code"]) == (413, "too_large")
    passage = "word " * 40 * MAX_ENCODINGS
    status, _, answer = predict(port, QA, {"question": "who?", "passage": passage})
    assert (status, answer["error"]["code"]) == (413, "too_large")


def test_only_models_that_see_pictures_take_long_bodies(port: int) -> None:
    file = BytesIO()
    Image.new("RGB", (9, 9), "red").save(file, "PNG")
    data = file.getvalue() + bytes(MAX_BODY_BYTES)  # readers ignore what stands behind a PNG
    row = {"image": base64.b64encode(data).decode(), "question": "Is it red?"}
    status, _, answer = predict(port, "picture", row)
    assert status == 200
    assert answer["output"]["answer"] in answer["prob"]
    status, _, answer = predict(port, "picture", {**row, "image": "x" * MAX_PICTURE_BODY_BYTES})
    assert (status, answer["error"]["code"]) == (413, "too_large")
    status, _, answer = predict(port, "picture", {**row, "image": "no picture"})
    assert (status, answer["error"]["fields"].keys()) == (400, {"image"})


def test_a_long_body_is_answered_like_a_short_one(port: int) -> None:
    row = ROWS[NLI] | {"premise": "It rained all night. " * 40}
    rows = [row] * (MAX_INLINE_BODY_BYTES // 800 + 1)
    alone = predict(port, NLI, row)[2]
    together = predict(port, NLI, rows)[2]["predictions"]
    assert [answer["output"] for answer in together] == [alone["output"]] * len(rows)
    status, _, answer = predict(port, NLI, [*rows, {"premise": 3}])
    assert (status, answer["error"]["code"]) == (400, "invalid")


def test_who_leaves_in_the_middle_of_a_body_holds_up_nobody(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as gone:
        gone.sendall(b"POST /models/nli/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    assert predict(port, NLI, ROWS[NLI])[0] == 200


@pytest.mark.parametrize("deadline", ["soon", "0", "-1", "nan", "inf"])
def test_a_deadline_must_be_a_time(port: int, deadline: str) -> None:
    status, _, answer = predict(port, NLI, ROWS[NLI], X_Deadline_Seconds=deadline)
    assert status == 400
    assert "X-Deadline-Seconds" in answer["error"]["message"]


def test_a_passed_deadline_is_told(port: int) -> None:
    status, _, answer = predict(port, NLI, ROWS[NLI], X_Deadline_Seconds="0.000001")
    assert (status, answer["error"]["code"]) == (504, "deadline")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/models/nobody/info", 404),
        ("GET", "/models/nli/weights", 404),
        ("GET", "/models/nli/predict", 405),
        ("POST", "/models/nli/info", 405),
        ("POST", "/health", 405),
    ],
)
def test_wrong_routes(port: int, method: str, path: str, status: int) -> None:
    assert call(port, method, path)[0] == status


def test_a_broken_model_says_why_and_the_others_go_on(
    port: int, registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def slow_look(spec: ModelSpec) -> ModelFolder:
        goes_on.wait(60)
        return open_folder(spec)

    monkeypatch.setattr("serving.registry.open_folder", slow_look)
    status, headers, answer = call(port, "GET", "/models/broken/health")
    assert (status, headers["Retry-After"], answer["error"]["code"]) == (503, "2", "loading")
    goes_on.set()
    with pytest.raises(MisconfiguredError):
        wait_for(registry, "broken")
    status, _, answer = predict(port, "broken", ROWS[NLI])
    assert (status, answer["error"]["code"]) == (500, "misconfigured")
    assert predict(port, NLI, ROWS[NLI])[0] == 200


def test_a_full_queue_is_503_with_retry_after(
    port: int, registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*args: object, **options: object) -> None:
        raise BusyError("The model has too many requests waiting.")

    monkeypatch.setattr(registry.get(NLI)._batcher, "submit", busy)
    status, headers, answer = predict(port, NLI, ROWS[NLI])
    assert (status, headers["Retry-After"], answer["error"]["code"]) == (503, "1", "busy")


def test_a_failure_of_the_model_is_500_without_its_secrets(
    port: int, registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("inner words")

    monkeypatch.setattr(registry.get(NLI), "submit", fail)
    status, _, answer = predict(port, NLI, ROWS[NLI])
    assert (status, answer["error"]["code"]) == (500, "error")
    assert "inner words" not in str(answer)


def test_what_is_registered_later_is_loaded_before_anybody_asks(tmp_path: Path) -> None:
    specs, looked_up = {"broken": ModelSpec("broken", str(tmp_path / "nothing"))}, []

    def resolve(name: str) -> ModelSpec | None:
        looked_up.append(name)
        return specs.get(name)

    registry = ModelRegistry(resolve, specs.keys, tmp_path / "cache")
    registry.load_new_models()
    specs["later"] = ModelSpec("later", str(tiny_model(tmp_path / "later", SEQUENCE)))
    registry.load_new_models()
    registry.load_new_models()
    assert looked_up == ["broken", "later"]  # each once; what failed is left to its callers
    wait_for(registry, "later")
    registry.close()


def test_a_changed_spec_is_loaded_anew(tmp_path: Path) -> None:
    folder = str(tiny_model(tmp_path / "m", KIND[SENTIMENT]))
    specs = {"m": ModelSpec("m", folder, backend="torch")}
    registry = ModelRegistry(specs.get, specs.keys, tmp_path / "cache")
    first = wait_for(registry, "m")
    assert registry.get("m") is first
    specs["m"] = ModelSpec("m", folder, backend="torch", labels=("bad", "good"))
    second = wait_for(registry, "m")
    assert second.info["labels"] == ["bad", "good"]
    assert second.digest != first.digest
    del specs["m"]
    with pytest.raises(NotFoundError):
        registry.get("m")
    registry.close()
