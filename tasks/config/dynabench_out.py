"""Configurations of ours in the words of Dynabench 1.0 and 2.0: the way back of `dynabench1`.

What those cannot say is listed where people can do without it, and refused where the task would be
another one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.errors import Refused
from tasks.config.components import Component
from tasks.config.dynabench1 import COLUMNS, TYPES
from tasks.config.loading import dump_config
from tasks.config.parsing import dump_yaml, read_yaml
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import AskUser, ExactMatch, StringF1

Version = Literal["1.0", "2.0"]
VERSIONS: Sequence[Version] = ("1.0", "2.0")
OLD_TYPES = {ours: theirs for theirs, ours in TYPES.items()} | {"long_text": "string"}
OLD_COLUMNS = {ours: theirs for theirs, ours in COLUMNS.items()}
PLACES = {
    "context": ("string", "image", "multiclass"),
    "input": ("string", "image", "multiclass", "multilabel", "context_string_selection"),
}
COMPUTED = {
    *("accuracy", "macro_f1", "squad_f1", "bleu", "sp_bleu", "vqa_accuracy", "dataperf_f1"),
}
"""The metrics of 1.0; 2.0 has others too, and people add theirs."""
SAID = {"name", "type", "label", "placeholder", "labels", "reference", "single", "when"}
SAID_PARTS = {
    *(
        "version",
        "name",
        "content_warning",
        "goal",
        "context",
        "input",
        "output",
        "metadata",
        "verdict",
    ),
    *("metrics", "leaderboard", "training_rows"),
}
VOTES = {"mode": "verdict", "votes": {"rule": "n-equal", "needed": 3}}
"""How 1.0 and 2.0 judge unless their database says otherwise."""
MODEL_NAME, MODEL_NAMES = "field_name_for_the_model", "field_names_for_the_model"
Fields = list[dict[str, Any]]


class NoCounterpart(Refused):
    """A configuration says what Dynabench cannot; the message names each part."""

    code = "no_counterpart"
    status = 422


@dataclass(frozen=True)
class Exported:
    """Their YAML, which begins with the notes as comments, and what is not in it besides a name."""

    text: str
    notes: list[str]


def to_dynabench(config: TaskConfig, version: Version) -> Exported:
    """Convert a configuration for Dynabench 1.0 or 2.0; `dynabench1.convert` reads it back.

    Raises NoCounterpart where the task would be another one there.
    """
    export = _Export(config, version)
    document = export.in_words_of_1()
    document = export.in_words_of_2(document) if version == "2.0" else document
    if export.refused:
        what = "; ".join(export.refused)
        raise NoCounterpart(f"Dynabench {version} cannot say this task: {what}.")
    notes = "".join(f"# {note}\n" for note in export.notes)
    return Exported(f"# For Dynabench {version}.\n{notes}{dump_yaml(document)}", export.notes)


@dataclass
class _Export:
    config: TaskConfig
    version: Version
    notes: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def in_words_of_1(self) -> dict[str, Any]:
        config = self.config
        if config.kind != "examples":
            self.refused.append("it is an arena")
            return {}
        self._note_lost()
        warning, metrics = config.content_warning, config.metrics
        if metrics.main not in COMPUTED:
            self.notes.append(
                f"`metrics.main`: {metrics.main} is computed only where it was added."
            )
        answer = config.answer_field
        scored = [
            {"type": name, "reference_name": answer} for name in (metrics.main, *metrics.also)
        ]
        if self.version == "1.0" and metrics.also:
            self.notes.append("`metrics.also` is not carried over: there is one metric.")
        one_metric = self.version == "1.0" or not metrics.also
        return {
            **({"content_warning": warning.text} if warning else {}),
            "goal_message": self._goal(),
            "context": [*self._fields("context", config.context)],
            "input": [*self._fields("input", config.input)],
            "output": [*self._outputs()],
            "metadata": {
                "create": [*self._questions("create", config.metadata.create)],
                "validate": [*self._questions("validate", config.metadata.validate)],
            },
            "model_wrong_metric": self._verdict(),
            "perf_metric": scored[0] if one_metric else scored,
            "delta_metrics": [{"type": name} for name in metrics.deltas],
            "aggregation_metric": self._weights(),
            **self._training(answer),
        }

    def _note_lost(self) -> None:
        """Note the settings that have no counterpart."""
        config_data = read_yaml(dump_config(self.config)).data
        metadata = config_data.get("metadata", {})
        for key, value in config_data.items():
            if key not in SAID_PARTS and (key, value) != ("validation", VOTES):
                self.notes.append(f"`{key}` is not carried over.")
        for section in ("context", "input", "output"):
            self._note_fields(section, config_data.get(section, []), SAID)
        for section in ("create", "validate"):
            self._note_fields(f"metadata.{section}", metadata.get(section, []), {*SAID, "required"})

    def _note_fields(self, section: str, items: Fields, known_keys: Collection[str]) -> None:
        for item in items:
            path = f"{section}.{item['name']}"
            lost_keys = [key for key in item if key not in known_keys]
            self.notes += [f"`{path}.{key}` is not carried over." for key in lost_keys]
            if any(len(label) > 1 for label in item.get("labels", [])):
                self.notes.append(f"`{path}.labels`: of each there is its value alone.")

    def _goal(self) -> str:
        goal = self.config.goal
        if goal.field is None:
            return goal.text
        place = f"{{{goal.field}}}"
        text = goal.text.removesuffix(f": {place}")
        if place in text:
            title = self.config.component(goal.field).title
            self.notes.append(
                f"`goal.text`: the label that is drawn no longer stands in it: {title}."
            )
        return text.replace(place, self.config.component(goal.field).title)

    def _fields(self, section: str, fields: Sequence[Component]) -> Iterator[dict[str, Any]]:
        for component in fields:
            if OLD_TYPES.get(component.type) not in PLACES[section]:
                self.refused.append(f"`{section}.{component.name}` is of the type {component.type}")
                continue
            item = self._component(component)
            if component.when:
                self.notes.append(
                    f"`{section}.{component.name}.when` is not carried over: it is always asked."
                )
            is_goal = component.name == self.config.goal.field
            yield item | ({"as_goal_message": True} if is_goal else {})

    def _component(self, component: Component) -> dict[str, Any]:
        return {
            "name": component.name,
            "type": OLD_TYPES[component.type],
            **({"display_name": component.label} if component.label else {}),
            **({"placeholder": component.placeholder} if component.placeholder else {}),
            **({"labels": [*component.values]} if component.labels else {}),
            **({"reference_name": component.reference} if component.reference else {}),
            **({"single_prob": True} if component.single else {}),
        }

    def _outputs(self) -> Iterator[dict[str, Any]]:
        """Yield the outputs.

        One that people answer too has only its name, because its input says the rest.
        """
        for output in self.config.output:
            if output.name in self.config.target_fields:
                yield {"name": output.name}
            elif output.type in OLD_TYPES:
                yield self._component(output)
            else:
                self.refused.append(f"`output.{output.name}` is of the type {output.type}")

    def _questions(self, section: str, questions: Sequence[Component]) -> Iterator[dict[str, Any]]:
        for question in questions:
            path, when = f"metadata.{section}.{question.name}", question.when
            if question.type not in OLD_TYPES:
                self.notes.append(f"`{path}` is not carried over: its type is {question.type}.")
                continue
            item = self._component(question)
            if when and when.outcome in ("fooled", "not_fooled"):
                item["model_wrong_condition"] = when.outcome == "fooled"
            elif when and when.verdict:
                item["validated_label_condition"] = when.verdict
            elif when:
                self.notes.append(f"`{path}.when` is not carried over: it is always asked.")
            yield item

    def _verdict(self) -> dict[str, Any]:
        rule = self.config.verdict
        match rule:
            case ExactMatch():
                return {"type": rule.type, "reference_names": [*rule.fields]}
            case StringF1():
                if rule.ask_between:
                    self.notes.append("`verdict.ask_between` is not carried over.")
                mapping = {"type": rule.type, "reference_name": rule.field}
                return {**mapping, "threshold": rule.threshold}
            case AskUser():
                return {"type": rule.type}
        self.refused.append(f"`verdict` is {rule.type}")
        return {}

    def _weights(self) -> dict[str, Any]:
        weights = {
            OLD_COLUMNS.get(name, name): weight
            for name, weight in self.config.leaderboard.weights.items()
        }
        return {"type": "dynascore", **({"default_weights": weights} if weights else {})}

    def _training(self, answer: str) -> dict[str, Any]:
        if self.config.training_rows is None:
            return {}
        self.notes.append("`train_file_metric`: its seeds and test labels are yours to add.")
        return {"train_file_metric": {"type": "dataperf", "reference_name": answer}}

    def in_words_of_2(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the fields of a configuration of 1.0 by interfaces of 2.0; keep the rest."""
        if self.refused:
            return {}
        config, answer = self.config, self.config.answer_field
        quoted = [item for item in document["input"] if item["type"] == "context_string_selection"]
        drawn = [item for item in document["input"] if item.get("as_goal_message")]
        special = [*quoted, *drawn]
        if len(special) > 1 or any(item["name"] != answer for item in special):
            self.refused.append("more is drawn or marked than the answer")
        for path, item in [
            *_named("context", document["context"]),
            *_named("input", document["input"]),
        ]:
            if "display_name" in item:
                self.notes.append(f"`{path}.label` is not carried over.")
        rest = [item for item in document["input"] if item not in special]
        goal = {"type": "plain-text", "text": document["goal_message"]}
        for item in drawn:
            goal = {"type": "multioptions", "options": item["labels"], MODEL_NAME: item["name"]}
        converted = {key: item for key, item in document.items() if key not in ("context", "input")}
        if not drawn:
            del converted["goal_message"]
        return {
            **converted,
            "goal": goal,
            **self._context_of_2(document["context"], quoted),
            "user_input": [*filter(None, map(self._input_of_2, rest))],
            "model_input": {name: name for name in config.model_fields},
            "response_fields": {"input_by_user": config.text_field},
            "model_output": {"model_prediction_label": answer},
        }

    def _context_of_2(self, context: Fields, quoted: Fields) -> dict[str, Any]:
        if len(context) > 1 or any(item["type"] != "string" for item in context):
            self.refused.append("`context` is more than one text")
        if not context:
            return {}
        names = {"context": context[0]["name"]}
        if not quoted:
            return {"context": {"type": "plain-text", MODEL_NAMES: names}}
        names["answer"] = quoted[0]["name"]
        return {"context": {"type": "selectable-text", MODEL_NAMES: names}}

    def _input_of_2(self, item: Mapping[str, Any]) -> dict[str, Any] | None:
        name, kind = item["name"], item["type"]
        if kind == "string":
            hint = {"placeholder": item["placeholder"]} if "placeholder" in item else {}
            return {"type": "text", MODEL_NAME: name, **hint}
        if kind == "multiclass":
            return {"type": "multioptions", MODEL_NAME: name, "options": item["labels"]}
        self.refused.append(f"`input.{name}` is of the type {kind}")
        return None


def _named(section: str, fields: Fields) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{section}.{item['name']}", item) for item in fields]
