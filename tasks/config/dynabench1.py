"""Convert configurations of Dynabench 1.0 (Dynatask YAML) and 2.0 to ours.

The format of 1.0 is described in its `docs/owners.md` and checked in its `api/models/task.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from tasks.config.checks import RESERVED_NAMES
from tasks.config.components import FIELD_TYPES
from tasks.config.dynabench2 import convert_to_version_1, is_dynabench2_config
from tasks.config.loading import load_config
from tasks.config.parsing import Finding, dump_yaml, read_yaml
from tasks.config.schema import METRIC_NAMES, DeltaName

OUR_TYPES = {
    "string": "text",
    "image": "image",
    "multiclass": "multiclass",
    "multilabel": "multilabel",
    "context_string_selection": "span",
    "prob": "prob",
}
CONTEXT_TYPES = ("text", "image", "multiclass")
INPUT_TYPES = ("text", "long_text", "image", "multiclass", "multilabel", "span")
OUR_COLUMNS = {"examples_per_second": "throughput", "memory_utilization": "memory"}
CONVERTED_KEYS = {
    "goal_message", "content_warning", "context", "input", "output", "metadata",
    "model_wrong_metric", "perf_metric", "delta_metrics", "aggregation_metric",
}  # fmt: skip
COMPONENT_KEYS = {
    "name", "type", "display_name", "placeholder", "labels", "as_goal_message", "reference_name",
    "single_prob", "model_wrong_condition", "validated_label_condition",
}  # fmt: skip
MAX_TRAINING_ROWS = 1000  # of a submission, as in DataPerf's contests
DEFAULT_GOAL = "Write an example that the model gets wrong"
Fields = list[dict[str, Any]]


@dataclass(frozen=True)
class ConvertedConfig:
    """A converted configuration: our YAML, and notes on what was changed or lost."""

    config_yaml_text: str
    notes: list[str]


def convert_config(yaml_text: str, *, name: str = "Imported task") -> ConvertedConfig:
    """Convert a configuration of Dynabench 1.0 or 2.0 to one that `load_config` accepts.

    name: the task's name, which the old formats lack. Raises ConfigError if the text is not a YAML
    mapping, or uses an interface of 2.0 that has no equivalent here.
    """
    # 1. A configuration of 2.0 is first put into the words of 1.0.
    document = read_yaml(yaml_text)
    mapping = document.data
    if is_dynabench2_config(document.data):
        mapping = convert_to_version_1(document)
    # 2. Convert it, and note what has no counterpart.
    conversion = _Conversion(mapping)
    text = dump_yaml({"version": 1, "name": name, **conversion.build_config()})
    # 3. Our own checks must accept what came out; this raises otherwise.
    load_config(text)
    return ConvertedConfig(text, conversion.notes)


def find_unsupported_parts(mapping: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the parts of a Dynabench 1.0 configuration that are not supported.

    The only such part is `train_file_metric`, unless people submit rows with a label and texts or a
    picture.
    """
    if "train_file_metric" in mapping and not _is_trained_on_rows(mapping):
        message = "training files (DataPerf) are for a picture, or one or two texts, and a label"
        fix = "leave it out; people then write examples, and models are scored on these"
        yield Finding(("train_file_metric",), message, fix)


def _is_trained_on_rows(mapping: Mapping[str, Any]) -> bool:
    """Return whether people submit training rows with a label and one or two texts or a picture."""
    fields: list[Any] = []
    for key in ("context", "input"):
        items = mapping.get(key)
        if isinstance(items, list):
            fields += items
    types = []
    for item in fields:
        if isinstance(item, Mapping):
            types.append(item.get("type"))
    input_types = sorted(str(type_name) for type_name in types if type_name != "multiclass")
    return (
        "train_file_metric" in mapping
        # Every field must be a mapping, and exactly one of them a label.
        and len(types) == len(fields) == len(input_types) + 1
        and input_types in (["image"], ["string"], ["string", "string"])
    )


