"""A released round of Dynabench for Inspect: `inspect eval inspect_task.py --model …`.

This file is the same in every release. It reads task.json and the JSON lines beside it.
"""

from pathlib import Path

from answer_reader import read_label, split_thoughts
from dynabench_task import (
    compute_macro_f1,
    compute_text_scores,
    list_evaluation_examples,
    read_task,
)
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    accuracy,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState, generate

FOLDER = Path(__file__).parent


@task
def dynabench() -> Task:
    """Return the task: the test split, or dev if the labels of test are private."""
    task_info = read_task(FOLDER)
    labels = task_info["labels"]
    samples = [
        Sample(
            input=doc["instructions"] + doc["prompt"],
            target=labels[doc["target"]] if labels else doc["target"],
            id=doc["uid"],
        )
        for doc in list_evaluation_examples(FOLDER)
    ]
    if labels:
        task_scorer = label_scorer(labels, task_info["answer"])
    else:
        task_scorer = text_scorer(task_info.get("language", ""))
    return Task(
        dataset=MemoryDataset(samples, name=task_info["name"]),
        solver=generate(),
        scorer=task_scorer,
        config=GenerateConfig(max_tokens=64),  # reasoning models need --max-tokens
        name=task_info["name"],
    )


@metric(name="macro_f1")
def label_macro_f1() -> Metric:
    """Return the metric that computes the mean F1 of the labels."""

    def compute(scores: list[SampleScore]) -> float:
        pairs = []
        for sample in scores:
            pairs.append(((sample.score.metadata or {})["right"], sample.score.answer))
        return float(compute_macro_f1(pairs))

    return compute


@scorer(metrics=[accuracy(), stderr(), label_macro_f1()])
def label_scorer(labels: list[str], field: str) -> Scorer:
    """Return a scorer that reads the label in a model's output by Dynabench's own rules."""

    async def score(state: TaskState, target: Target) -> Score:
        reading = read_label(split_thoughts(state.output.completion).text, labels, field)
        answer = reading.label if reading else None
        metadata = {"right": target.text}
        return Score(value=float(answer == target.text), answer=answer, metadata=metadata)

    return score


@scorer(metrics={"squad_f1": [mean(), stderr()], "exact_match": [mean(), stderr()]})
def text_scorer(language: str) -> Scorer:
    """Return a scorer of the first line after the model's reasoning, by SQuAD's F1 and EM."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = split_thoughts(state.output.completion).text.split("\n", 1)[0]
        return Score(value=compute_text_scores(answer, target.text, language), answer=answer)

    return score
