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

from annotation.attempts.conversation_services import build_opening
from evaluation.contract import SetRow
from evaluation.seeds import OFFICIAL_TASKS_FOLDER, has_seeds, seed_rows, split_held_out
from evaluation.task_shape import trainable_shape_of
from evaluation.test_sets.harmless import add_harmless_questions
from evaluation.test_sets.parsing import RowMaker
from tasks.config.schema import TaskConfig
from tasks.contexts.scenes.contexts import draw_scenes
from tasks.contexts.scenes.questions import ask_about
from tasks.models import Task

QUESTIONS_PER_SCENE = 2
ATTACKS_PER_SCENE = 6
"""Attacks on each scene of a secret, of those in the file."""
SCENES, TALKS = "scenes.json", "control.jsonl"


def has_control(code: str) -> bool:
    """Return whether the official task with this code comes with rows of a control set."""
    folder = OFFICIAL_TASKS_FOLDER / code
    return has_seeds(code) or (folder / SCENES).exists() or (folder / TALKS).exists()


def read_control_rows(task: Task) -> Iterable[SetRow]:
    """Yield the control rows of a task for which `has_control` is true.

    Raises BadRow if a row does not fit the task's configuration.
    """
    folder, config = OFFICIAL_TASKS_FOLDER / task.code, task.config
    if has_seeds(task.code):
        return _read_held_out(task.code, config)
    if (folder / SCENES).exists():
        return _ask_about_scenes(folder / SCENES, task)
    return add_harmless_questions(config, _make_talks(folder, config))


def _read_held_out(code: str, config: TaskConfig) -> Iterator[SetRow]:
    shape, maker = trainable_shape_of(config), RowMaker(config)
    answer = "label" if shape.labels else "answer"
    for row in split_held_out(seed_rows(code))[1]:
        yield maker.make(shape.inputs(row), answer=row[answer])


def _ask_about_scenes(file: Path, task: Task) -> Iterator[SetRow]:
    """Yield questions about the pictures of the contexts.

    No starter is trained on these pictures.
    """
    # A fixed seed: the same scenes give the same questions, and so no new version of the set.
    maker, chance = RowMaker(task.config), random.Random(0)
    for scene, fields in draw_scenes(file, task):
        questions = islice(ask_about(scene, chance), QUESTIONS_PER_SCENE)
        answer_by_question = {question.text: question.answer for question in questions}
        for question, answer in answer_by_question.items():
            yield maker.make({**fields, "question": question}, answer=answer, tags=fields["tag"])


def _make_talks(folder: Path, config: TaskConfig) -> Iterator[SetRow]:
    """Yield the conversations of the file, each preceded by the task's opening."""
    maker, talk = RowMaker(config), config.talk
    assert talk is not None
    for number, (context, row) in enumerate(_pair_talks(folder)):
        roles = cycle(("user", "assistant"))
        turns = list(build_opening(talk, random.Random(number).choice))
        for role, text in zip(roles, row["talk"], strict=False):
            turns.append({"role": role, "text": text})
        fields = {**context, **row, talk.name: turns}
        yield maker.make(fields, answer=row.get("answers"), tags=context["tag"])


def _pair_talks(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield pairs of context and conversation.

    Pairs them by the passage's id if conversations name one, otherwise gives each context the next
    ATTACKS_PER_SCENE conversations.
    """
    contexts, rows = _read_lines(folder / "contexts.jsonl"), _read_lines(folder / TALKS)
    if "passage_id" in rows[0]:
        context_by_id = {context["metadata"]["id"]: context for context in contexts}
        for row in rows:
            yield context_by_id[row["passage_id"]], row
        return
    attacks = cycle(rows)
    for context in contexts:
        for row in islice(attacks, ATTACKS_PER_SCENE):
            yield context, row


def _read_lines(file: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, file.read_bytes().splitlines()))