@dataclass
class _Conversion:
    """A conversion in progress.

    old_config: the configuration to convert. notes: what was changed or lost. names_by_old_name:
    our name for each old name. used_names: our names in use.
    """

    old_config: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)
    names_by_old_name: dict[str, str] = field(default_factory=dict)
    used_names: set[str] = field(default_factory=set)

    def build_config(self) -> dict[str, Any]:
        """Return the converted configuration without version and name."""
        self.notes.append(
            "The file holds no name, summary, language, instructions or examples; add them."
        )
        self._note_unconverted_keys()
        context = self._convert_components("context", "text", CONTEXT_TYPES)
        texts = []
        for item in context:
            if FIELD_TYPES[item["type"]].is_text:
                texts.append(item["name"])
        inputs = self._convert_components("input", "long_text", INPUT_TYPES, texts)
        goal = self._convert_goal(inputs)
        outputs = self._convert_outputs(inputs)
        self._add_required_fields(context, inputs, outputs)
        output_names = [output["name"] for output in outputs]
        targets = [component["name"] for component in inputs if component["name"] in output_names]
        answers = [output["name"] for output in outputs if output["type"] != "prob"]
        metrics = self._convert_metrics((targets or answers)[0])
        warning = self.old_config.get("content_warning")
        config: dict[str, Any] = {}
        if warning:
            config["content_warning"] = {"text": str(warning)}
        config |= {
            "goal": goal,
            "context": context,
            "input": inputs,
            "output": outputs,
            "metadata": self._convert_metadata(texts),
            "verdict": self._convert_verdict(
                targets, {field["name"]: field["type"] for field in inputs}
            ),
            "metrics": metrics,
        }
        config |= self._convert_leaderboard(metrics)
        if _is_trained_on_rows(self.old_config):
            config["training_rows"] = MAX_TRAINING_ROWS
        config["validation"] = {"mode": "verdict", "votes": {"rule": "n-equal", "needed": 3}}
        return config

    def _note_unconverted_keys(self) -> None:
        for key in self.old_config:
            is_training = key == "train_file_metric" and _is_trained_on_rows(self.old_config)
            if key not in CONVERTED_KEYS and not is_training:
                self.notes.append(f"`{key}` is not carried over: it has no counterpart.")

    def _list_mappings(
        self, values: Mapping[str, Any], key: str, path: str
    ) -> list[Mapping[str, Any]]:
        """Return the mappings in the list at `key`. A plain text becomes a mapping with this name.

        Items without a name are left out, with a note. path: the list's place in the configuration.
        """
        raw_items = values.get(key) or []
        if not isinstance(raw_items, list):
            self.notes.append(f"`{path}` is not carried over: it is not a list.")
            return []
        items: list[Mapping[str, Any]] = []
        for item in raw_items:
            if isinstance(item, str):
                item = {"name": item}
            if isinstance(item, Mapping) and item.get("name"):
                items.append(item)
        if len(items) < len(raw_items):
            self.notes.append(f"`{path}`: items without a name are left out.")
        return items

    def _convert_components(
        self,
        key: str,
        text_type: str,
        allowed_types: Iterable[str],
        references: Iterable[str] = (),
    ) -> Fields:
        components = []
        for item in self._list_mappings(self.old_config, key, key):
            path = f"{key}.{item['name']}"
            component = self._convert_component(path, item, text_type, references)
            if component["type"] not in allowed_types:
                self.notes.append(f"`{path}`: no {component['type']} is possible here; now a text.")
                component = _convert_to_text(component, text_type)
            components.append(component)
        return components

    def _convert_component(
        self,
        path: str,
        item: Mapping[str, Any],
        text_type: str,
        references: Iterable[str],
    ) -> dict[str, Any]:
        """Return a field converted from 1.0, with a unique name.

        text_type: the type for texts. references: names of context texts.
        """
        our_type = OUR_TYPES.get(str(item.get("type", "string")))
        if our_type is None:
            self.notes.append(f"`{path}`: the type {item['type']} is unknown; now a text.")
        component: dict[str, Any] = {
            "name": self._make_name(path, str(item["name"])),
            "type": text_type if our_type in (None, "text") else our_type,
        }
        for key in item.keys() - COMPONENT_KEYS:
            self.notes.append(f"`{path}.{key}` is not carried over: it has no counterpart.")
        if item.get("display_name"):
            component["label"] = str(item["display_name"])
        if item.get("placeholder") and "placeholder" in FIELD_TYPES[component["type"]].keys:
            component["placeholder"] = str(item["placeholder"])
        if our_type and "labels" in FIELD_TYPES[our_type].keys:
            # Labels are needed in twos: with fewer there is nothing to choose.
            component["labels"] = self._read_labels(path, item.get("labels"))
            if len(component["labels"]) < 2:
                self.notes.append(f"`{path}` has fewer than 2 labels; now a text.")
                return _convert_to_text(component, text_type)
        if our_type == "span":
            component["reference"] = self._find_new_name(item.get("reference_name"))
        if our_type == "span" and component["reference"] not in references:
            self.notes.append(f"`{path}`: its reference is no string of the context; now a text.")
            return _convert_to_text(component, text_type)
        return component

    def _make_name(self, path: str, old_name: str) -> str:
        # Names of 1.0 may hold any character. Ours are keys of files and of forms.
        base = re.sub(r"\W", "_", old_name, flags=re.ASCII)[:50]
        base = base if re.match(r"[A-Za-z]", base) else f"field_{base}"
        stem = base
        if base in RESERVED_NAMES or base.endswith("_start"):
            stem = f"{base}_field"
        name, number = stem, 2
        # A number is added until no field has the name.
        while name in self.used_names:
            name, number = f"{stem}_{number}", number + 1
        if name != old_name:
            self.notes.append(f"`{path}` is now called {name}; rename it in data files too.")
        self.used_names.add(name)
        self.names_by_old_name.setdefault(old_name, name)
        return name

    def _find_new_name(self, old_name: Any) -> str:
        return self.names_by_old_name.get(str(old_name), str(old_name))

    def _read_labels(self, path: str, raw_labels: Any) -> list[str]:
        values = []
        if isinstance(raw_labels, list):
            values = raw_labels
        texts = [_format_label(value) for value in values]
        labels = list(dict.fromkeys(text for text in texts if text))
        if len(labels) < len(values):
            self.notes.append(f"`{path}.labels`: equal or empty labels are left out.")
        return labels

    def _convert_goal(self, inputs: Fields) -> dict[str, Any]:
        """Return the goal, with the field whose label people could choose in 1.0."""
        text = str(self.old_config.get("goal_message") or "").strip() or DEFAULT_GOAL
        # Braces would be read as the place of a field.
        text = text.replace("{", "(").replace("}", ")")
        goal_names = []
        for item in self._list_mappings(self.old_config, "input", "input"):
            if item.get("as_goal_message"):
                goal_names.append(self._find_new_name(item["name"]))
        choices = []
        for component in inputs:
            if component["type"] == "multiclass" and component["name"] in goal_names:
                choices.append(component["name"])
        if len(choices) < len(goal_names) or len(choices) > 1:
            self.notes.append("`as_goal_message`: only one multiclass field can be the goal.")
        if not choices:
            return {"field": None, "text": text}
        return {"field": choices[0], "text": f"{text}: {{{choices[0]}}}"}

    def _convert_outputs(self, inputs: Fields) -> Fields:
        """Return the outputs. An output that is also an input gets the input's type."""
        targets = {component["name"]: component for component in inputs}
        items = self._list_mappings(self.old_config, "output", "output")
        results: Fields = []
        for item in items:
            if item.get("type") == "prob":
                continue
            path, name = f"output.{item['name']}", self._find_new_name(item["name"])
            if name in targets:
                # People and models answer the same field. It is described once, by the input.
                results.append({"name": name, "type": targets[name]["type"]})
            else:
                results.append(self._convert_component(path, item, "text", ()))
            if "reference" in targets.get(name, {}):
                results[-1]["reference"] = targets[name]["reference"]
        # Of outputs of one name the last one counts, as in a mapping.
        results = list({output["name"]: output for output in results}.values())
        choices = []
        for output in results:
            if output["type"] == "multiclass":
                choices.append(output["name"])
        for item in items:
            if item.get("type") == "prob":
                results.append(self._convert_prob(item, choices))
        return results

    def _convert_prob(self, item: Mapping[str, Any], choices: list[str]) -> dict[str, Any]:
        path = f"output.{item['name']}"
        component: dict[str, Any] = {
            "name": self._make_name(path, str(item["name"])),
            "type": "prob",
        }
        reference = self._find_new_name(item.get("reference_name"))
        if item.get("single_prob") or not choices:
            return {**component, "single": True}
        if reference not in choices:
            self.notes.append(f"`{path}`: its reference is now {choices[0]}.")
        return {**component, "reference": reference if reference in choices else choices[0]}

    def _add_required_fields(self, context: Fields, inputs: Fields, outputs: Fields) -> None:
        """Add what every task needs: an input, an output, and a field that the model reads."""
        answers = [output for output in outputs if output["type"] != "prob"]
        if not inputs and answers:
            self.notes.append("There was no input; annotators now give what the model gives.")
            inputs += [dict(answer) for answer in answers]
        names = {output["name"] for output in outputs}
        readable_fields = []
        for component in inputs:
            if FIELD_TYPES[component["type"]].is_read and component["name"] not in names:
                readable_fields.append(component)
        if not readable_fields and not (context and inputs):
            self.notes.append("There was too little to write; the input has a new field `text`.")
            name = self._make_name("input.text", "text")
            inputs.insert(0, {"name": name, "type": "long_text", "label": "Text"})
        if not answers:
            self.notes.append("There was no output; the model now gives a text called `answer`.")
            outputs.insert(0, {"name": self._make_name("output.answer", "answer"), "type": "text"})

    def _convert_metadata(self, texts: list[str]) -> dict[str, Fields]:
        metadata = self.old_config.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            self.notes.append("`metadata` is not carried over: it is not a mapping.")
            return {}
        for key in metadata.keys() - {"create", "validate"}:
            self.notes.append(f"`metadata.{key}` is not carried over: it has no counterpart.")
        return {
            key: self._convert_questions(metadata, key, texts) for key in ("create", "validate")
        }

    def _convert_questions(self, metadata: Mapping[str, Any], key: str, texts: list[str]) -> Fields:
        questions = []
        for item in self._list_mappings(metadata, key, f"metadata.{key}"):
            path = f"metadata.{key}.{item['name']}"
            component = self._convert_component(path, item, "long_text", texts)
            if component["type"] == "prob":
                # People can give one probability, but none for each label.
                component = {**component, "single": True}
            questions.append(
                {**component, "required": False, **self._convert_condition(path, key, item)}
            )
        return questions

    def _convert_condition(self, path: str, key: str, item: Mapping[str, Any]) -> dict[str, Any]:
        wrong_condition, label = (
            item.get("model_wrong_condition"),
            item.get("validated_label_condition"),
        )
        if wrong_condition is not None and key == "create":
            return {"when": {"outcome": "fooled" if wrong_condition else "not_fooled"}}
        if label in ("correct", "incorrect", "flagged") and key == "validate":
            return {"when": {"verdict": label}}
        if wrong_condition is not None or label is not None:
            self.notes.append(f"`{path}`: its condition is not carried over; it is always asked.")
        return {}

    def _convert_verdict(self, targets: list[str], types: Mapping[str, str]) -> dict[str, Any]:
        rule = self.old_config.get("model_wrong_metric") or {"type": "ask_user"}
        rule = rule if isinstance(rule, Mapping) else {"type": rule}
        kind = rule.get("type")
        if kind == "exact_match":
            names = rule.get("reference_names")
            names = names if isinstance(names, list) else [names]
            fields = []
            for name in map(self._find_new_name, names):
                if name in targets:
                    fields.append(name)
            if len(fields) < len(names):
                self.notes.append("`model_wrong_metric`: fields that are not targets are left out.")
            if fields:
                return {"type": "exact_match", "fields": list(dict.fromkeys(fields))}
        if kind == "string_f1":
            name = self._find_new_name(rule.get("reference_name"))
            if name in targets and types[name] in ("text", "long_text", "span"):
                threshold = self._read_threshold(rule.get("threshold"))
                return {"type": "string_f1", "field": name, "threshold": threshold}
        if kind != "ask_user":
            self.notes.append(f"`model_wrong_metric`: {kind} does not fit; the author is asked.")
        return {"type": "ask_user"}

    def _read_threshold(self, value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and 0 < value <= 1:
            return float(value)
        self.notes.append("`model_wrong_metric.threshold` is now 0.4: it was no number up to 1.")
        return 0.4

    def _convert_metrics(self, answer: str) -> dict[str, Any]:
        value = self.old_config.get("perf_metric") or {}
        metric_names = []
        for metric in _ensure_list(value):
            if not isinstance(metric, Mapping):
                metric = {"type": metric}
            if metric.get("type") in METRIC_NAMES:
                metric_names.append(metric["type"])
            else:
                self.notes.append(f"`perf_metric`: {metric.get('type')} is not carried over.")
            reference = self._find_new_name(metric.get("reference_name"))
            if metric.get("reference_name") and reference != answer:
                self.notes.append(f"`perf_metric`: {answer} is scored, not {reference}.")
        if not metric_names:
            self.notes.append(
                "`perf_metric` is now accuracy: no metric that exists here was named."
            )
        if metric_names[:1] == ["sp_bleu"]:  # which nobody can compute without the operator's file
            self.notes.append("`perf_metric`: chrf_pp is the main metric; sp_bleu needs a file.")
            metric_names = ["chrf_pp", "bleu", *metric_names]
        # Each once, the first one as the main metric.
        main, *other_names = dict.fromkeys(metric_names or ["accuracy"])
        return {"main": main, "also": other_names, "deltas": self._read_deltas()}

    def _read_deltas(self) -> list[str]:
        deltas = _ensure_list(self.old_config.get("delta_metrics") or [])
        delta_names = []
        for delta in deltas:
            name = delta.get("type") if isinstance(delta, Mapping) else delta
            delta_names.append(name)
            if name not in get_args(DeltaName):
                self.notes.append(f"`delta_metrics`: {name} is not carried over.")
        return [name for name in get_args(DeltaName) if name in delta_names]

    def _convert_leaderboard(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        aggregation = self.old_config.get("aggregation_metric") or {}
        weights = None
        if isinstance(aggregation, Mapping):
            weights = aggregation.get("default_weights")
        kind = aggregation
        if isinstance(aggregation, Mapping):
            kind = aggregation.get("type", "dynascore")
        if kind != "dynascore":
            self.notes.append(f"`aggregation_metric`: {kind} is not carried over; it is dynascore.")
        if not isinstance(weights, Mapping):
            return {}
        columns = set(OUR_COLUMNS.values()).union(
            [metrics["main"]], metrics["also"], metrics["deltas"]
        )
        new_weights = {}
        for old_name, weight in weights.items():
            name = OUR_COLUMNS.get(old_name, old_name)
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            # Weights of columns that this task does not have would never count.
            if name in columns and is_number and weight >= 0:
                new_weights[name] = float(weight)
            else:
                self.notes.append(
                    f"`aggregation_metric`: the weight of {old_name} is not carried over."
                )
        # With nothing but zeros all models would score the same.
        if any(new_weights.values()):
            return {"leaderboard": {"weights": new_weights}}
        return {}


def _convert_to_text(component: Mapping[str, Any], text_type: str) -> dict[str, Any]:
    text_keys = {}
    for key in ("name", "label", "placeholder"):
        if key in component:
            text_keys[key] = component[key]
    return {**text_keys, "type": text_type}


def _format_label(value: Any) -> str:
    """Return a label as text. In 1.0, YAML labels may be booleans, numbers or null."""
    if value is None or isinstance(value, list | dict):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()


def _ensure_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if value:
        return [value]
    return []
