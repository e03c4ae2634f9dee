"""Submitted models with their sets, runs, scores and answers, for tests of what shows them."""

import gzip

from django.core.files.base import ContentFile

from evaluation.contract import Answer, SetRow
from evaluation.isolation.inference.evaluate import build_prediction_line
from evaluation.jobs import check_submission, evaluate_next
from evaluation.models import Dataset, EvaluationRun, Score, Submission
from evaluation.test_sets.services import create_set, make_version
from tests.support.factories import RoundFactory

State = Submission.State


def make_set(task, name, **told):
    one = create_set(task=task, name=name, actor=None, **({"answers_public": True} | told))
    rows = [
        SetRow(f"{name}{n}", {"premise": f"Premise {n}.", "hypothesis": "So."}, ("entailment",))
        for n in range(6)
    ]
    return make_version(one, rows, None)


def submission_of(task, owner, **columns):
    return Submission.objects.create(
        task=task, owner=owner, kind="hub", name="MiniLM seed 1", **columns
    )


def scored(submission, version, suite="plain", **scores):
    run = EvaluationRun.objects.create(
        submission=submission, version=version, suite=suite, state=State.DONE, outcome="ok",
        log="Loading weights\nDone", runner="process",
        usage={"examples_per_second": 51.25, "peak_bytes": 2**29},
    )  # fmt: skip
    for name, value in (scores or {"accuracy": 0.625}).items():
        Score.objects.create(
            run=run, metric=name, value=value, low=value - 0.1, high=value + 0.1, n=6
        )
    return run


def work_off() -> None:
    """Check and evaluate whatever waits, as a worker would."""
    for waiting in Submission.objects.filter(state=State.QUEUED):
        check_submission(waiting.pk)
    while run := EvaluationRun.objects.filter(state=State.QUEUED).first():
        evaluate_next(run.pk)


def url_of(submission, action=""):
    return f"/m/{submission.pk}/{action}"


def answered(run, *answers):
    """The predictions of a run, in the order of its set."""
    lines = b"".join(build_prediction_line(str(n), Answer(one)) for n, one in enumerate(answers))
    run.predictions.save("p.jsonl.gz", ContentFile(gzip.compress(lines)))


def release_of(version, **options):
    """A version that was released; with private labels where the options say so."""
    round = RoundFactory(task=version.evaluation_set.task, number=9, state="released")
    dataset = Dataset.objects.create(round=round, version=1, state="done", options=options)
    type(version).objects.filter(pk=version.pk).update(dataset=dataset)
