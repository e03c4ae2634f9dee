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
    """The configuration for Dynabench 1.0 or 2.0; `dynabench1.convert` reads it back.

    Raises NoCounterpart where the task would be another one there.
    """
    export = _Export(config, version)
    said = export.in_words_of_1()
    said = export.in_words_of_2(said) if version == "2.0" else said
    if export.refused:
        what = "; ".join(export.refused)
        raise NoCounterpart(f"Dynabench {version} cannot say this task: {what}.")
    notes = "".join(f"# {note}\n" for note in export.notes)
    return Exported(f"# For Dynabench {version}.\n{notes}{dump_yaml(said)}", export.notes)


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
        """What is set and has no counterpart."""
        given = read_yaml(dump_config(self.config)).data
        metadata = given.get("metadata", {})
        for key, value in given.items():
            if key not in SAID_PARTS and (key, value) != ("validation", VOTES):
                self.notes.append(f"`{key}` is not carried over.")
        for part in ("context", "input", "output"):
            self._note_fields(part, given.get(part, []), SAID)
        for part in ("create", "validate"):
            self._note_fields(f"metadata.{part}", metadata.get(part, []), {*SAID, "required"})

    def _note_fields(self, part: str, items: Fields, said: Collection[str]) -> None:
        for one in items:
            path = f"{part}.{one['name']}"
            unsaid = [key for key in one if key not in said]
            self.notes += [f"`{path}.{key}` is not carried over." for key in unsaid]
            if any(len(label) > 1 for label in one.get("labels", [])):
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

    def _fields(self, part: str, fields: Sequence[Component]) -> Iterator[dict[str, Any]]:
        for one in fields:
            if OLD_TYPES.get(one.type) not in PLACES[part]:
                self.refused.append(f"`{part}.{one.name}` is of the type {one.type}")
                continue
            found = self._component(one)
            if one.when:
                self.notes.append(
                    f"`{part}.{one.name}.when` is not carried over: it is always asked."
                )
            is_goal = one.name == self.config.goal.field
            yield found | ({"as_goal_message": True} if is_goal else {})

    def _component(self, one: Component) -> dict[str, Any]:
        return {
            "name": one.name,
            "type": OLD_TYPES[one.type],
            **({"display_name": one.label} if one.label else {}),
            **({"placeholder": one.placeholder} if one.placeholder else {}),
            **({"labels": [*one.values]} if one.labels else {}),
            **({"reference_name": one.reference} if one.reference else {}),
            **({"single_prob": True} if one.single else {}),
        }

    def _outputs(self) -> Iterator[dict[str, Any]]:
        """What people answer too has the name alone, as its field says the rest."""
        for one in self.config.output:
            if one.name in self.config.target_fields:
                yield {"name": one.name}
            elif one.type in OLD_TYPES:
                yield self._component(one)
            else:
                self.refused.append(f"`output.{one.name}` is of the type {one.type}")

    def _questions(self, part: str, asked: Sequence[Component]) -> Iterator[dict[str, Any]]:
        for one in asked:
            path, when = f"metadata.{part}.{one.name}", one.when
            if one.type not in OLD_TYPES:
                self.notes.append(f"`{path}` is not carried over: its type is {one.type}.")
                continue
            found = self._component(one)
            if when and when.outcome in ("fooled", "not_fooled"):
                found["model_wrong_condition"] = when.outcome == "fooled"
            elif when and when.verdict:
                found["validated_label_condition"] = when.verdict
            elif when:
                self.notes.append(f"`{path}.when` is not carried over: it is always asked.")
            yield found

    def _verdict(self) -> dict[str, Any]:
        rule = self.config.verdict
        match rule:
            case ExactMatch():
                return {"type": rule.type, "reference_names": [*rule.fields]}
            case StringF1():
                if rule.ask_between:
                    self.notes.append("`verdict.ask_between` is not carried over.")
                known = {"type": rule.type, "reference_name": rule.field}
                return {**known, "threshold": rule.threshold}
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

    def in_words_of_2(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The interfaces of 2.0 instead of fields; the rest is said as in 1.0."""
        if self.refused:
            return {}
        config, answer = self.config, self.config.answer_field
        quoted = [one for one in said["input"] if one["type"] == "context_string_selection"]
        drawn = [one for one in said["input"] if one.get("as_goal_message")]
        special = [*quoted, *drawn]
        if len(special) > 1 or any(one["name"] != answer for one in special):
            self.refused.append("more is drawn or marked than the answer")
        for path, one in [*_named("context", said["context"]), *_named("input", said["input"])]:
            if "display_name" in one:
                self.notes.append(f"`{path}.label` is not carried over.")
        rest = [one for one in said["input"] if one not in special]
        goal = {"type": "plain-text", "text": said["goal_message"]}
        for one in drawn:
            goal = {"type": "multioptions", "options": one["labels"], MODEL_NAME: one["name"]}
        kept = {key: one for key, one in said.items() if key not in ("context", "input")}
        if not drawn:
            del kept["goal_message"]
        return {
            **kept,
            "goal": goal,
            **self._context_of_2(said["context"], quoted),
            "user_input": [*filter(None, map(self._input_of_2, rest))],
            "model_input": {name: name for name in config.model_fields},
            "response_fields": {"input_by_user": config.text_field},
            "model_output": {"model_prediction_label": answer},
        }

    def _context_of_2(self, context: Fields, quoted: Fields) -> dict[str, Any]:
        if len(context) > 1 or any(one["type"] != "string" for one in context):
            self.refused.append("`context` is more than one text")
        if not context:
            return {}
        names = {"context": context[0]["name"]}
        if not quoted:
            return {"context": {"type": "plain-text", MODEL_NAMES: names}}
        names["answer"] = quoted[0]["name"]
        return {"context": {"type": "selectable-text", MODEL_NAMES: names}}

    def _input_of_2(self, one: Mapping[str, Any]) -> dict[str, Any] | None:
        name, kind = one["name"], one["type"]
        if kind == "string":
            hint = {"placeholder": one["placeholder"]} if "placeholder" in one else {}
            return {"type": "text", MODEL_NAME: name, **hint}
        if kind == "multiclass":
            return {"type": "multioptions", MODEL_NAME: name, "options": one["labels"]}
        self.refused.append(f"`input.{name}` is of the type {kind}")
        return None


def _named(part: str, fields: Fields) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{part}.{one['name']}", one) for one in fields]
