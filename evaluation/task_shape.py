"""The shape of a task's models: what they read and answer, and the rows to train them on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.contract import Runnable, Writing
from serving.spec import FIELDS, LOOKS, PAIR, PICTURE, SEQUENCE, SPAN
from tasks.config.loading import dump_config
from tasks.config.schema import TaskConfig

PARTS = (
    ("version", "name", "language", "goal", "context", "input", "output", "verdict", "metrics")
    + ("slices", "support")
)  # fmt: skip
"""The parts of a configuration that determine what models read and answer."""


class Untrainable(ValueError):
    """A task whose models cannot be trained here; the message says why and what to do instead."""


@dataclass(frozen=True)
class Shape:
    """The fields that the models of a task read and answer.

    fields: the task's names of what `FIELDS[kind]` calls text, or premise and hypothesis, or
    question and passage, or image and question, or image. labels: None for spans.
    """

    kind: str
    fields: tuple[str, ...]
    answer: str
    labels: tuple[str, ...] | None

    def inputs(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return what a target of the task is sent for a training row."""
        return {name: row[own] for name, own in zip(self.fields, FIELDS[self.kind], strict=True)}


def runnable_shape_of(config: TaskConfig) -> Shape:
    """Return the shape of the models whose folders can be run for a task. Raises Untrainable.

    Models that look at pictures can be run, but not trained as next targets.
    """
    answer, fields = config.component(config.answer_field), config.model_fields
    kinds = [config.media_fields.get(name, "text") for name in fields]
    if answer.type == "multiclass" and kinds == ["image", "text"]:
        return Shape(PICTURE, fields, answer.name, answer.values)
    if answer.type == "multiclass" and kinds == ["image"]:
        return Shape(LOOKS, fields, answer.name, answer.values)
    return shape_of(config)


def shape_of(config: TaskConfig) -> Shape:
    """Return the shape of the models that can be trained for a task. Raises Untrainable."""
    answer = config.component(config.answer_field)
    fields = config.model_fields
    strange = [name for name in fields if not config.component(name).kind.is_text]
    if strange:
        raise Untrainable(
            f"Models are trained here on texts, and “{config.component(strange[0]).title}” is no "
            "text. Train elsewhere and register the model, or remove the field from what models "
            "read."
        )
    if answer.type == "span" and len(fields) == 2 and answer.reference in fields:
        return Shape(SPAN, config.ordered_fields, answer.name, None)
    if answer.type == "multiclass" and len(fields) in (1, 2):
        kind = PAIR
        if len(fields) == 1:
            kind = SEQUENCE
        return Shape(kind, fields, answer.name, answer.values)
    raise Untrainable(
        "Training knows tasks with labels and one or two texts, and tasks with an answer from a "
        f"passage. In this one models read {', '.join(fields)} and answer {answer.name} "
        f"({answer.type}). Train elsewhere and register the model with add_target."
    )


def training_row(shape: Shape, fields: Mapping[str, Any], answer: Any) -> dict[str, Any] | None:
    """Return a training row from an example's context and inputs; None when it cannot teach.

    answer: a label, or a span as `{"text": …, "start": …}` or its text only. An example cannot
    teach when a text is missing or empty, the label is not the task's, or the span is not in the
    passage. A row for a task with only a picture contains its digest.
    """
    texts = [fields.get(name) for name in shape.fields]
    if shape.kind == LOOKS:
        texts = [_digest_of(picture) for picture in texts]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return None
    row: dict[str, Any] = dict(zip(FIELDS[shape.kind], texts, strict=True))
    if shape.labels is None:
        return _span_row(row, answer)
    if answer not in shape.labels:
        return None
    return {**row, "label": answer}


def _digest_of(picture: Any) -> Any:
    """Return the digest of a picture's value; None if it has another form."""
    if not isinstance(picture, Mapping):
        return None
    return picture.get("digest")


def _span_row(row: Mapping[str, Any], answer: Any) -> dict[str, Any] | None:
    """Return a row with its span; None when the span is not in the passage."""
    span = answer
    if not isinstance(answer, Mapping):
        span = {"text": answer}
    text, passage = span.get("text"), row["passage"]
    if not isinstance(text, str) or not text.strip():
        return None
    start = span.get("start")
    # An offset that does not fit is not trusted: the first place of the text counts instead.
    if not isinstance(start, int) or start < 0 or not passage.startswith(text, start):
        start = passage.find(text)
    if start < 0:
        return None
    return {**row, "answer": text, "answer_start": start}


def released_row(shape: Shape, line: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a training row, grouped by its author, from a line of a release.

    Lines come from `evaluation.dataset_releases.reading.split_rows`. None when it cannot teach.
    """
    fields = {**line["context"], **line["input_json"]}
    # A release has the label as people judged it; a span stays as its author marked it.
    if shape.labels is None:
        answer = fields.get(shape.answer)
    else:
        answer = line["label"]
    row = training_row(shape, fields, answer)
    if row is None:
        return None
    return {**row, "group": line["anon_uid"] or line["uid"]}


def runnable(
    config: TaskConfig,
    *,
    folder: Path | None = None,
    image: str | None = None,
    adapter: str = "jsonl",
    writing: Writing | None = None,
) -> Runnable:
    """Return a model with what the task asks of it: fields in order, answer field, labels."""
    return Runnable(
        folder=folder,
        image=image,
        adapter=adapter,
        fields=config.ordered_fields,
        output=config.answer_field,
        labels=labels_of(config),
        writing=writing,
    )


def text_for_models(config: TaskConfig) -> str:
    """Return the configuration without the parts that only concern people.

    A check with it has the same result as one with the whole configuration.
    """
    return dump_config(TaskConfig(**{name: getattr(config, name) for name in PARTS}))


def model_for(config: TaskConfig) -> dict[str, Any]:
    """Return what a model of the task must be: what it reads, in order, and what it may answer.

    kind: of a folder of weights; None where no folder can be run. type: of the answer's field.
    """
    try:
        kind = runnable_shape_of(config).kind
    except Untrainable:
        kind = None
    return {
        "kind": kind,
        "type": config.component(config.answer_field).type,
        "fields": config.ordered_fields,
        "output": config.answer_field,
        "labels": labels_of(config),
    }


def labels_of(config: TaskConfig) -> tuple[str, ...] | None:
    """Return the labels that the task's models choose from; None where they answer freely."""
    return tuple(label.value for label in config.labels(config.answer_field)) or None
