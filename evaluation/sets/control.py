"""The rows of control sets, which come with the official tasks: nobody wrote them to fool a model.

Where a task has seeds they are the tenth that no starter is trained on, where it has drawn scenes
questions of the grammar on these, and where people talk the conversations of `control.jsonl`.
"""

import json
import random
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from annotation.attempts.conversation_services import opening_of
from evaluation.contract import SetRow
from evaluation.seeds import OFFICIAL, has_seeds, held_out, seed_rows
from evaluation.sets.harmless import with_harmless
from evaluation.sets.parsing import RowMaker
from evaluation.task_shape import shape_of
from tasks.config.schema import TaskConfig
from tasks.contexts.scenes.contexts import drawn_scenes
from tasks.contexts.scenes.questions import ask
from tasks.models import Task

ASKED = 2
"""Questions on each scene."""
ATTACKS = 6
"""Attacks on each scene of a secret, of those in the file."""
SCENES, TALKS = "scenes.json", "control.jsonl"


def has_control(code: str) -> bool:
    """Whether rows come with an official task of this code."""
    return has_seeds(code) or any((OFFICIAL / code / name).exists() for name in (SCENES, TALKS))


def control_rows(task: Task) -> Iterable[SetRow]:
    """Those of a task that `has_control`. Raises BadRow where they do not fit its configuration."""
    folder, config = OFFICIAL / task.code, task.config
    if has_seeds(task.code):
        return _held_out(task.code, config)
    if (folder / SCENES).exists():
        return _on_scenes(folder / SCENES, task)
    return with_harmless(config, _talks(folder, config))


def _held_out(code: str, config: TaskConfig) -> Iterator[SetRow]:
    shape, maker = shape_of(config), RowMaker(config)
    answer = "label" if shape.labels else "answer"
    for row in held_out(seed_rows(code))[1]:
        yield maker.make(shape.inputs(row), answer=row[answer])


def _on_scenes(file: Path, task: Task) -> Iterator[SetRow]:
    """Questions on the pictures of the contexts, none of which a starter is trained on."""
    maker, chance = RowMaker(task.config), random.Random(0)
    for scene, fields in drawn_scenes(file, task):
        found = {question.text: question.answer for question in islice(ask(scene, chance), ASKED)}
        for question, answer in found.items():
            yield maker.make({**fields, "question": question}, answer=answer, tags=fields["tag"])


def _talks(folder: Path, config: TaskConfig) -> Iterator[SetRow]:
    contexts, rows = _lines(folder / "contexts.jsonl"), _lines(folder / TALKS)
    if "passage_id" in rows[0]:
        by_id = {one["metadata"]["id"]: one for one in contexts}
        pairs = [(by_id[row["passage_id"]], row) for row in rows]
    else:
        attacks = cycle(rows)
        pairs = [(one, row) for one in contexts for row in islice(attacks, ATTACKS)]
    maker, talk = RowMaker(config), config.talk
    assert talk is not None
    for number, (context, row) in enumerate(pairs):
        roles = cycle(("user", "assistant"))
        said = [
            {"role": role, "text": text} for role, text in zip(roles, row["talk"], strict=False)
        ]
        told = opening_of(talk, random.Random(number).choice)
        fields = {**context, **row, talk.name: [*told, *said]}
        yield maker.make(fields, answer=row.get("answers"), tags=context["tag"])


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]
