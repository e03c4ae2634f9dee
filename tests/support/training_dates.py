"""Models that state until when they were trained, on sets of rounds of different weeks."""

from datetime import UTC, datetime

from evaluation.models import EvaluationRun, EvaluationSet, Score, Submission
from evaluation.test_sets.services import make_version
from tests.support.evaluations import nli_rows
from tests.support.factories import RoundFactory


def round_set(task, number, begin, end, size):
    """The set of a released round that was open from one day to another."""
    round = RoundFactory(
        task=task, number=number, state="released",
        opened_at=datetime.combine(begin, datetime.min.time(), UTC),
        closed_at=datetime.combine(end, datetime.min.time(), UTC),
    )  # fmt: skip
    one = EvaluationSet.objects.create(
        task=task, name=f"round-{number}", source="round", round=round, answers_public=True
    )
    return make_version(one, nli_rows(size), None)


def model_of(task, owner, name, until, *results):
    """A published model. results: version, right answers, whether it was in the loop."""
    model = Submission.objects.create(
        task=task, owner=owner, name=name, kind="hub", state="done", is_published=True,
        trained_until=until,
    )  # fmt: skip
    for version, right, in_the_loop in results:
        run = EvaluationRun.objects.create(
            submission=model, version=version, state="done", outcome="ok", in_the_loop=in_the_loop
        )
        share = right / version.size
        Score.objects.create(
            run=run, metric="accuracy", value=share, low=share, high=share, n=version.size
        )
    return model
