"""Configurations of Dynabench 1.0 (Dynatask YAML) and of 2.0 as configurations of ours.

What 1.0 could say is described in its `docs/owners.md` and checked in its `api/models/task.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from tasks.config.checks import RESERVED_NAMES
from tasks.config.components import FIELD_TYPES
from tasks.config.dynabench2 import convert_to_1, is_of_dynabench2
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
    """The result of a conversion: our YAML, and notes on what was changed or lost."""

    config_yaml_text: str
    notes: list[str]


def convert(yaml_text: str, *, name: str = "Imported task") -> ConvertedConfig:
    """Convert a configuration of Dynabench 1.0 or 2.0; `load_config` accepts the result.

    Raises ConfigError if the text is not a YAML mapping, or uses an interface of 2.0 that has no
    counterpart here.
    """
    # 1. A configuration of 2.0 is first put into the words of 1.0.
    document = read_yaml(yaml_text)
    mapping = document.data
    if is_of_dynabench2(document.data):
        mapping = convert_to_1(document)
    # 2. Convert it, and note what has no counterpart.
    conversion = _Conversion(mapping)
    text = dump_yaml({"version": 1, "name": name, **conversion.config()})
    # 3. Our own checks must accept what came out; this raises otherwise.
    load_config(text)
    return ConvertedConfig(text, conversion.notes)


def find_unsupported_parts(mapping: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the unsupported parts of a Dynabench 1.0 configuration: some training files."""
    if "train_file_metric" in mapping and not _learns_from_rows(mapping):
        message = "training files (DataPerf) are for a picture, or one or two texts, and a label"
        fix = "leave it out; people then write examples, and models are scored on these"
        yield Finding(("train_file_metric",), message, fix)


def _learns_from_rows(mapping: Mapping[str, Any]) -> bool:
    """Return whether people submit training files of a label and one or two texts or a picture."""
    fields: list[Any] = []
    for key in ("context", "input"):
        listed = mapping.get(key)
        if isinstance(listed, list):
            fields += listed
    kinds = []
    for item in fields:
        if isinstance(item, Mapping):
            kinds.append(item.get("type"))
    input_kinds = sorted(str(kind) for kind in kinds if kind != "multiclass")
    return (
        "train_file_metric" in mapping
        # Every field must be a mapping, and exactly one of them a label.
        and len(kinds) == len(fields) == len(input_kinds) + 1
        and input_kinds in (["image"], ["string"], ["string", "string"])
    )


