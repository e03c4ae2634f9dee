"""Reads of custom metrics: what they are tried on, which runs they score, which of them count."""

import gzip
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import orjson
from django.db.models import Count, Max, Q, QuerySet

from evaluation.contract import Outcome, SetRow
from evaluation.judges.custom_metrics.running import Asked
from evaluation.models import CustomMetric, EvaluationRun, EvaluationSet, EvaluationSetVersion
from evaluation.runs.selectors import counting
from evaluation.sets.selectors import newest_versions, set_rows
from tasks.config.schema import CUSTOM_PREFIX, TaskConfig
from tasks.models import Round, Task

TRIED_ON = 50
"""Examples of a trial."""
Review = CustomMetric.Review
PUBLIC = Q(review=Review.APPROVED) | Q(review=Review.RETIRED, decided_at__isnull=False)
"""What was approved once: whoever sees the task may read it, as its numbers are shown."""


class TriedOn(NamedTuple):
    """The answers of a trial. is_shown: whether people may read them beside their numbers."""

    rows: list[Asked]
    is_shown: bool


def waiting_metrics() -> QuerySet[CustomMetric]:
    """The versions that wait for an administrator's decision, the oldest first."""
    proposed = CustomMetric.objects.filter(review=Review.PROPOSED)
    return proposed.select_related("task").order_by("queued_at")


def tried_on(task: Task) -> TriedOn:
    """Answers to try a file on: each example's right answer, or that of the one before it.

    Examples of a set, rather of one whose right answers are public; else those of the task's page.
    """
    versions = newest_versions(task).exclude(evaluation_set__access=EvaluationSet.Access.HIDDEN)
    rounds = ("evaluation_set__round", "evaluation_set__held_of")
    versions = versions.select_related("dataset", *rounds).order_by("evaluation_set__name")
    by_secrecy = sorted(versions, key=_hides_answers)
    rows = [*islice(set_rows(by_secrecy[0]), TRIED_ON)] if by_secrecy else _shown_rows(task.config)
    rows = [row for row in rows if row.gold]
    asked = [
        Asked(row.gold, rows[place - place % 2].gold[0], row.inputs)
        for place, row in enumerate(rows)
    ]
    return TriedOn(asked, not (by_secrecy and _hides_answers(by_secrecy[0])))


def _hides_answers(version: EvaluationSetVersion) -> bool:
    """Whether its right answers are secret, as are all of a round that is not released."""
    one = version.evaluation_set
    round = one.round or one.held_of
    return version.is_sealed or (round is not None and round.state != Round.State.RELEASED)


def _shown_rows(config: TaskConfig) -> list[SetRow]:
    """The examples of the task's page that say what is right."""
    return [
        SetRow("", {name: given[name] for name in config.model_fields if name in given}, (right,))
        for one in (*config.examples.good, *config.examples.bad)
        if (given := {**one.context, **one.input})
        and (right := one.input.get(config.answer_field)) is not None
    ]


def runs_to_score(metric: CustomMetric) -> QuerySet[EvaluationRun]:
    """The good runs of the task, on any version of a set, that it lacks; the newest first."""
    runs = EvaluationRun.objects.filter(
        submission__task=metric.task_id,
        submission__withdrawn_at=None,
        suite=EvaluationRun.Suite.PLAIN,
        outcome=Outcome.OK,
    ).exclude(predictions="")
    unscored = counting(runs).exclude(custom_outcomes__metric=metric)
    return unscored.select_related("version", "submission").order_by("-finished_at")


def answers_of(run: EvaluationRun) -> Iterator[Asked]:
    """The answers in a run with what is right, in the order of the set. Raises OSError, ValueError.

    Nothing of who wrote an example or of where it comes from is in them.
    """
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, line in zip(set_rows(run.version), lines, strict=True):
            yield Asked(row.gold, orjson.loads(line)["answer"], row.inputs)


def with_counts(metrics: QuerySet[CustomMetric]) -> QuerySet[CustomMetric]:
    """Metrics with how many runs they scored and how many they failed on."""
    return metrics.select_related("task").annotate(
        scored=Count("outcomes", filter=Q(outcomes__failure="")),
        failed=Count("outcomes", filter=~Q(outcomes__failure="")),
    )


def before(metric: CustomMetric) -> CustomMetric | None:
    """The version with which a newer one is compared: the last that was approved once."""
    earlier = metric.task.custom_metrics.filter(PUBLIC, name=metric.name, number__lt=metric.number)
    return earlier.order_by("-number").first()


class Column(NamedTuple):
    """A custom metric as a column of a board. number: of the approved version; 0: none is.

    newest: the id of its last outcome, which tells one state of its scores from another.
    """

    name: str
    number: int = 0
    about: str = ""
    higher_is_better: bool = True
    newest: int | None = None

    @property
    def key(self) -> str:
        """The name of the version's scores."""
        return f"{self.name}:{self.number}"

    @property
    def own_name(self) -> str:
        """Its name among the task's metrics."""
        return self.name.removeprefix(CUSTOM_PREFIX)

    @property
    def told(self) -> dict[str, Any]:
        """As it stands in boards, snapshots and the API."""
        return {
            "name": self.name,
            "version": self.number,
            "about": self.about,
            "higher_is_better": self.higher_is_better,
        }


def columns_of(task: Task) -> Mapping[str, Column]:
    """The custom metrics that the task's configuration names; at most one query."""
    names = task.config.metrics.custom
    if not names:
        return {}
    found = task.custom_metrics.filter(
        review=Review.APPROVED, name__in=[name.removeprefix(CUSTOM_PREFIX) for name in names]
    ).annotate(newest=Max("outcomes"))
    known = {
        one.column: Column(one.column, one.number, one.about, one.higher_is_better, one.newest)
        for one in found
    }
    return {name: known.get(name, Column(name)) for name in names}
