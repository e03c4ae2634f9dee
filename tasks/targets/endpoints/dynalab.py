"""The adapter for models built for Dynabench 1.0 (dynalab handlers) and 2.0 (evaluation routes)."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from tasks.targets.endpoints.answers import (
    expect_list,
    expect_number,
    expect_object,
    read_output,
    read_prob,
)
from tasks.targets.endpoints.base import (
    EndpointConfig,
    EndpointInfo,
    Prediction,
    build_misconfigured_error,
    build_rubbish_error,
)
from tasks.targets.endpoints.client import JsonEndpoint
from tasks.targets.endpoints.transport import RETRY_CAREFUL, Clock, Transport

SINGLE_ROUTE, BATCH_ROUTE = "/model/single_evaluation", "/model/batch_evaluation"


class DynalabEndpoint(JsonEndpoint):
    """An endpoint for a model of Dynabench, which takes one JSON example or, in version 2, several.

    Options: version; field_map (our field → the model's); label_map (the model's label → ours).
    """

    OPTIONS = {"version": int, "field_map": Mapping, "label_map": Mapping}
    RETRY = RETRY_CAREFUL

    def __init__(self, config: EndpointConfig, transport: Transport | None = None) -> None:
        super().__init__(config, transport)
        self._version = config.get_option("version", int, 1)
        if self._version not in (1, 2):
            raise build_misconfigured_error("The option 'version' is 1 or 2.")
        self._fields = config.get_name_map("field_map")
        self._labels = config.get_name_map("label_map")
        if self._version == 2 and self._url.path.endswith(SINGLE_ROUTE):
            self._url = self._url.copy_with(path=self._url.path.removesuffix(SINGLE_ROUTE))

    def answer_inputs(self, inputs: Sequence[Mapping[str, Any]], clock: Clock) -> list[Prediction]:
        if self._version == 2 and len(inputs) > 1:
            samples = [self._rename_fields(item) for item in inputs]
            rows = self.post(BATCH_ROUTE, {"dataset_samples": samples}, clock)
            answers = expect_list(rows, len(inputs), "The answer")
        else:
            answers = [self._request_answer(item, clock) for item in inputs]
        predictions = []
        for item, answer in zip(inputs, answers, strict=True):
            predictions.append(self._read_prediction(item, expect_object(answer, "A prediction")))
        return predictions

    def _rename_fields(self, item: Mapping[str, Any]) -> dict[str, Any]:
        return {self._fields.get(name, name): value for name, value in item.items()}

    def _request_answer(self, item: Mapping[str, Any], clock: Clock) -> Mapping[str, Any]:
        if self._version == 2:
            return expect_object(
                self.post(SINGLE_ROUTE, self._rename_fields(item), clock), "The answer"
            )
        # Version 1 repeats the uid, which shows that the answer belongs to this example.
        uid = uuid4().hex
        payload = {"uid": uid, **self._rename_fields(item)}
        answer = expect_object(self.post("", payload, clock), "The answer")
        if answer.get("id", uid) != uid:
            raise build_rubbish_error("The answer's id is not the uid of the example.")
        return answer

    def _read_prediction(self, item: Mapping[str, Any], answer: Mapping[str, Any]) -> Prediction:
        raw_answer = answer.get(self._config.output)
        label = raw_answer
        if isinstance(raw_answer, str):
            label = self._labels.get(raw_answer, raw_answer)
        output = read_output(
            self._config, item, {self._config.output: label}, use_first_occurrence=True
        )
        prob = read_prob(self._config, self._convert_prob(answer, output[self._config.output]))
        return Prediction(output, prob, 0.0, {"adapter": f"dynalab {self._version}"})

    def _convert_prob(
        self, answer: Mapping[str, Any], answer_label: Any
    ) -> dict[str, float] | None:
        """Return probabilities by our labels, normalised as Dynabench did; None if there are none.

        Without labels, return the answer's `conf` unchanged. Raises EndpointError.
        """
        if self._config.labels is None:
            if "conf" in answer:
                return {answer_label: expect_number(answer["conf"], "conf")}
            return None
        if answer.get("prob") is None:
            return None
        shares = {}
        for label, probability in expect_object(answer["prob"], "prob").items():
            shares[self._labels.get(label, label)] = expect_number(probability, "A probability")
        # Models of Dynabench often give scores that do not sum to 1, which its own server
        # normalised.
        total = sum(shares.values())
        if total <= 0 or min(shares.values()) < 0:
            raise build_rubbish_error("The probabilities must be 0 or more, and not all 0.")
        return {label: probability / total for label, probability in shares.items()}

    def info(self, *, deadline_seconds: float) -> EndpointInfo:
        """Return only the name and the adapter, because no version has a route for more."""
        name = self._url.path.rstrip("/").rpartition("/")[2] or self._url.host
        return EndpointInfo(name, self._config.kind, {"adapter": f"dynalab {self._version}"})
