"""The examples in a chat model's prompt: from the train split and nothing else."""

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.errors import Invalid
from evaluation.dataset_releases.reading import decode_row, find_latest_datasets
from evaluation.models import DatasetItem
from evaluation.runs.chat.settings import ChatSettings
from evaluation.task_shape import (
    TaskShape,
    UntrainableTask,
    build_released_row,
    build_trainable_shape,
)
from tasks.models import Task


class ShotsGone(Exception):
    """Raised when an example in a prompt was withdrawn; the message says what to do."""


def draw_shots(task: Task, chat: ChatSettings) -> tuple[int, ...]:
    """Draw rows from the train splits of the newest datasets; return their ids in the order drawn.

    The same seed and the same releases give the same rows. Raises Invalid if there are too few, or
    if prompts of the task cannot have examples.
    """
    if not chat.shots:
        return ()
    try:
        shape = build_trainable_shape(task.config)
    except UntrainableTask:
        message = _(
            "Examples in the prompt work only for tasks with labels or passages as answers. "
            "Choose 0."
        )
        raise Invalid(message, field="shots") from None
    rng, drawn_ids = random.Random(chat.shots_seed), list[int]()
    row_count = 0
    for row_count, item in enumerate(
        _iterate_train_rows(task, shape), 1
    ):  # a reservoir, so that any size fits into memory
        if len(drawn_ids) < chat.shots:
            drawn_ids.append(item)
        elif (position := rng.randrange(row_count)) < chat.shots:
            drawn_ids[position] = item
    if len(drawn_ids) < chat.shots:
        message = _("Enter at most %(n)d, the number of examples in the task's train splits.") % {
            "n": row_count
        }
        raise Invalid(message, field="shots")
    rng.shuffle(drawn_ids)  # a reservoir leaves early rows at the front
    return tuple(drawn_ids)


def _iterate_train_rows(task: Task, shape: TaskShape) -> Iterator[int]:
    """Yield the ids of the train splits' rows that have an answer, always in the same order."""
    datasets = find_latest_datasets(task.rounds.all()).values()
    rows = DatasetItem.objects.filter(
        dataset__in=list(datasets), split=DatasetItem.Split.TRAIN, is_withdrawn=False
    ).order_by("dataset__round__number", "position")
    # In chunks, because a train split may have millions of rows.
    for pk, line in rows.values_list("pk", "line").iterator(chunk_size=2000):
        if build_released_row(shape, decode_row(json.loads(line))):
            yield pk


def read_shots(task: Task, chat: ChatSettings) -> list[dict[str, Any]]:
    """Return the drawn examples in order, each with its fields and answer. Raises ShotsGone."""
    if not chat.shot_items:
        return []
    shape = build_trainable_shape(task.config)
    rows = DatasetItem.objects.filter(
        pk__in=chat.shot_items, is_withdrawn=False, split=DatasetItem.Split.TRAIN
    )
    lines = dict(rows.values_list("pk", "line"))
    if len(lines) < len(chat.shot_items):
        raise ShotsGone(
            _("The author of an example in the prompt has withdrawn it. Submit the model again.")
        )
    return [_make_shot(shape, json.loads(lines[pk])) for pk in chat.shot_items]


def _make_shot(shape: TaskShape, line: Mapping[str, Any]) -> dict[str, Any]:
    row = build_released_row(shape, decode_row(line))
    assert row is not None  # only rows with a value are drawn, and rows do not change
    answer_key = "answer"
    if shape.labels:
        answer_key = "label"
    return {**shape.select_inputs(row), shape.answer: row[answer_key]}


def find_shot_uids(chat: ChatSettings, max_count: int) -> list[str]:
    """Return the first `max_count` uids of the drawn examples in their releases, in order."""
    uid_by_pk = dict(DatasetItem.objects.filter(pk__in=chat.shot_items).values_list("pk", "uid"))
    uids = [uid_by_pk[pk] for pk in chat.shot_items if pk in uid_by_pk]
    return uids[:max_count]
