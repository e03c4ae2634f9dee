"""Training data that people submit: its rows, and the one model that learns from them.

The model is a linear layer over the sentence encoder, which stays as it is: what differs between
two submissions is their rows alone.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.inference.precheck import Refused
from evaluation.models import DatasetItem
from evaluation.releases.reading import decoded, latest_datasets
from evaluation.seeds import Row as TrainingRow
from evaluation.task_shape import Shape, released_row, shape_of, training_row
from evaluation.training.row_files import NumberedRows
from tasks.config.schema import TaskConfig
from tasks.models import Task


def training_rows(task: Task, numbered: NumberedRows) -> list[TrainingRow]:
    """What a submission trains on: its own rows, and those of releases that it names by uid.

    Raises Refused with the first line that is wrong; at least two labels are needed.
    """
    shape = shape_of(task.config)
    uids = [str(row["uid"]) for _, row in numbered if row.keys() == {"uid"}]
    released = _released(task, shape, uids)
    rows = []
    for line, row in numbered:
        if row.keys() == {"uid"}:
            found = released.get(str(row["uid"]))
            problem = "no row of a train split that was released has this uid"
        else:
            found, problem = _own(shape, row)
        if found is None:
            raise Refused(f"Line {line}: {problem}.")
        rows.append(found)
    if len({row["label"] for row in rows}) < 2:
        raise Refused("All rows have the same label. A model learns from at least two.")
    return rows


def _own(shape: Shape, row: Mapping[str, Any]) -> tuple[TrainingRow | None, str]:
    names = [*shape.fields, shape.answer]
    if row.keys() != {*names}:
        return None, f"a row has {', '.join(names)} and nothing else, or only a uid"
    made = training_row(shape, row, row[shape.answer])
    labels = ", ".join(shape.labels or ())
    return made, f"each text must hold words, and {shape.answer} be one of {labels}"


def _released(task: Task, shape: Shape, uids: Sequence[str]) -> dict[str, TrainingRow]:
    newest = latest_datasets(task.rounds.all())
    items = DatasetItem.objects.filter(
        dataset__in=newest.values(),
        split=DatasetItem.Split.TRAIN,
        is_withdrawn=False,
        uid__in=uids,
    )
    lines = (decoded(json.loads(line)) for line in items.values_list("line", flat=True))
    made = ((str(line["uid"]), released_row(shape, line)) for line in lines)
    return {uid: row for uid, row in made if row}


def learn(config: TaskConfig, rows: Sequence[TrainingRow], folder: Path) -> None:
    """Write the folder of the model that learned from these rows; the same rows, the same weights.

    Which rows decide the best epoch hangs on their places. It loads torch.
    """
    from evaluation.training.fine_tune import TrainingOptions, train
    from evaluation.training.shipped import encoder

    shape = shape_of(config)
    about = "the rows of this submission"
    options = TrainingOptions(labels=shape.labels, epochs=4, frozen_layers=6, trained_on=about)
    train(
        [{**row, "group": str(place)} for place, row in enumerate(rows)],
        kind=shape.kind,
        base=encoder(),
        output_dir=folder,
        options=options,
        progress=lambda done, total, words: None,
    )
