"""The shape of a task's models: what they read and answer, and the rows to train them on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.contract import Runnable, WritingSettings
from serving.spec import (
    FIELDS_BY_KIND,
    IMAGE_CLASSIFICATION,
    PAIR,
    SEQUENCE,
    SPAN,
    VISUAL_QUESTION_ANSWERING,
)
from tasks.config.loading import dump_config
from tasks.config.schema import TaskConfig

MODEL_PARTS = (
    ("version", "name", "language", "goal", "context", "input", "output", "verdict", "metrics")
    + ("slices", "support")
)  # fmt: skip
"""The parts of a configuration that determine what models read and answer."""


class UntrainableTask(ValueError):
    """Raised when a task's models cannot be trained here.

    The message says why and what to do instead.
    """


@dataclass(frozen=True)
class TaskShape:
    """The fields that a task's models read and answer.

    kind: the kind of model. fields: the task's names for the fields in `FIELDS_BY_KIND[kind]`, such
    as text, or premise and hypothesis, or question and passage. labels: None for spans.
    """

    kind: str
    fields: tuple[str, ...]
    answer: str
    labels: tuple[str, ...] | None

    def select_inputs(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return a training row's fields under the names that the task's targets read."""
        return {
            name: row[task_name]
            for name, task_name in zip(self.fields, FIELDS_BY_KIND[self.kind], strict=True)
        }


def build_runnable_shape(config: TaskConfig) -> TaskShape:
    """Return the shape of models whose folders can be run for a task. Raises UntrainableTask.

    Picture models can be run, but not trained as next targets.
    """
    answer, fields = config.get_component(config.answer_field), config.model_fields
    field_kinds = [config.media_fields.get(name, "text") for name in fields]
    if answer.type == "multiclass" and field_kinds == ["image", "text"]:
        return TaskShape(VISUAL_QUESTION_ANSWERING, fields, answer.name, answer.values)
    if answer.type == "multiclass" and field_kinds == ["image"]:
        return TaskShape(IMAGE_CLASSIFICATION, fields, answer.name, answer.values)
    return build_trainable_shape(config)


def build_trainable_shape(config: TaskConfig) -> TaskShape:
    """Return the shape of models that can be trained for a task. Raises UntrainableTask."""
    answer = config.get_component(config.answer_field)
    fields = config.model_fields
    non_text_fields = [name for name in fields if not config.get_component(name).kind.is_text]
    if non_text_fields:
        title = config.get_component(non_text_fields[0]).title
        raise UntrainableTask(
            f"Models are trained here on texts, and “{title}” "
            "isn't a text. Train elsewhere and register the model, or remove the field from what "
            "models read."
        )
    if answer.type == "span" and len(fields) == 2 and answer.reference in fields:
        return TaskShape(SPAN, config.ordered_fields, answer.name, None)
    if answer.type == "multiclass" and len(fields) in (1, 2):
        kind = PAIR
        if len(fields) == 1:
            kind = SEQUENCE
        return TaskShape(kind, fields, answer.name, answer.values)
    raise UntrainableTask(
        "Training knows tasks with labels and one or two texts, and tasks with an answer from a "
        f"passage. In this one models read {', '.join(fields)} and answer {answer.name} "
        f"({answer.type}). Train elsewhere and register the model with add_target."
    )


def build_training_row(
    shape: TaskShape, fields: Mapping[str, Any], answer: Any
) -> dict[str, Any] | None:
    """Return a training row from an example's context and inputs; None if it is unusable.

    answer: a label, or a span as `{"text": …, "start": …}` or its text only. An example is unusable
    if a text is missing or empty, or if the label is not the task's. It is also unusable if the
    span is not in the passage. A row for a task with only a picture contains the picture's digest.
    """
    texts = [fields.get(name) for name in shape.fields]
    if shape.kind == IMAGE_CLASSIFICATION:
        texts = [_get_digest(picture) for picture in texts]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return None
    row: dict[str, Any] = dict(zip(FIELDS_BY_KIND[shape.kind], texts, strict=True))
    if shape.labels is None:
        return _build_span_row(row, answer)
    if answer not in shape.labels:
        return None
    return {**row, "label": answer}


def _get_digest(picture: Any) -> Any:
    """Return the digest in a picture's value; None if the value has another form."""
    if not isinstance(picture, Mapping):
        return None
    return picture.get("digest")


def _build_span_row(row: Mapping[str, Any], answer: Any) -> dict[str, Any] | None:
    """Return a row with its span; None if the span is not in the passage."""
    span = answer
    if not isinstance(answer, Mapping):
        span = {"text": answer}
    text, passage = span.get("text"), row["passage"]
    if not isinstance(text, str) or not text.strip():
        return None
    start = span.get("start")
    # An invalid offset is ignored, and the first occurrence of the text is used.
    if not isinstance(start, int) or start < 0 or not passage.startswith(text, start):
        start = passage.find(text)
    if start < 0:
        return None
    return {**row, "answer": text, "answer_start": start}


def build_released_row(shape: TaskShape, line: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a training row, grouped by author, from a line of a release; None if it is unusable.

    line: as yielded by `evaluation.dataset_releases.reading.read_split_rows`.
    """
    fields = {**line["context"], **line["input_json"]}
    # A release has the label that people decided; a span stays as its author marked it.
    if shape.labels is None:
        answer = fields.get(shape.answer)
    else:
        answer = line["label"]
    row = build_training_row(shape, fields, answer)
    if row is None:
        return None
    return {**row, "group": line["anon_uid"] or line["uid"]}


def make_runnable(
    config: TaskConfig,
    *,
    folder: Path | None = None,
    image: str | None = None,
    adapter: str = "jsonl",
    writing_settings: WritingSettings | None = None,
) -> Runnable:
    """Return a `Runnable` with the task's fields in order, its answer field and its labels.

    folder, image: where the model is; give one of them, or none for a model that is called
    elsewhere.
    """
    return Runnable(
        folder=folder,
        image=image,
        adapter=adapter,
        fields=config.ordered_fields,
        output=config.answer_field,
        labels=get_labels(config),
        writing_settings=writing_settings,
    )


def format_model_config(config: TaskConfig) -> str:
    """Return the configuration as text, without the parts that only concern people.

    A check with this text has the same result as one with the whole configuration.
    """
    return dump_config(TaskConfig(**{name: getattr(config, name) for name in MODEL_PARTS}))


def describe_model_shape(config: TaskConfig) -> dict[str, Any]:
    """Return what a model for the task must read, in order, and may answer.

    `kind` is the kind of weights folder, None if no folder can be run. `type` is the type of the
    answer field.
    """
    try:
        kind = build_runnable_shape(config).kind
    except UntrainableTask:
        kind = None
    return {
        "kind": kind,
        "type": config.get_component(config.answer_field).type,
        "fields": config.ordered_fields,
        "output": config.answer_field,
        "labels": get_labels(config),
    }


def get_labels(config: TaskConfig) -> tuple[str, ...] | None:
    """Return the labels from which the task's models choose; None if they answer freely."""
    return tuple(label.value for label in config.get_labels(config.answer_field)) or None
