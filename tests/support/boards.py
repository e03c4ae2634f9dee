"""A task with evaluation sets and models whose numbers are known, for tests of its leaderboard."""

from django.utils import timezone

from evaluation.models import EvaluationRun, Score, Submission
from leaderboard.models import Board
from tests.support.evaluations import accepted_model, set_version

METRICS = ("accuracy", "macro_f1")
SUITES = ("fairness", "robustness")


def measured(model, version, accuracy, speed=50.0, memory=2.0, consistency=0.9, **fields):
    """A model's runs on a version of a set with their scores: plain and both suites."""
    usage = {
        "examples_per_second": speed,
        "latency_p95_seconds": speed and 10 / speed,
        "peak_bytes": memory and int(memory * 2**30),
        "mean_bytes": memory and int(memory * 2**30) * 2 // 3,
    }
    runs = EvaluationRun.objects.bulk_create(
        EvaluationRun(
            submission=model, version=version, suite=suite, state="done", outcome="ok",
            runner="process", usage=usage, **fields,
        )
        for suite in ("plain", *SUITES)
    )  # fmt: skip
    plain, *changed = runs
    values = {
        "accuracy_before": accuracy,
        "accuracy_after": accuracy - 0.1,
        "drop": 0.1,
        "consistency": consistency,
    }
    Score.objects.bulk_create(
        [
            *(_score(plain, name, accuracy) for name in METRICS),
            Score(
                run=plain, metric="accuracy", slice="tag=odd", value=accuracy, low=0, high=1, n=3
            ),
            *(_score(run, name, value) for run in changed for name, value in values.items()),
            _score(plain, "worst_group", accuracy - 0.05),
            _score(plain, "group_gap", 0.1),
            _score(changed[1], "worst_kind", accuracy - 0.2),
            _score(changed[1], "worst_kind_drop", 0.2),
        ]
    )
    return model


def ranks_any(task):
    """Have the task's board rank by rounds of any size."""
    least = "leaderboard: {min_examples: {n: 1, reason: A test.}, "
    task.config_text = task.config_text.replace("leaderboard: {", least)
    task.save(update_fields=["config_text"])
    assert task.config.leaderboard.min_examples.n == 1


def list_models(task, *rows):
    """Store what lists of tasks show of a board: (rank, name, score) of its first models."""
    ends = dict.fromkeys(("value", "low", "high", "least", "most"))
    lines = [{"rank": rank, "model": name, **ends, **score} for rank, name, score in rows]
    Board.objects.update_or_create(
        task=task,
        defaults={
            "first_models": {
                "rows": lines,
                "provisional": [],
                "changed_at": timezone.now().isoformat(),
                "state": "",
            }
        },
    )


def _score(run, metric, value):
    return Score(run=run, metric=metric, value=value, low=value - 0.005, high=value + 0.005, n=1000)


def fill_board(task, models=3, first=0, sets=("round-1", "round-2")):
    """Published models on two sets, the later ones better and more costly; in order."""
    made: list[Submission] = []
    versions = [
        task.evaluation_sets.get(name=name).versions.last()
        if task.evaluation_sets.filter(name=name).exists()
        else set_version(task, name, size=40)
        for name in sets
    ]
    for number in range(first, models):
        model = accepted_model(task, name=f"Model {number}", is_published=True)
        for version in versions:
            measured(
                model, version, 0.4 + 0.4 * number / models, speed=100.0 - number / 2,
                memory=1 + number / 8, consistency=0.7 + 0.2 * number / models,
            )  # fmt: skip
        made.append(model)
    return made
