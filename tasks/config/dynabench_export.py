"""Convert our configurations to Dynabench 1.0 and 2.0, the reverse of `dynabench1`.

Settings without an equivalent are listed in notes. If the task would become a different one, the
conversion is refused.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.errors import Refused
from tasks.config.components import Component
from tasks.config.dynabench1 import OUR_COLUMNS, OUR_TYPES
from tasks.config.loading import dump_config
from tasks.config.parsing import dump_yaml, read_yaml
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import AskUser, ExactMatch, StringF1

Version = Literal["1.0", "2.0"]
VERSIONS: Sequence[Version] = ("1.0", "2.0")
OLD_TYPES = dict(zip(OUR_TYPES.values(), OUR_TYPES.keys(), strict=True)) | {"long_text": "string"}
OLD_COLUMNS = dict(zip(OUR_COLUMNS.values(), OUR_COLUMNS.keys(), strict=True))
TYPES_BY_SECTION = {
    "context": ("string", "image", "multiclass"),
    "input": ("string", "image", "multiclass", "multilabel", "context_string_selection"),
}
VERSION_1_METRICS = {
    "accuracy",
    "macro_f1",
    "squad_f1",
    "bleu",
    "sp_bleu",
    "vqa_accuracy",
    "dataperf_f1",
}
"""The metrics that 1.0 has. 2.0 has more, and people can add their own."""
EXPORTED_KEYS = {"name", "type", "label", "placeholder", "labels", "reference", "single", "when"}
EXPORTED_SECTIONS = {
    "version",
    "name",
    "content_warning",
    "goal",
    "context",
    "input",
    "output",
    "metadata",
    "verdict",
    "metrics",
    "leaderboard",
    "training_rows",
}
DEFAULT_VALIDATION = {"mode": "verdict", "votes": {"rule": "n-equal", "needed": 3}}
"""The validation settings that 1.0 and 2.0 use unless their database says otherwise."""
MODEL_NAME, MODEL_NAMES = "field_name_for_the_model", "field_names_for_the_model"
Fields = list[dict[str, Any]]


class NoCounterpart(Refused):
    """Raised if Dynabench's format cannot express a configuration. The message names each part."""

    code = "no_counterpart"
    status = 422


@dataclass(frozen=True)
class ExportedConfig:
    """A configuration in Dynabench's format.

    text: the YAML, which begins with the notes as comments. notes: the settings that the YAML
    lacks, except the name.
    """

    text: str
    notes: list[str]


def export_to_dynabench(config: TaskConfig, version: Version) -> ExportedConfig:
    """Return a configuration for Dynabench 1.0 or 2.0. `dynabench1.convert_config` reads it back.

    Raises NoCounterpart if the result would not be equivalent.
    """
    export = _Export(config, version)
    document = export.build_version_1()
    document = export.build_version_2(document) if version == "2.0" else document
    # After both steps, so that all reasons are in one message.
    if export.refusal_reasons:
        reasons = "; ".join(export.refusal_reasons)
        raise NoCounterpart(f"Dynabench {version} cannot say this task: {reasons}.")
    notes = "".join(f"# {note}\n" for note in export.notes)
    return ExportedConfig(f"# For Dynabench {version}.\n{notes}{dump_yaml(document)}", export.notes)


