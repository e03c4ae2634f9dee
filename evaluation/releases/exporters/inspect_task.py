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
    """The test split, or dev where the labels of test are private."""
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
    return Task(
        dataset=MemoryDataset(samples, name=about["name"]),
        solver=generate(),
        scorer=label_scorer(labels, about["answer"])
        if labels
        else text_scorer(about.get("language", "")),
        config=GenerateConfig(max_tokens=64),  # models that think aloud need --max-tokens
        name=about["name"],
    )


@metric(name="macro_f1")
def f1_of_labels() -> Metric:
    """The mean F1 of the labels."""

    def compute(scores: list[SampleScore]) -> float:
        found = [((one.score.metadata or {})["right"], one.score.answer) for one in scores]
        return float(macro_f1(found))

    return compute


@scorer(metrics=[accuracy(), stderr(), f1_of_labels()])
def label_scorer(labels: list[str], field: str) -> Scorer:
    """Whether the label that the model gives is the right one; read as Dynabench reads it."""

    async def score(state: TaskState, target: Target) -> Score:
        reading = read_label(without_thoughts(state.output.completion).text, labels, field)
        said = reading.label if reading else None
        return Score(value=float(said == target.text), answer=said, metadata={"right": target.text})

    return score


@scorer(metrics={"squad_f1": [mean(), stderr()], "exact_match": [mean(), stderr()]})
def text_scorer(language: str) -> Scorer:
    """SQuAD's F1 and EM of the first line that the model writes after its thoughts."""

    async def score(state: TaskState, target: Target) -> Score:
        said = without_thoughts(state.output.completion).text.split("\n", 1)[0]
        return Score(value=text_scores(said, target.text, language), answer=said)

    return score
