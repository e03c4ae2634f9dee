"""Read custom metrics: the examples of their trials, the runs they score, their columns."""

import gzip
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import orjson
from django.db.models import Count, Max, Q, QuerySet

from evaluation.contract import Outcome, SetRow
from evaluation.judges.custom_metrics.running import AnswerToScore
from evaluation.models import CustomMetric, EvaluationRun, EvaluationSet, EvaluationSetVersion
from evaluation.runs.selectors import filter_counting_runs
from evaluation.test_sets.selectors import read_set_rows, select_newest_versions
from tasks.config.schema import CUSTOM_PREFIX, TaskConfig
from tasks.models import Round, Task

TRIAL_EXAMPLES = 50
"""The maximum number of examples in a trial."""
Review = CustomMetric.Review
IS_PUBLIC = Q(review=Review.APPROVED) | Q(review=Review.RETIRED, decided_at__isnull=False)
"""The condition for versions that were approved once. Everybody who sees the task may read them."""


class TrialAnswers(NamedTuple):
    """The answers of a trial.

    are_answers_public: whether people may read them with their numbers.
    """

    rows: list[AnswerToScore]
    are_answers_public: bool


def find_waiting_metrics() -> QuerySet[CustomMetric]:
    """Return the versions that wait for an administrator's decision, oldest first."""
    proposed_versions = CustomMetric.objects.filter(review=Review.PROPOSED)
    return proposed_versions.select_related("task").order_by("queued_at")


def choose_trial_answers(task: Task) -> TrialAnswers:
    """Return answers for a trial: for half of the examples the correct one, for half a wrong one.

    A wrong answer is the correct answer of the previous example. Examples come from a set,
    preferably one whose correct answers are public, or else from the task's page.
    """
    versions = select_newest_versions(task).exclude(
        evaluation_set__access=EvaluationSet.Access.HIDDEN
    )
    rounds = ("evaluation_set__round", "evaluation_set__held_of")
    versions = versions.select_related("dataset", *rounds).order_by("evaluation_set__name")
    # Sets with public answers first, because people may read what the trial shows of them.
    versions_by_secrecy = sorted(versions, key=_has_secret_answers)
    if versions_by_secrecy:
        rows = list(islice(read_set_rows(versions_by_secrecy[0]), TRIAL_EXAMPLES))
        are_answers_public = not _has_secret_answers(versions_by_secrecy[0])
    else:
        rows, are_answers_public = _read_page_examples(task.config), True
    # Attacks on a secret have no right answer to try.
    rows = [row for row in rows if row.gold]
    answers = []
    for position, row in enumerate(rows):
        answering_row = rows[
            position - position % 2
        ]  # itself, then the previous one: right and wrong
        answers.append(AnswerToScore(row.gold, answering_row.gold[0], row.inputs))
    return TrialAnswers(answers, are_answers_public)


def _has_secret_answers(version: EvaluationSetVersion) -> bool:
    """Return whether the correct answers are secret, as they always are in an unreleased round."""
    evaluation_set = version.evaluation_set
    round = evaluation_set.round or evaluation_set.held_of
    return version.is_sealed or (round is not None and round.state != Round.State.RELEASED)


def _read_page_examples(config: TaskConfig) -> list[SetRow]:
    """Return the examples of the task's page that have a correct answer."""
    rows = []
    for example in (*config.examples.good, *config.examples.bad):
        fields = {**example.context, **example.input}
        right_answer = example.input.get(config.answer_field)
        if right_answer is not None:
            inputs = {name: fields[name] for name in config.model_fields if name in fields}
            rows.append(SetRow("", inputs, (right_answer,)))
    return rows


def find_unscored_runs(metric: CustomMetric) -> QuerySet[EvaluationRun]:
    """Return the task's plain runs that the metric has not scored, newest first.

    Only runs that count are included: of repeated runs the first that succeeded, and none of
    withdrawn models. They may be on any version of a set.
    """
    runs = EvaluationRun.objects.filter(
        submission__task=metric.task_id,
        submission__withdrawn_at=None,
        suite=EvaluationRun.Suite.PLAIN,
        outcome=Outcome.OK,
    ).exclude(predictions="")
    # One outcome per run, even if the file failed: it runs again only on request.
    unscored_runs = filter_counting_runs(runs).exclude(custom_outcomes__metric=metric)
    return unscored_runs.select_related("version", "submission").order_by("-finished_at")


def read_answers_to_score(run: EvaluationRun) -> Iterator[AnswerToScore]:
    """Yield the answers of a run with the correct ones, in the order of the set.

    A missing answer is None. An example's author and source are left out. Raises OSError and
    ValueError.
    """
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, line in zip(read_set_rows(run.version), lines, strict=True):
            yield AnswerToScore(row.gold, orjson.loads(line)["answer"], row.inputs)


def annotate_outcome_counts(metrics: QuerySet[CustomMetric]) -> QuerySet[CustomMetric]:
    """Annotate metrics with the numbers of runs that they scored and that they failed on."""
    return metrics.select_related("task").annotate(
        scored=Count("outcomes", filter=Q(outcomes__failure="")),
        failed=Count("outcomes", filter=~Q(outcomes__failure="")),
    )


def find_former_version(metric: CustomMetric) -> CustomMetric | None:
    """Return the version to compare a newer one with: the last that was ever approved, or None."""
    earlier_versions = metric.task.custom_metrics.filter(
        IS_PUBLIC, name=metric.name, number__lt=metric.number
    )
    return earlier_versions.order_by("-number").first()


class CustomMetricColumn(NamedTuple):
    """A custom metric as a column of a leaderboard.

    number: the number of the approved version; 0 if there is none. newest: the id of its last
    outcome, which changes whenever its scores do; None without an outcome.
    """

    name: str
    number: int = 0
    about: str = ""
    higher_is_better: bool = True
    newest: int | None = None

    @property
    def key(self) -> str:
        """Return the metric name under which the version's scores are stored."""
        return f"{self.name}:{self.number}"

    @property
    def own_name(self) -> str:
        """Return the metric's name without the prefix of custom metrics."""
        return self.name.removeprefix(CUSTOM_PREFIX)

    @property
    def public_fields(self) -> dict[str, Any]:
        """Return the metric as leaderboards, snapshots and the API show it."""
        return {
            "name": self.name,
            "version": self.number,
            "about": self.about,
            "higher_is_better": self.higher_is_better,
        }


def find_custom_columns(task: Task) -> Mapping[str, CustomMetricColumn]:
    """Return the custom metrics that the task's configuration names, by name; at most one query."""
    names = task.config.metrics.custom_names
    if not names:
        return {}
    own_names = [name.removeprefix(CUSTOM_PREFIX) for name in names]
    approved_versions = task.custom_metrics.filter(review=Review.APPROVED, name__in=own_names)
    columns = {
        name: CustomMetricColumn(name) for name in names
    }  # empty for a metric that has not been approved
    for row in approved_versions.annotate(newest=Max("outcomes")):
        column_values = (row.column, row.number, row.about, row.higher_is_better, row.newest)
        columns[row.column] = CustomMetricColumn(*column_values)
    return columns