@dataclass
class _Export:
    config: TaskConfig
    version: Version
    notes: list[str] = field(default_factory=list)
    refusal_reasons: list[str] = field(default_factory=list)

    def build_version_1(self) -> dict[str, Any]:
        config = self.config
        if config.kind != "examples":
            self.refusal_reasons.append("it is an arena")
            return {}
        # Before anything is converted, so that these notes are read first.
        self._note_unexported_settings()
        warning, metrics = config.content_warning, config.metrics
        if metrics.main not in VERSION_1_METRICS:
            self.notes.append(
                f"`metrics.main`: {metrics.main} is computed only where it was added."
            )
        answer = config.answer_field
        metric_entries = []
        for name in (metrics.main, *metrics.also):  # the main one first
            metric_entries.append({"type": name, "reference_name": answer})
        if self.version == "1.0" and metrics.also:
            self.notes.append("`metrics.also` is not carried over: there is one metric.")
        has_one_metric = self.version == "1.0" or not metrics.also
        mapping: dict[str, Any] = {}
        if warning:
            mapping["content_warning"] = warning.text
        return mapping | {
            "goal_message": self._convert_goal(),
            "context": list(self._convert_fields("context", config.context)),
            "input": list(self._convert_fields("input", config.input)),
            "output": list(self._convert_outputs()),
            "metadata": {
                "create": list(self._convert_questions("create", config.metadata.create)),
                "validate": list(self._convert_questions("validate", config.metadata.validate)),
            },
            "model_wrong_metric": self._convert_verdict(),
            "perf_metric": metric_entries[0] if has_one_metric else metric_entries,
            "delta_metrics": [{"type": name} for name in metrics.deltas],
            "aggregation_metric": self._convert_weights(),
            **self._convert_training(answer),
        }

    def _note_unexported_settings(self) -> None:
        """Add a note for each setting without an equivalent."""
        # The written form has only what differs from the defaults, so defaults are no loss.
        config_data = read_yaml(dump_config(self.config)).data
        metadata = config_data.get("metadata", {})
        for key, value in config_data.items():
            if key not in EXPORTED_SECTIONS and (key, value) != ("validation", DEFAULT_VALIDATION):
                self.notes.append(f"`{key}` is not carried over.")
        for section in ("context", "input", "output"):
            self._note_fields(section, config_data.get(section, []), EXPORTED_KEYS)
        for section in ("create", "validate"):
            self._note_fields(
                f"metadata.{section}", metadata.get(section, []), EXPORTED_KEYS | {"required"}
            )

    def _note_fields(self, section: str, items: Fields, known_keys: Collection[str]) -> None:
        for item in items:
            path = f"{section}.{item['name']}"
            for key in item:
                if key not in known_keys:
                    self.notes.append(f"`{path}.{key}` is not carried over.")
            if any(len(label) > 1 for label in item.get("labels", [])):
                self.notes.append(f"`{path}.labels`: of each there is its value alone.")

    def _convert_goal(self) -> str:
        goal = self.config.goal
        if goal.field is None:
            return goal.text
        placeholder = f"{{{goal.field}}}"
        # The form in which `dynabench1` writes a goal with a label, so that it comes back equal.
        text = goal.text.removesuffix(f": {placeholder}")
        if placeholder in text:
            title = self.config.get_component(goal.field).title
            self.notes.append(
                f"`goal.text`: the label that is drawn no longer stands in it: {title}."
            )
        return text.replace(placeholder, self.config.get_component(goal.field).title)

    def _convert_fields(
        self, section: str, fields: Sequence[Component]
    ) -> Iterator[dict[str, Any]]:
        for component in fields:
            if OLD_TYPES.get(component.type) not in TYPES_BY_SECTION[section]:
                self.refusal_reasons.append(
                    f"`{section}.{component.name}` is of the type {component.type}"
                )
                continue
            item = self._convert_component(component)
            if component.when:
                self.notes.append(
                    f"`{section}.{component.name}.when` is not carried over: it is always asked."
                )
            if component.name == self.config.goal.field:
                # 1.0 marks the field itself, and here the goal names it.
                item["as_goal_message"] = True
            yield item

    def _convert_component(self, component: Component) -> dict[str, Any]:
        item: dict[str, Any] = {"name": component.name, "type": OLD_TYPES[component.type]}
        optional_values = {
            "display_name": component.label,
            "placeholder": component.placeholder,
            "labels": list(component.values),
            "reference_name": component.reference,
            "single_prob": component.single,
        }
        for key, value in optional_values.items():
            if value:  # the others are what Dynabench takes where nothing is said
                item[key] = value
        return item

    def _convert_outputs(self) -> Iterator[dict[str, Any]]:
        """Yield the outputs.

        An output that people also fill in has only a name, because the input describes it.
        """
        for output in self.config.output:
            if output.name in self.config.target_fields:
                yield {"name": output.name}
            # An output of the model only has no input that describes it.
            elif output.type in OLD_TYPES:
                yield self._convert_component(output)
            else:
                self.refusal_reasons.append(f"`output.{output.name}` is of the type {output.type}")

    def _convert_questions(
        self, section: str, questions: Sequence[Component]
    ) -> Iterator[dict[str, Any]]:
        for question in questions:
            path, condition = f"metadata.{section}.{question.name}", question.when
            if question.type not in OLD_TYPES:
                self.notes.append(f"`{path}` is not carried over: its type is {question.type}.")
                continue
            item = self._convert_component(question)
            if condition and condition.outcome in ("fooled", "not_fooled"):
                item["model_wrong_condition"] = condition.outcome == "fooled"
            elif condition and condition.verdict:
                item["validated_label_condition"] = condition.verdict
            elif condition:
                self.notes.append(f"`{path}.when` is not carried over: it is always asked.")
            yield item

    def _convert_verdict(self) -> dict[str, Any]:
        rule = self.config.verdict
        match rule:
            case ExactMatch():
                return {"type": rule.type, "reference_names": list(rule.fields)}
            case StringF1():
                if rule.ask_between:
                    self.notes.append("`verdict.ask_between` is not carried over.")
                mapping = {"type": rule.type, "reference_name": rule.field}
                return {**mapping, "threshold": rule.threshold}
            case AskUser():
                return {"type": rule.type}
        self.refusal_reasons.append(f"`verdict` is {rule.type}")
        return {}

    def _convert_weights(self) -> dict[str, Any]:
        weights = {}
        for name, weight in self.config.leaderboard.weights.items():
            weights[OLD_COLUMNS.get(name, name)] = weight
        if not weights:
            return {"type": "dynascore"}
        return {"type": "dynascore", "default_weights": weights}

    def _convert_training(self, answer: str) -> dict[str, Any]:
        if self.config.training_rows is None:
            return {}
        self.notes.append("`train_file_metric`: its seeds and test labels are yours to add.")
        return {"train_file_metric": {"type": "dataperf", "reference_name": answer}}

    def build_version_2(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a 1.0 configuration with the interfaces of 2.0 instead of its fields.

        Returns {} if the export has been refused.
        """
        if self.refusal_reasons:
            return {}
        config, answer = self.config, self.config.answer_field
        quoted_fields: Fields = []
        drawn_fields: Fields = []
        other_fields: Fields = []
        for item in document["input"]:
            # 2.0 asks for what is quoted and what is drawn in other places than the rest.
            is_drawn = item.get("as_goal_message")
            if item["type"] == "context_string_selection":
                quoted_fields.append(item)
            if is_drawn:
                drawn_fields.append(item)
            if item["type"] != "context_string_selection" and not is_drawn:
                other_fields.append(item)
        special_fields = quoted_fields + drawn_fields
        # Its pages return one answer, which is either marked or drawn.
        if len(special_fields) > 1 or any(item["name"] != answer for item in special_fields):
            self.refusal_reasons.append("more is drawn or marked than the answer")
        self._note_labels(document)
        goal = {"type": "plain-text", "text": document["goal_message"]}
        for item in drawn_fields:
            goal = {"type": "multioptions", "options": item["labels"], MODEL_NAME: item["name"]}
        converted_document = dict(document)
        del converted_document["context"], converted_document["input"]
        if not drawn_fields:
            del converted_document["goal_message"]
        return {
            **converted_document,
            "goal": goal,
            **self._build_context_2(document["context"], quoted_fields),
            "user_input": list(filter(None, map(self._build_input_2, other_fields))),
            "model_input": dict(zip(config.model_fields, config.model_fields, strict=True)),
            "response_fields": {"input_by_user": config.text_field},
            "model_output": {"model_prediction_label": answer},
        }

    def _note_labels(self, document: Mapping[str, Any]) -> None:
        """Add a note for each field label, which 2.0 cannot express."""
        for section in ("context", "input"):
            for item in document[section]:
                if "display_name" in item:
                    self.notes.append(f"`{section}.{item['name']}.label` is not carried over.")

    def _build_context_2(self, context: Fields, quoted_fields: Fields) -> dict[str, Any]:
        if len(context) > 1 or any(item["type"] != "string" for item in context):
            self.refusal_reasons.append("`context` is more than one text")
        if not context:
            return {}
        names = {"context": context[0]["name"]}
        if not quoted_fields:
            return {"context": {"type": "plain-text", MODEL_NAMES: names}}
        names["answer"] = quoted_fields[0]["name"]
        return {"context": {"type": "selectable-text", MODEL_NAMES: names}}

    def _build_input_2(self, item: Mapping[str, Any]) -> dict[str, Any] | None:
        name, kind = item["name"], item["type"]
        if kind == "string":
            placeholder = {}
            if "placeholder" in item:
                placeholder = {"placeholder": item["placeholder"]}
            return {"type": "text", MODEL_NAME: name, **placeholder}
        if kind == "multiclass":
            return {"type": "multioptions", MODEL_NAME: name, "options": item["labels"]}
        self.refusal_reasons.append(f"`input.{name}` is of the type {kind}")
        return None
