"""The adapter for Open Inference Protocol v2 servers over REST: KServe, Triton, MLServer."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from core.text.words import order_labels_by_names
from tasks.targets.endpoints.answers import (
    expect_list,
    expect_number,
    expect_object,
    read_output,
    read_prob,
)
from tasks.targets.endpoints.base import (
    QA_KIND,
    EndpointConfig,
    EndpointInfo,
    Prediction,
    build_misconfigured_error,
    build_rubbish_error,
)
from tasks.targets.endpoints.client import JsonEndpoint
from tasks.targets.endpoints.prompts import fill_prompt
from tasks.targets.endpoints.transport import Clock, Transport


class OpenInferenceEndpoint(JsonEndpoint):
    """An endpoint for one model on an Open Inference Protocol v2 server.

    Texts are sent as BYTES tensors: one per field, or a single one filled from the template.
    """

    OPTIONS = {
        "model": str,
        "version": str,
        "inputs": Mapping,
        "template": str,
        "template_input": str,
        "rank": int,
        "label_output": str,
        "prob_output": str,
        "label_order": list,
        "label_map": Mapping,
    }

    def __init__(self, config: EndpointConfig, transport: Transport | None = None) -> None:
        super().__init__(config, transport)
        self._path = f"/v2/models/{quote(config.get_option('model', str, ...), safe='')}"
        self._url = _strip_route(self._url)
        if version := config.get_option("version", str):
            self._path += f"/versions/{quote(version, safe='')}"
        self._input_names = config.get_name_map("inputs")
        self._template = config.get_option("template", str)
        self._rank = config.get_option("rank", int, 1)
        self._label_output = config.get_option("label_output", str)
        self._prob_output = config.get_option("prob_output", str)
        self._label_order = list(config.get_option("label_order", list, list(config.labels or ())))
        self._label_map = config.get_name_map("label_map")
        if self._rank not in (1, 2):
            raise build_misconfigured_error(
                "The option 'rank' is 1 for shape [n] or 2 for shape [n, 1]."
            )
        if self._label_output is None and self._prob_output is None:
            raise build_misconfigured_error(
                "Name the tensor answered: 'label_output', 'prob_output' or both."
            )
        # The order is checked now, so that a wrong one is told to the editor and not to a writer.
        if self._prob_output is not None:
            self._check_order(config.labels)

    def _check_order(self, labels: tuple[str, ...] | None) -> None:
        if labels is None:
            raise build_misconfigured_error("The option 'prob_output' is for tasks with labels.")
        mapped_labels = [self._map_label(name) for name in self._label_order]
        if order_labels_by_names(mapped_labels, labels) is None:
            raise build_misconfigured_error(
                f"'label_order' gives {mapped_labels}; the labels are {list(labels)}."
            )

    def answer_inputs(self, inputs: Sequence[Mapping[str, Any]], clock: Clock) -> list[Prediction]:
        tensors = [
            self._build_tensor(name, column) for name, column in self._build_columns(inputs).items()
        ]
        reply = self.post(f"{self._path}/infer", {"inputs": tensors}, clock)
        answer = expect_object(reply, "The answer")
        fingerprint = _select_present_fields(answer, "model_name", "model_version")
        probs = self._read_probs(answer, len(inputs))
        outputs = self._convert_outputs(answer, inputs, probs)
        predictions = []
        for item, output, prob in zip(inputs, outputs, probs, strict=True):
            checked_output = read_output(self._config, item, output)
            predictions.append(Prediction(checked_output, prob, 0.0, fingerprint))
        return predictions

    def _build_columns(self, inputs: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
        """Return the input tensors by name, each with one text per example."""
        if self._template is not None:
            name = self._config.get_option("template_input", str, "text")
            return {name: [fill_prompt(self._template, item) for item in inputs]}
        columns = {}
        for field in self._config.fields:
            columns[self._input_names.get(field, field)] = [str(item[field]) for item in inputs]
        return columns

    def _build_tensor(self, name: str, column: list[str]) -> dict[str, Any]:
        # Servers differ in whether a batch of texts is a list or a column.
        shape = [len(column)] if self._rank == 1 else [len(column), 1]
        return {"name": name, "shape": shape, "datatype": "BYTES", "data": column}

    def _read_probs(self, answer: Mapping[str, Any], count: int) -> list[dict[str, float] | None]:
        if self._prob_output is None:
            return [None] * count
        # A tensor comes as one flat list, one row of probabilities after the other.
        flat_values = _read_data(answer, self._prob_output, ("FP16", "FP32", "FP64", "BF16"))
        width = len(self._label_order)
        values = expect_list(flat_values, count * width, f"The tensor {self._prob_output!r}")
        labels = list(map(self._map_label, self._label_order))
        probs = []
        for start in range(0, len(values), width):
            row = values[start : start + width]
            probs.append(read_prob(self._config, dict(zip(labels, row, strict=True))))
        return probs

    def _convert_outputs(
        self,
        answer: Mapping[str, Any],
        inputs: Sequence[Mapping[str, Any]],
        probs: Sequence[Mapping[str, float] | None],
    ) -> list[dict[str, Any]]:
        if self._label_output is None:
            return [
                {self._config.output: max(prob, key=prob.__getitem__)} for prob in probs if prob
            ]
        name = f"The tensor {self._label_output!r}"
        texts = expect_list(_read_data(answer, self._label_output, ("BYTES",)), len(inputs), name)
        outputs = [{self._config.output: self._map_label(text)} for text in texts]
        # A server may say where its answer stands. Otherwise the words are looked for.
        if self._config.kind == QA_KIND and _has_output(answer, "start"):
            for key in ("start", "end"):
                column = expect_list(
                    _read_data(answer, key, ("INT32", "INT64")), len(inputs), f"{key!r}"
                )
                for output, value in zip(outputs, column, strict=True):
                    output[key] = value
        return outputs

    def _map_label(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._label_map.get(value, value)
        return value

    def info(self, *, deadline_seconds: float) -> EndpointInfo:
        """Return the model's metadata if it is ready and has the right inputs.

        Raises EndpointError.
        """
        clock = Clock(deadline_seconds)
        self.send_request("GET", "/v2/health/ready", None, clock)
        answer = expect_object(self.get(self._path, clock), "The metadata")
        needed_columns = set(self._build_columns([dict.fromkeys(self._config.fields, "")]))
        offered_names = {
            expect_object(row, "An input").get("name") for row in _read_rows(answer, "inputs")
        }
        if offered_names and not needed_columns <= offered_names:
            raise build_misconfigured_error(
                f"The model has the inputs {sorted(map(str, offered_names))}, "
                f"not {sorted(needed_columns)}; map them with the option 'inputs'."
            )
        fingerprint = _select_present_fields(answer, "platform", "versions")
        return EndpointInfo(str(self._config.options["model"]), self._config.kind, fingerprint)


def _select_present_fields(answer: Mapping[str, Any], *names: str) -> dict[str, Any]:
    present_fields = {}
    for name in names:
        if name in answer:
            present_fields[name] = answer[name]
    return present_fields


def _read_rows(answer: Mapping[str, Any], name: str) -> list[Any]:
    rows = answer.get(name, [])
    if not isinstance(rows, list):
        raise build_rubbish_error(f"{name!r} must be a list.")
    return rows


def _has_output(answer: Mapping[str, Any], name: str) -> bool:
    return any(
        expect_object(row, "An output").get("name") == name for row in _read_rows(answer, "outputs")
    )


def _read_data(answer: Mapping[str, Any], name: str, types: Sequence[str]) -> list[Any]:
    """Return the data of an output tensor, flattened row by row. Raises EndpointError.

    types: the allowed data types.
    """
    for row in _read_rows(answer, "outputs"):
        if expect_object(row, "An output").get("name") != name:
            continue
        if row.get("datatype") not in types:
            raise build_rubbish_error(f"The tensor {name!r} must be {' or '.join(types)}.")
        flat_values = _flatten_list(_read_rows(row, "data"))
        if types == ("BYTES",):
            if not all(isinstance(value, str) for value in flat_values):
                raise build_rubbish_error(f"The tensor {name!r} must contain texts.")
            return flat_values
        if types[0].startswith("INT"):
            return flat_values
        return [expect_number(value, repr(name)) for value in flat_values]
    raise build_rubbish_error(f"The answer lacks the tensor {name!r}.")


def _flatten_list(values: list[Any]) -> list[Any]:
    flat_values: list[Any] = []
    for value in values:
        flat_values += _flatten_list(value) if isinstance(value, list) else [value]
    return flat_values


def _strip_route(url: httpx.URL) -> httpx.URL:
    """Return the URL up to `/v2`, without the model's path that people may have copied with it."""
    base, route, _model = url.path.partition("/v2/models/")
    return url.copy_with(path=base if route else url.path.rstrip("/").removesuffix("/v2"))
