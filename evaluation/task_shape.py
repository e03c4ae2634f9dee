"""The shape of a task's models: what they read and answer, and the rows to train them on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.contract import Runnable, Writing
from serving.spec import FIELDS, LOOKS, PAIR, PICTURE, SEQUENCE, SPAN
from tasks.config.loading import dump_config
from tasks.config.schema import TaskConfig

MODEL_PARTS = (
    ("version", "name", "language", "goal", "context", "input", "output", "verdict", "metrics")
    + ("slices", "support")
)  # fmt: skip
"""The parts of a configuration that determine what models read and answer."""


class Untrainable(ValueError):
    """Raised when a task's models cannot be trained here.

    The message says why and what to do instead.
    """


@dataclass(frozen=True)
class Shape:
    """The fields that a task's models read and answer.

    kind: the kind of model. fields: the task's names for the fields in `FIELDS[kind]`, such as
    text, or premise and hypothesis, or question and passage. labels: None for spans.
    """

    kind: str
    fields: tuple[str, ...]
    answer: str
    labels: tuple[str, ...] | None

    def inputs(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return a training row's fields under the names that the task's targets read."""
        return {name: row[own] for name, own in zip(self.fields, FIELDS[self.kind], strict=True)}


def runnable_shape_of(config: TaskConfig) -> Shape:
    """Return the shape of models whose folders can be run for a task. Raises Untrainable.

    Picture models can be run, but not trained as next targets.
    """
    answer, fields = config.component(config.answer_field), config.model_fields
    kinds = [config.media_fields.get(name, "text") for name in fields]
    if answer.type == "multiclass" and kinds == ["image", "text"]:
        return Shape(PICTURE, fields, answer.name, answer.values)
    if answer.type == "multiclass" and kinds == ["image"]:
        return Shape(LOOKS, fields, answer.name, answer.values)
    return trainable_shape_of(config)


def trainable_shape_of(config: TaskConfig) -> Shape:
    """Return the shape of models that can be trained for a task. Raises Untrainable."""
    answer = config.component(config.answer_field)
    fields = config.model_fields
    non_text_fields = [name for name in fields if not config.component(name).kind.is_text]
    if non_text_fields:
        raise Untrainable(
            f"Models are trained here on texts, and “{config.component(non_text_fields[0]).title}” "
            "is no text. Train elsewhere and register the model, or remove the field from what "
            "models read."
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
    """Return a training row from an example's context and inputs; None if it is unusable.

    answer: a label, or a span as `{"text": …, "start": …}` or its text only. An example is unusable
    if a text is missing or empty, if the label is not the task's, or if the span is not in the
    passage. A row for a task with only a picture contains the picture's digest.
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
    """Return the digest in a picture's value; None if the value has another form."""
    if not isinstance(picture, Mapping):
        return None
    return picture.get("digest")


def _span_row(row: Mapping[str, Any], answer: Any) -> dict[str, Any] | None:
    """Return a row with its span; None if the span is not in the passage."""
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
    """Return a training row, grouped by author, from a line of a release; None if it is unusable.

    line: as yielded by `evaluation.dataset_releases.reading.read_split_rows`.
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


def make_runnable(
    config: TaskConfig,
    *,
    folder: Path | None = None,
    image: str | None = None,
    adapter: str = "jsonl",
    writing: Writing | None = None,
) -> Runnable:
    """Return a model together with the task's fields in order, answer field and labels."""
    return Runnable(
        folder=folder,
        image=image,
        adapter=adapter,
        fields=config.ordered_fields,
        output=config.answer_field,
        labels=labels_of(config),
        writing=writing,
    )


def model_config_text(config: TaskConfig) -> str:
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
    """Return the labels from which the task's models choose; None if they answer freely."""
    return tuple(label.value for label in config.labels(config.answer_field)) or None
