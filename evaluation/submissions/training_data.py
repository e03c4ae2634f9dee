"""Training data that people submit: its rows, and the one kind of model trained on them.

The model is a linear layer over fixed features: those of the sentence encoder, or of pictures in
`evaluation.training.picture_learning`. So two submissions differ only in their rows.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.dataset_releases.reading import decode_row, find_latest_datasets
from evaluation.isolation.inference.precheck import SubmissionRefused
from evaluation.models import DatasetItem
from evaluation.seeds import Row as TrainingRow
from evaluation.task_shape import (
    TaskShape,
    build_released_row,
    build_runnable_shape,
    build_training_row,
)
from evaluation.test_sets.overlap import compute_digest, pack_digests
from evaluation.training.row_files import NumberedRows
from evaluation.training.trainer_protocol import Trainer
from serving.spec import FIELDS_BY_KIND, IMAGE_CLASSIFICATION
from tasks.config.schema import TaskConfig
from tasks.models import Media, Task

MAX_SHOWN_PROBLEMS = 10  # the maximum number of wrong lines that a refusal lists


def read_training_rows(task: Task, numbered_rows: NumberedRows) -> list[TrainingRow]:
    """Return the rows of a submission: its own rows, and released rows that it names by uid.

    Picture rows contain the stored file. At least two labels are needed.
    Raises SubmissionRefused, which names the first ten wrong lines.
    """
    shape = build_runnable_shape(task.config)
    uids = [
        str(row["uid"]) for _, row in numbered_rows if not isinstance(row, str) and "uid" in row
    ]
    released_rows = _find_released_rows(task, shape, uids)
    rows: list[TrainingRow] = []
    problems: list[str] = []
    for line, row in numbered_rows:
        training_row, problem = _read_line(shape, row, released_rows)
        if training_row is None:
            problems.append(f"Line {line}: {problem}.")
        else:
            rows.append(training_row)
    if len(problems) > MAX_SHOWN_PROBLEMS:
        problems[MAX_SHOWN_PROBLEMS:] = [f"Wrong lines in all: {len(problems)}."]
    if problems:
        raise SubmissionRefused("\n".join(problems))
    if len({row["label"] for row in rows}) < 2:
        raise SubmissionRefused("All rows have the same label. A model learns from at least two.")
    return rows


def _read_line(
    shape: TaskShape, row: Mapping[str, Any] | str, released_rows: dict[str, TrainingRow]
) -> tuple[TrainingRow | None, str]:
    """Return the training row of a line, or None and the problem with the line.

    A released row is removed from `released_rows`, so that it can be used only once.
    """
    if isinstance(row, str):
        return None, row
    if "uid" in row:
        # Popped, because a row that is chosen twice would count double.
        return _read_released_row(shape, row, released_rows.pop(str(row["uid"]), None))
    return _read_own_row(shape, row)


def count_rows(numbered_rows: NumberedRows, rows: Sequence[TrainingRow]) -> dict[str, Any]:
    """Return numbers of rows for data boards: of all rows, of those named by uid, and by label."""
    chosen_count = sum(not isinstance(row, str) and "uid" in row for _, row in numbered_rows)
    return {
        "rows": len(rows),
        "chosen": chosen_count,
        "labels": Counter(row["label"] for row in rows),
    }


def compute_digests(task: Task, rows: Sequence[TrainingRow]) -> bytes:
    """Return digests by which the rows are found in evaluation sets; empty for pictures."""
    shape = build_runnable_shape(task.config)
    if shape.kind == IMAGE_CLASSIFICATION:
        return b""
    return pack_digests(compute_digest(row, FIELDS_BY_KIND[shape.kind]) for row in rows)


def _read_own_row(shape: TaskShape, row: Mapping[str, Any]) -> tuple[TrainingRow | None, str]:
    """Return a row that the submitter wrote, or None and the problem with it."""
    if shape.kind == IMAGE_CLASSIFICATION:
        return None, "a row names a picture by its uid in a release"
    names = list(shape.fields)
    names.append(shape.answer)
    if row.keys() != set(names):
        return None, f"a row has {', '.join(names)} and nothing else, or only a uid"
    own_row = build_training_row(shape, row, row[shape.answer])
    return own_row, f"each text must contain words, and {_join_label_names(shape)}"


def _read_released_row(
    shape: TaskShape, row: Mapping[str, Any], released_row: TrainingRow | None
) -> tuple[TrainingRow | None, str]:
    """Return a released row, with another label if the submission gives one.

    Otherwise return None and the problem.
    """
    if released_row is None:
        return None, "no row of a released train split has this uid, or it appears twice"
    if not row.keys() <= {"uid", shape.answer}:
        return None, f"beside the uid a row has {shape.answer} or nothing"
    label = row.get(shape.answer, released_row["label"])
    if label not in (shape.labels or ()):
        return None, _join_label_names(shape)
    return {**released_row, "label": label}, ""


def _join_label_names(shape: TaskShape) -> str:
    return f"{shape.answer} must be one of {', '.join(shape.labels or ())}"


def _find_released_rows(
    task: Task, shape: TaskShape, uids: Sequence[str]
) -> dict[str, TrainingRow]:
    """Return the rows with these uids from the train splits of the newest releases, by uid."""
    newest_datasets = find_latest_datasets(task.rounds.all())
    items = DatasetItem.objects.filter(
        dataset__in=newest_datasets.values(),
        split=DatasetItem.Split.TRAIN,
        is_withdrawn=False,
        uid__in=uids,
    )
    rows: dict[str, TrainingRow] = {}
    for text in items.values_list("line", flat=True):
        line = decode_row(json.loads(text))
        if row := build_released_row(shape, line):
            rows[str(line["uid"])] = row
    if shape.kind == IMAGE_CLASSIFICATION:
        rows = _add_files(task, rows)
    return rows


def _add_files(task: Task, rows: Mapping[str, TrainingRow]) -> dict[str, TrainingRow]:
    """Replace the pictures of rows by their stored files; leave out rows whose file is gone."""
    media = Media.objects.filter(task=task, digest__in={row["image"] for row in rows.values()})
    file_by_digest = {picture.digest: picture.file for picture in media}
    rows_with_files: dict[str, TrainingRow] = {}
    for uid, row in rows.items():
        if file := file_by_digest.get(row["image"]):
            rows_with_files[uid] = {**row, "image": file}
    return rows_with_files


def train_on_rows(
    config: TaskConfig, rows: Sequence[TrainingRow], folder: Path, trainer: Trainer
) -> None:
    """Train a model on the rows and write its folder. Equal rows in equal order give equal weights.

    The order decides which rows are held out for early stopping. Raises the trainer's exceptions.
    """
    from evaluation.training.fine_tune import TrainingOptions
    from evaluation.training.shipped import find_encoder

    shape = build_runnable_shape(config)
    if shape.kind == IMAGE_CLASSIFICATION:
        pictures = [(row["image"], row["label"]) for row in rows]
        trainer.learn_pictures(pictures, shape.labels or (), folder)
        return
    description = "the rows of this submission"
    options = TrainingOptions(
        labels=shape.labels, epochs=4, frozen_layers=6, trained_on=description
    )
    trainer.train(
        # Each row is its own group, so that only its position decides whether it is held out.
        [{**row, "group": str(place)} for place, row in enumerate(rows)],
        kind=shape.kind,
        base=find_encoder(),
        output_dir=folder,
        options=options,
        progress=lambda done, total, words: None,
    )
