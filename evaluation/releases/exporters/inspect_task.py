"""A released round of Dynabench for Inspect: `inspect eval inspect_task.py --model …`.

This file is the same in every release; task.json and the JSON lines next to it say what is asked.
"""

from pathlib import Path

from dynabench_task import evaluated, label_in, macro_f1, read_task, text_scores
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
        scorer=label_scorer(labels) if labels else text_scorer(),
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
def label_scorer(labels: list[str]) -> Scorer:
    """Whether the first label that the model names is the right one."""

    async def score(state: TaskState, target: Target) -> Score:
        said = label_in(state.output.completion, labels)
        return Score(value=float(said == target.text), answer=said, metadata={"right": target.text})

    return score


@scorer(metrics={"squad_f1": [mean(), stderr()], "exact_match": [mean(), stderr()]})
def text_scorer() -> Scorer:
    """SQuAD's F1 and EM of the first line that the model writes."""

    async def score(state: TaskState, target: Target) -> Score:
        said = next(iter(state.output.completion.strip().splitlines()), "")
        return Score(value=text_scores(said, target.text), answer=said)

    return score
