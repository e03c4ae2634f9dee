"""The questions to a judge: an answer, or one criterion of it, with what people said of it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from django.conf import settings

from annotation.models import Example
from evaluation.judges.llm_judges.agreement import Split, assign_split
from tasks.config.criteria import CLEAR_JUDGEMENTS, Criterion
from tasks.config.schema import TaskConfig
from tasks.models import Task
from validation.consensus.claims import is_about_model
from validation.consensus.criteria import list_judged_criteria
from validation.models import Verdict

ANSWER_FIELD = "answer_to_judge"
"""The field of a judge's prompt that contains the answer."""
CRITERION_FIELD = "criterion_to_check"
"""The field of a judge's prompt that contains the criterion, if the task has criteria."""
VERDICT_LABELS = ("correct", "incorrect")
CRITERION_LABELS = ("met", "not met")


class JudgeQuestion(NamedTuple):
    """An answer to judge, with the inputs that it answers.

    inputs: the inputs, the answer under ANSWER_FIELD and a criterion under CRITERION_FIELD. key: a
    digest of the inputs.
    """

    inputs: Mapping[str, Any]
    key: str


class JudgedAnswer(NamedTuple):
    """An answer with the verdict of people. With a criterion, is_correct: whether it is met."""

    question: JudgeQuestion
    author: int | None
    split: Split
    is_correct: bool


def make_judge_question(
    config: TaskConfig, fields: Mapping[str, Any], answer: str, criterion: str = ""
) -> JudgeQuestion:
    """Return the question for a judge: the fields that models read, the answer and a criterion."""
    inputs = {name: fields.get(name, "") for name in config.model_fields} | {ANSWER_FIELD: answer}
    if criterion:
        inputs[CRITERION_FIELD] = criterion
    # Sorted keys, so that the key does not depend on the order of the configuration.
    text = orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS)
    return JudgeQuestion(inputs, hashlib.sha256(text).hexdigest())


def has_criteria(config: TaskConfig) -> bool:
    """Return whether judges are asked about each criterion of an answer."""
    return config.verdict.type == "criteria"


def list_prompt_fields(config: TaskConfig) -> tuple[str, ...]:
    """Return the names of the fields in a judge's question, in their order."""
    own_fields = (ANSWER_FIELD, CRITERION_FIELD) if has_criteria(config) else (ANSWER_FIELD,)
    return (*config.model_fields, *own_fields)


def get_verdict_labels(config: TaskConfig) -> tuple[str, str]:
    """Return the two answers of a judge, the favourable one first."""
    return CRITERION_LABELS if has_criteria(config) else VERDICT_LABELS


def read_judgement(task: Task, example: Example) -> JudgedAnswer | None:
    """Return the judged free-text answer of an example, with the verdict of people.

    None if the answer is no text, or if people judged a model's answer and several targets
    answered.
    """
    config, outputs = task.config, list(example.target_outputs.all())
    answer = example.inputs.get(config.answer_field)
    # People judged the model's answer. With several targets, it is unclear whose.
    if is_about_model(config, example.outcome):
        answer = None
        if len(outputs) == 1:
            answer = outputs[0].output.get(config.answer_field)
    if not isinstance(answer, str):
        return None
    fields = {**example.context.fields, **example.inputs}
    author = example.annotator_id
    split = assign_split(task.pk, author or example.uuid, settings.SECRET_KEY)
    is_correct = example.consensus.verdict == Verdict.CORRECT
    return JudgedAnswer(make_judge_question(config, fields, answer), author, split, is_correct)


def iterate_criterion_questions(
    task: Task, example: Example
) -> Iterator[tuple[Criterion, JudgeQuestion]]:
    """Yield a question for each criterion of an example; none without one target's answer."""
    config, outputs = task.config, list(example.target_outputs.all())
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    answer = outputs[0].output.get(config.answer_field) if len(outputs) == 1 else None
    if not isinstance(answer, str):
        return
    fields = {**example.context.fields, **example.inputs}
    for criterion in criteria:
        yield criterion, make_judge_question(config, fields, answer, criterion.text)


def read_criterion_judgements(task: Task, example: Example) -> Iterator[JudgedAnswer]:
    """Yield each criterion of an example that people decided, with their decision."""
    decided: Sequence[str | None] = example.consensus.judgements or ()
    split = assign_split(task.pk, example.annotator_id or example.uuid, settings.SECRET_KEY)
    questions = iterate_criterion_questions(task, example)
    for (_, question), judgement in zip(questions, decided, strict=False):
        # A judge answers yes or no, so what people can't tell shows no agreement.
        if judgement in CLEAR_JUDGEMENTS:
            yield JudgedAnswer(question, example.annotator_id, split, judgement == "met")
