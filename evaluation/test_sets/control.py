"""The rows of control sets, which are part of official tasks and were not written to fool a model.

For a task with seeds, these rows are the tenth of the seeds that no starter is trained on. For a
task with drawn scenes, they are questions about the scenes. For a task with conversations, they are
the conversations of `control.jsonl`.
"""

import json
import random
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from annotation.attempts.conversation_services import build_opening_turns
from evaluation.contract import SetRow
from evaluation.seeds import OFFICIAL_TASKS_FOLDER, has_seeds, read_seed_rows, split_held_out
from evaluation.task_shape import build_trainable_shape
from evaluation.test_sets.harmless import add_harmless_questions
from evaluation.test_sets.parsing import RowMaker
from tasks.config.schema import TaskConfig
from tasks.contexts.scenes.contexts import draw_scenes
from tasks.contexts.scenes.questions import iter_questions
from tasks.models import Task

QUESTIONS_PER_SCENE = 2
ATTACKS_PER_SCENE = 6
"""The number of attacks on each context's secret, taken from the file."""
SCENES_FILE, CONVERSATIONS_FILE = "scenes.json", "control.jsonl"


def has_control_set(code: str) -> bool:
    """Return whether the repository has control rows for the official task with this code."""
    folder = OFFICIAL_TASKS_FOLDER / code
    return (
        has_seeds(code) or (folder / SCENES_FILE).exists() or (folder / CONVERSATIONS_FILE).exists()
    )


def read_control_rows(task: Task) -> Iterable[SetRow]:
    """Yield the control rows of a task for which `has_control_set` is true.

    Raises BadRow if a row does not fit the task's configuration.
    """
    folder, config = OFFICIAL_TASKS_FOLDER / task.code, task.config
    if has_seeds(task.code):
        return _read_held_out_rows(task.code, config)
    if (folder / SCENES_FILE).exists():
        return _make_scene_questions(folder / SCENES_FILE, task)
    return add_harmless_questions(config, _make_conversations(folder, config))


def _read_held_out_rows(code: str, config: TaskConfig) -> Iterator[SetRow]:
    shape, maker = build_trainable_shape(config), RowMaker(config)
    answer = "label" if shape.labels else "answer"
    for row in split_held_out(read_seed_rows(code))[1]:
        yield maker.make_row(shape.select_inputs(row), answer=row[answer])


def _make_scene_questions(file: Path, task: Task) -> Iterator[SetRow]:
    """Yield questions about the pictures of the contexts.

    No starter is trained on these pictures.
    """
    # A fixed seed, so that equal scenes give equal questions, and no new version of the set.
    maker, rng = RowMaker(task.config), random.Random(0)
    for scene, fields in draw_scenes(file, task):
        questions = islice(iter_questions(scene, rng), QUESTIONS_PER_SCENE)
        answer_by_question = {question.text: question.answer for question in questions}
        for question, answer in answer_by_question.items():
            yield maker.make_row(
                {**fields, "question": question}, answer=answer, tags=fields["tag"]
            )


def _make_conversations(folder: Path, config: TaskConfig) -> Iterator[SetRow]:
    """Yield the conversations of the file, each preceded by the task's opening."""
    maker, talk = RowMaker(config), config.talk
    assert talk is not None
    for number, (context, row) in enumerate(_pair_contexts_with_conversations(folder)):
        roles = cycle(("user", "assistant"))
        turns = list(build_opening_turns(talk, random.Random(number).choice))
        for role, text in zip(roles, row["talk"], strict=False):
            turns.append({"role": role, "text": text})
        fields = {**context, **row, talk.name: turns}
        yield maker.make_row(fields, answer=row.get("answers"), tags=context["tag"])


def _pair_contexts_with_conversations(
    folder: Path,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield pairs of context and conversation.

    If conversations contain the id of a passage, they are paired with it. Otherwise, each context
    is paired with the next ATTACKS_PER_SCENE conversations.
    """
    contexts, rows = (
        _read_lines(folder / "contexts.jsonl"),
        _read_lines(folder / CONVERSATIONS_FILE),
    )
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
