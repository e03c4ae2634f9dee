"""A task with seeds, a tiny target and a released round, so that a training takes seconds."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from core.jobs.queue import enqueue
from evaluation.dataset_releases.build import Options
from evaluation.models import Dataset, DatasetItem
from tasks.models import Round, TargetModel, Task
from tasks.rounds.loop import register_target
from tasks.services import OFFICIAL_FOLDER
from tasks.targets.connect import build_serving_settings
from tests.support.factories import RoundFactory, TaskFactory
from tests.support.serving_models import tiny_model


def nli_task(folder: Path) -> Task:
    """NLI with a closed round 1, whose target is a tiny BERT with random weights."""
    task = TaskFactory(code="nli", is_official=True)
    round = RoundFactory(task=task, number=1, state=Round.State.CLOSED)
    tiny_target(round, folder)
    return task


def tiny_target(round: Round, folder: Path, name: str = "tiny") -> TargetModel:
    source = tiny_model(folder / name, "pair-classification")
    return register_target(
        task=round.task,
        name=name,
        round=round,
        source=str(source),
        serving=build_serving_settings(round.task.config),
    )


def release(
    round: Round, sizes: Sequence[int] = (40, 12, 20), *, version: int = 1, withdrawn: int = 0
) -> Dataset:
    """A finished dataset of seed rows, sizes by split; the first rows of train are withdrawn."""
    dataset = Dataset.objects.create(round=round, version=version, state=Dataset.State.DONE)
    with (OFFICIAL_FOLDER / "nli" / "seed.jsonl").open() as file:
        rows = [json.loads(line) for line in file][:: -max(1, 2700 // sum(sizes))]
    named = zip(("train", "dev", "test"), sizes, strict=True)
    splits = [split for split, size in named for _ in range(size)]
    for position, (split, row) in enumerate(zip(splits, rows, strict=False)):
        line = released_line(f"u{position}", f"a{split}{position % 5}", row)
        DatasetItem.objects.create(
            dataset=dataset,
            position=position,
            split=split,
            uid=line["uid"],
            line=json.dumps(line),
            is_withdrawn=position < withdrawn,
        )
    return dataset


def released_line(uid: str, author: str, row: dict[str, str]) -> dict[str, object]:
    """What a file of a release says of a seed row, as far as a training reads it."""
    inputs = {"hypothesis": row["hypothesis"], "label": row["label"]}
    return {
        "uid": uid,
        "anon_uid": author,
        "context": {"context_json": json.dumps({"premise": row["premise"]}), "tag": ""},
        "input_json": json.dumps(inputs),
        "output_json": None,
        "metadata_json": "{}",
        "label": row["label"],
        "tag": "",
    }


def asked_release(round: Round, *, rung: bool = True) -> Dataset:
    """A job that takes a worker a moment; not rung for, it is to be found in its row."""
    options, version = asdict(Options(canary="dynabench:0")), round.datasets.count() + 1
    dataset = Dataset.objects.create(round=round, version=version, options=options)
    if rung:
        enqueue("evaluation.jobs.build_dataset", dataset.pk)
    return dataset
