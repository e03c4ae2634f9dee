"""The adapter for our own wire format, which `manage.py serve_model` and containers use."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.text.words import order_labels_by_names
from tasks.targets.endpoints.answers import expect_list, expect_object, read_output, read_prob
from tasks.targets.endpoints.base import (
    EndpointConfig,
    EndpointInfo,
    Prediction,
    build_misconfigured_error,
    build_rubbish_error,
)
from tasks.targets.endpoints.client import JsonEndpoint
from tasks.targets.endpoints.transport import Clock, Transport

PREDICT_PATH = "/predict"


class HttpEndpoint(JsonEndpoint):
    """An endpoint for a target at `http://host:port/models/<name>`; see docs/targets.md."""

    def __init__(self, config: EndpointConfig, transport: Transport | None = None) -> None:
        super().__init__(config, transport)
        path = self._url.path.rstrip("/").removesuffix(
            PREDICT_PATH
        )  # people copy the whole address
        self._url = self._url.copy_with(path=path)

    def answer_inputs(self, inputs: Sequence[Mapping[str, Any]], clock: Clock) -> list[Prediction]:
        is_single = len(inputs) == 1
        payload = {"inputs": inputs[0] if is_single else inputs}
        answer = expect_object(self.post(PREDICT_PATH, payload, clock), "The answer")
        rows = (
            [answer]
            if is_single
            else expect_list(answer.get("predictions"), len(inputs), "predictions")
        )
        fingerprint = {"digest": _read_text(answer, "fingerprint")}
        predictions = []
        for item, row in zip(inputs, rows, strict=True):
            predictions.append(
                self._read_prediction(item, expect_object(row, "A prediction"), fingerprint)
            )
        return predictions

    def _read_prediction(
        self, item: Mapping[str, Any], row: Mapping[str, Any], fingerprint: Mapping[str, Any]
    ) -> Prediction:
        output = read_output(self._config, item, row.get("output"))
        return Prediction(output, read_prob(self._config, row.get("prob")), 0.0, fingerprint)

    def info(self, *, deadline_seconds: float) -> EndpointInfo:
        """Return the target's description of itself, checked against the configuration.

        Raises EndpointError.
        """
        answer = expect_object(self.get("/info", Clock(deadline_seconds)), "The answer")
        labels, fields = answer.get("labels"), answer.get("fields")
        expected_labels = self._config.labels
        if expected_labels is not None and not (
            isinstance(labels, list) and order_labels_by_names(labels, expected_labels)
        ):
            raise build_misconfigured_error(
                f"The target's labels {labels} are not the task's {list(expected_labels)}."
            )
        if not isinstance(fields, list) or not set(map(str, fields)) <= set(self._config.fields):
            raise build_misconfigured_error(
                f"The target wants the fields {fields}; it is sent {list(self._config.fields)}."
            )
        fingerprint = expect_object(answer.get("fingerprint"), "fingerprint")
        return EndpointInfo(_read_text(answer, "name"), _read_text(answer, "kind"), fingerprint)


def _read_text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise build_rubbish_error(f"{name!r} must be a text that is not empty.")
    return value
