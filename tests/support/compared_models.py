"""Two models whose answers are compared."""

import gzip

import pytest
from django.core.files.base import ContentFile

from evaluation.contract import Answer, SetRow
from evaluation.isolation.inference.evaluate import build_prediction_line
from evaluation.models import EvaluationRun, Score
from leaderboard.board.bootstrap import resample_plain
from leaderboard.models import Resample
from tests.support.evaluations import LABELS, set_version
from tests.support.factories import TaskFactory


@pytest.fixture
def task(db):
    return TaskFactory(code="nli", name="Natural language inference")


def rows_of(size, contexts=None):
    """Examples with two slices; contexts: how many premises they share."""
    return [
        SetRow(
            f"u{n}",
            {"premise": f"Premise {n % (contexts or size)}.", "hypothesis": f"Hypothesis {n}."},
            (LABELS[n % 3],),
            {"tag": ("early" if n < size // 2 else "late",), "rare": (f"value {n % 20}",)},
        )
        for n in range(size)
    ]


def answered(model, version, right):
    """A finished run that has right what `right` says of each place; else the next label."""
    lines = b"".join(
        build_prediction_line(f"u{n}", Answer(LABELS[(n + (not right(n))) % 3]))
        for n in range(version.size)
    )
    run = EvaluationRun.objects.create(
        submission=model, version=version, state="done", outcome="ok", runner="process",
        predictions=ContentFile(gzip.compress(lines), name="p.jsonl.gz"),
    )  # fmt: skip
    share = sum(bool(right(n)) for n in range(version.size)) / version.size
    for metric in ("accuracy", "macro_f1"):
        Score.objects.create(
            run=run, metric=metric, value=share, low=share - 0.05, high=share + 0.05, n=version.size
        )
    for metric, values in resample_plain(run).items():
        Resample.objects.create(run=run, metric=metric, values=values.tobytes())
    return run


@pytest.fixture
def version(task):
    return set_version(task, "round-1", rows=rows_of(240), may_leave=True)