@dataclass
class _Conversion:
    """One conversion. `renamed` maps old names to ours; `taken` contains our names in use."""

    given: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def config(self) -> dict[str, Any]:
        """Return the configuration without version and name."""
        self.notes.append(
            "The file holds no name, summary, language, instructions or examples; add them."
        )
        self._note_lost()
        context = self._components("context", "text", CONTEXT_TYPES)
        texts = []
        for item in context:
            if FIELD_TYPES[item["type"]].is_text:
                texts.append(item["name"])
        inputs = self._components("input", "long_text", INPUT_TYPES, texts)
        goal = self._goal(inputs)
        outputs = self._outputs(inputs)
        self._add_needed_fields(context, inputs, outputs)
        output_names = [output["name"] for output in outputs]
        targets = [component["name"] for component in inputs if component["name"] in output_names]
        answers = [output["name"] for output in outputs if output["type"] != "prob"]
        metrics = self._metrics((targets or answers)[0])
        warning = self.given.get("content_warning")
        config: dict[str, Any] = {}
        if warning:
            config["content_warning"] = {"text": str(warning)}
        config |= {
            "goal": goal,
            "context": context,
            "input": inputs,
            "output": outputs,
            "metadata": self._metadata(texts),
            "verdict": self._verdict(targets, {c["name"]: c["type"] for c in inputs}),
            "metrics": metrics,
        }
        config |= self._leaderboard(metrics)
        if _learns_from_rows(self.given):
            config["training_rows"] = MAX_TRAINING_ROWS
        config["validation"] = {"mode": "verdict", "votes": {"rule": "n-equal", "needed": 3}}
        return config

    def _note_lost(self) -> None:
        for key in self.given:
            learns = key == "train_file_metric" and _learns_from_rows(self.given)
            if key not in CONVERTED_KEYS and not learns:
                self.notes.append(f"`{key}` is not carried over: it has no counterpart.")

    def _list_mappings(
        self, values: Mapping[str, Any], key: str, path: str
    ) -> list[Mapping[str, Any]]:
        """Return the mappings in a list. A plain text in it becomes a mapping with this name."""
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

    def _components(
        self,
        key: str,
        text_type: str,
        allowed_types: Iterable[str],
        references: Iterable[str] = (),
    ) -> Fields:
        result = []
        for item in self._list_mappings(self.given, key, key):
            path = f"{key}.{item['name']}"
            component = self._component(path, item, text_type, references)
            if component["type"] not in allowed_types:
                self.notes.append(f"`{path}`: no {component['type']} is possible here; now a text.")
                component = _convert_to_text(component, text_type)
            result.append(component)
        return result

    def _component(
        self,
        path: str,
        item: Mapping[str, Any],
        text_type: str,
        references: Iterable[str],
    ) -> dict[str, Any]:
        """Convert one component and make its name unique."""
        kind = OUR_TYPES.get(str(item.get("type", "string")))
        if kind is None:
            self.notes.append(f"`{path}`: the type {item['type']} is unknown; now a text.")
        component: dict[str, Any] = {
            "name": self._make_name(path, str(item["name"])),
            "type": text_type if kind in (None, "text") else kind,
        }
        for key in item.keys() - COMPONENT_KEYS:
            self.notes.append(f"`{path}.{key}` is not carried over: it has no counterpart.")
        if item.get("display_name"):
            component["label"] = str(item["display_name"])
        if item.get("placeholder") and "placeholder" in FIELD_TYPES[component["type"]].keys:
            component["placeholder"] = str(item["placeholder"])
        if kind and "labels" in FIELD_TYPES[kind].keys:
            # Labels are needed in twos: with fewer there is nothing to choose.
            component["labels"] = self._labels(path, item.get("labels"))
            if len(component["labels"]) < 2:
                self.notes.append(f"`{path}` has fewer than 2 labels; now a text.")
                return _convert_to_text(component, text_type)
        if kind == "span":
            component["reference"] = self._find_new_name(item.get("reference_name"))
        if kind == "span" and component["reference"] not in references:
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
        while name in self.taken:
            name, number = f"{stem}_{number}", number + 1
        if name != old_name:
            self.notes.append(f"`{path}` is now called {name}; rename it in data files too.")
        self.taken.add(name)
        self.renamed.setdefault(old_name, name)
        return name

    def _find_new_name(self, old_name: Any) -> str:
        return self.renamed.get(str(old_name), str(old_name))

    def _labels(self, path: str, raw_labels: Any) -> list[str]:
        values = []
        if isinstance(raw_labels, list):
            values = raw_labels
        texts = [_format_label(value) for value in values]
        labels = list(dict.fromkeys(text for text in texts if text))
        if len(labels) < len(values):
            self.notes.append(f"`{path}.labels`: equal or empty labels are left out.")
        return labels

    def _goal(self, inputs: Fields) -> dict[str, Any]:
        """Return the goal, with the label that people could choose in 1.0."""
        text = str(self.given.get("goal_message") or "").strip() or DEFAULT_GOAL
        # Braces would be read as the place of a field.
        text = text.replace("{", "(").replace("}", ")")
        drawn_names = []
        for item in self._list_mappings(self.given, "input", "input"):
            if item.get("as_goal_message"):
                drawn_names.append(self._find_new_name(item["name"]))
        choices = []
        for c in inputs:
            if c["type"] == "multiclass" and c["name"] in drawn_names:
                choices.append(c["name"])
        if len(choices) < len(drawn_names) or len(choices) > 1:
            self.notes.append("`as_goal_message`: only one multiclass field can be the goal.")
        if not choices:
            return {"field": None, "text": text}
        return {"field": choices[0], "text": f"{text}: {{{choices[0]}}}"}

    def _outputs(self, inputs: Fields) -> Fields:
        """Return the outputs. An output that is also an input takes the input's type and labels."""
        targets = {component["name"]: component for component in inputs}
        items = self._list_mappings(self.given, "output", "output")
        results: Fields = []
        for item in items:
            if item.get("type") == "prob":
                continue
            path, name = f"output.{item['name']}", self._find_new_name(item["name"])
            if name in targets:
                # People and models answer the same field. It is described once, by the input.
                results.append({"name": name, "type": targets[name]["type"]})
            else:
                results.append(self._component(path, item, "text", ()))
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
                results.append(self._prob(item, choices))
        return results

    def _prob(self, item: Mapping[str, Any], choices: list[str]) -> dict[str, Any]:
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

    def _add_needed_fields(self, context: Fields, inputs: Fields, outputs: Fields) -> None:
        """Add what every task needs: an input, an answer, and a field for the model to read."""
        answers = [output for output in outputs if output["type"] != "prob"]
        if not inputs and answers:
            self.notes.append("There was no input; annotators now give what the model gives.")
            inputs += [dict(answer) for answer in answers]
        names = {output["name"] for output in outputs}
        readable = []
        for c in inputs:
            if FIELD_TYPES[c["type"]].is_read and c["name"] not in names:
                readable.append(c)
        if not readable and not (context and inputs):
            self.notes.append("There was too little to write; the input has a new field `text`.")
            name = self._make_name("input.text", "text")
            inputs.insert(0, {"name": name, "type": "long_text", "label": "Text"})
        if not answers:
            self.notes.append("There was no output; the model now gives a text called `answer`.")
            outputs.insert(0, {"name": self._make_name("output.answer", "answer"), "type": "text"})

    def _metadata(self, texts: list[str]) -> dict[str, Fields]:
        metadata = self.given.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            self.notes.append("`metadata` is not carried over: it is not a mapping.")
            return {}
        for key in metadata.keys() - {"create", "validate"}:
            self.notes.append(f"`metadata.{key}` is not carried over: it has no counterpart.")
        return {key: self._questions(metadata, key, texts) for key in ("create", "validate")}

    def _questions(self, metadata: Mapping[str, Any], key: str, texts: list[str]) -> Fields:
        result = []
        for item in self._list_mappings(metadata, key, f"metadata.{key}"):
            path = f"metadata.{key}.{item['name']}"
            component = self._component(path, item, "long_text", texts)
            if component["type"] == "prob":
                # People can give one probability, but none for each label.
                component = {**component, "single": True}
            result.append({**component, "required": False, **self._condition(path, key, item)})
        return result

    def _condition(self, path: str, key: str, item: Mapping[str, Any]) -> dict[str, Any]:
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

    def _verdict(self, targets: list[str], types: Mapping[str, str]) -> dict[str, Any]:
        rule = self.given.get("model_wrong_metric") or {"type": "ask_user"}
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
                threshold = self._threshold(rule.get("threshold"))
                return {"type": "string_f1", "field": name, "threshold": threshold}
        if kind != "ask_user":
            self.notes.append(f"`model_wrong_metric`: {kind} does not fit; the author is asked.")
        return {"type": "ask_user"}

    def _threshold(self, value: Any) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and 0 < value <= 1:
            return float(value)
        self.notes.append("`model_wrong_metric.threshold` is now 0.4: it was no number up to 1.")
        return 0.4

    def _metrics(self, answer: str) -> dict[str, Any]:
        value = self.given.get("perf_metric") or {}
        metric_names = []
        for metric in _as_list(value):
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
        main, *also = dict.fromkeys(metric_names or ["accuracy"])
        return {"main": main, "also": also, "deltas": self._deltas()}

    def _deltas(self) -> list[str]:
        deltas = _as_list(self.given.get("delta_metrics") or [])
        delta_names = []
        for delta in deltas:
            name = delta.get("type") if isinstance(delta, Mapping) else delta
            delta_names.append(name)
            if name not in get_args(DeltaName):
                self.notes.append(f"`delta_metrics`: {name} is not carried over.")
        return [name for name in get_args(DeltaName) if name in delta_names]

    def _leaderboard(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        aggregation = self.given.get("aggregation_metric") or {}
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
        result = {}
        for old_name, weight in weights.items():
            name = OUR_COLUMNS.get(old_name, old_name)
            number = isinstance(weight, int | float) and not isinstance(weight, bool)
            # Weights of columns that this task does not have would never count.
            if name in columns and number and weight >= 0:
                result[name] = float(weight)
            else:
                self.notes.append(
                    f"`aggregation_metric`: the weight of {old_name} is not carried over."
                )
        # With nothing but zeros all models would score the same.
        if any(result.values()):
            return {"leaderboard": {"weights": result}}
        return {}


def _convert_to_text(component: Mapping[str, Any], text_type: str) -> dict[str, Any]:
    kept_keys = {}
    for key in ("name", "label", "placeholder"):
        if key in component:
            kept_keys[key] = component[key]
    return {**kept_keys, "type": text_type}


def _format_label(value: Any) -> str:
    """Return a label as text. YAML of 1.0 may contain booleans, numbers or null as labels."""
    if value is None or isinstance(value, list | dict):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if value:
        return [value]
    return []
