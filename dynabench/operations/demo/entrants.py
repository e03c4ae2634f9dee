"""Two simple models that simulated labs submit to the board, as files of predictions."""

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import log
from typing import Any

from core.accounts.models import User
from dynabench.operations.demo.after import finish_job
from dynabench.operations.demo.community import make_user
from dynabench.operations.demo.texts import IDEA_POOL, LABELS
from evaluation import jobs
from evaluation.dataset_releases.reading import read_split_rows
from evaluation.isolation.uploads.chunked import add_file
from evaluation.models import Dataset, EvaluationSetVersion, Submission
from evaluation.submissions.cards import ModelCard
from evaluation.submissions.services import publish_model, submit_model
from evaluation.task_shape import build_released_row, build_trainable_shape
from evaluation.test_sets.selectors import read_input_rows, select_open_versions
from tasks.models import Task

Classifier = Callable[[str], str]


def classify_by_word_list(text: str) -> str:
    """Return the label that fits the counts of kind and unkind words in the text."""
    words = Counter(re.findall(r"\w+", text.lower()))
    score = sum(words[word] for word in IDEA_POOL["good"]) - sum(
        words[word] for word in IDEA_POOL["bad"]
    )
    if score > 0:
        return "positive"
    if score < 0:
        return "negative"
    return "neutral"


def train_naive_bayes(rows: Iterable[Mapping[str, Any]]) -> Classifier:
    """Return a multinomial naive Bayes model with add-one smoothing.

    rows: dictionaries with `text` and `label`.
    """
    word_counts: dict[str, Counter[str]] = {label: Counter() for label in LABELS}
    label_counts: Counter[str] = Counter()
    for row in rows:
        label_counts[row["label"]] += 1
        word_counts[row["label"]].update(re.findall(r"\w+", row["text"].lower()))
    vocabulary_size = len(set().union(*word_counts.values()))

    def answer(text: str) -> str:
        words = re.findall(r"\w+", text.lower())

        def score(label: str) -> float:
            total = word_counts[label].total() + vocabulary_size
            return log(label_counts[label] + 1) + sum(
                log((word_counts[label][w] + 1) / total) for w in words
            )

        return max(LABELS, key=score)

    return answer


def submit_entrants(task: Task) -> list[Submission]:
    """Submit both models, with one file for each set whose inputs are public.

    Return the submissions. `publish_entrants` publishes them once they have scores.
    """
    shape = build_trainable_shape(task.config)
    rows = []
    for dataset in Dataset.objects.filter(round__task=task):
        for line in read_split_rows(dataset, "train"):
            row = build_released_row(shape, line)
            if row:
                rows.append(row)
    models = {
        "word-list": (classify_by_word_list, "Counts kind and unkind words. Learned from nothing."),
        "naive-bayes": (train_naive_bayes(rows), f"Naive Bayes on {len(rows)} released rows."),
    }
    submissions = []
    for name, (model, description) in models.items():
        owner = make_user(f"sim-{name}")
        for version in select_open_versions(task):
            submissions.append(_submit(task, owner, name, version, model, description))
    return submissions


def _submit(
    task: Task,
    owner: User,
    name: str,
    version: EvaluationSetVersion,
    model: Classifier,
    description: str,
) -> Submission:
    lines = []
    for row in read_input_rows(version):
        label = model(row["inputs"]["text"])
        lines.append(json.dumps({"id": row["uid"], "output": {"label": label}}) + "\n")
    data = "".join(lines).encode()
    submission = submit_model(
        task=task,
        owner=owner,
        kind="predictions",
        name=name,
        upload=add_file(owner, f"{name}.jsonl", len(data), io.BytesIO(data)),
        evaluation_set=version,
        card=ModelCard(description=f"Simulated. {description}", languages="en", license="CC0 1.0"),
    )
    finish_job(submission, jobs.check_submission)
    return submission


def publish_entrants(submissions: Iterable[Submission]) -> None:
    """Publish the submissions, which must have scores."""
    for submission in submissions:
        if submission.owner:
            publish_model(submission=submission, actor=submission.owner)
