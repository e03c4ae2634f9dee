"""A released round of Dynabench for Inspect: `inspect eval inspect_task.py --model …`.

This file is the same in every release; task.json and the JSON lines next to it say what is asked.
"""

from pathlib import Path

from answer_reader import read_label, without_thoughts
from dynabench_task import evaluated, macro_f1, read_task, text_scores
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
    about = read_task(FOLDER)
    labels = about["labels"]
    samples = [
        Sample(
            input=doc["instructions"] + doc["prompt"],
            target=labels[doc["target"]] if labels else doc["target"],
            id=doc["uid"],
        )
        for doc in evaluated(FOLDER)
    ]
    if labels:
        task_scorer = label_scorer(labels, about["answer"])
    else:
        task_scorer = text_scorer(about.get("language", ""))
    return Task(
        dataset=MemoryDataset(samples, name=about["name"]),
        solver=generate(),
        scorer=task_scorer,
        config=GenerateConfig(max_tokens=64),  # models that think aloud need --max-tokens
        name=about["name"],
    )


@metric(name="macro_f1")
def f1_of_labels() -> Metric:
    """Return the metric that computes the mean F1 of the labels."""

    def compute(scores: list[SampleScore]) -> float:
        pairs = []
        for sample in scores:
            pairs.append(((sample.score.metadata or {})["right"], sample.score.answer))
        return float(macro_f1(pairs))

    return compute


@scorer(metrics=[accuracy(), stderr(), f1_of_labels()])
def label_scorer(labels: list[str], field: str) -> Scorer:
    """Return a scorer of the label in the model's output, which is read as Dynabench reads it."""

    async def score(state: TaskState, target: Target) -> Score:
        reading = read_label(without_thoughts(state.output.completion).text, labels, field)
        answer = reading.label if reading else None
        metadata = {"right": target.text}
        return Score(value=float(answer == target.text), answer=answer, metadata=metadata)

    return score


@scorer(metrics={"squad_f1": [mean(), stderr()], "exact_match": [mean(), stderr()]})
def text_scorer(language: str) -> Scorer:
    """Return a scorer of the first line after the model's reasoning, by SQuAD's F1 and EM."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = without_thoughts(state.output.completion).text.split("\n", 1)[0]
        return Score(value=text_scores(answer, target.text, language), answer=answer)

    return score
