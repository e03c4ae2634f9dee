"""The results of submissions, as far as their readers may see them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.contract import Outcome
from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    Score,
    Submission,
)
from evaluation.submissions.selectors import keep_latest_runs
from evaluation.submissions.visibility import (
    find_shown_name,
    find_shown_owner,
    find_shown_team,
    make_viewer_function,
    may_see_scores,
)
from evaluation.test_sets.sealing import Disclosure
from evaluation.test_sets.seen_in_training import SEEN_WARNING, compute_seen_share
from evaluation.test_sets.shown_scores import describe_disclosure, list_scores
from tasks.models import Task
from tasks.permissions import Person
from validation.statistics.counts import count_cells
from validation.statistics.report import Number, headline_numbers

SUITES = EvaluationRun.Suite.values  # in the order in which they are shown


@dataclass(frozen=True)
class LoopFigures:
    """The figures of the examples that people wrote against a target in a round."""

    round: int
    collected: Number
    vmer: Number


def find_loop_figures(submission: Submission) -> list[LoopFigures]:
    """Return the rounds in which people wrote against a target; two queries."""
    target = submission.target
    if target is None:
        return []
    rounds = list(target.rounds.select_related("task").order_by("number"))
    if not rounds:
        return []
    cells = count_cells(rounds, "target")
    in_the_loop = []
    for round in rounds:
        if counts := cells.parts.get((round.pk, target.name)):
            numbers = headline_numbers(counts)
            in_the_loop.append(LoopFigures(round.number, numbers["collected"], numbers["vmer"]))
    return in_the_loop


@dataclass(frozen=True)
class ListedSubmission:
    """A submission in a list, as one person sees it."""

    submission: Submission
    name: str
    owner: str
    team: str
    scores: list[tuple[EvaluationSet, Score | None]]  # the main one on each set


def list_with_scores(submissions: Iterable[Submission], task: Task, user: Person) -> dict[str, Any]:
    """Return the values of a table of models with their main score on the newest sets.

    Contains only sets that the user may see.
    """
    viewer_of, main_metric = make_viewer_function(user, task), task.config.metrics.main
    models = [(submission, viewer_of(submission)) for submission in submissions]
    newest_runs: dict[Any, dict[EvaluationSet, EvaluationRun]] = {}
    for submission, viewer in models:
        newest_runs[submission.pk] = {}
        for run in submission.runs.all():  # ordered by version, so the newest one stays
            if may_see_scores(run, viewer):
                newest_runs[submission.pk][run.version.evaluation_set] = run
    runs: list[EvaluationRun] = []
    for run_of_set in newest_runs.values():
        runs += run_of_set.values()
    versions = [run.version for run in runs]
    versions.sort(key=lambda version: version.version)
    newest_version = {version.evaluation_set: version for version in versions}
    sets = sorted(newest_version, key=lambda evaluation_set: evaluation_set.name)
    exact = any(viewer.is_task_owner for _, viewer in models)
    main_scores = {}
    for score in list_scores(runs, exact=exact):
        if score.metric == main_metric and not score.slice and not score.kind:
            main_scores[score.run_id] = score
    rows = []
    for submission, viewer in models:
        scores: list[tuple[EvaluationSet, Score | None]] = []
        for evaluation_set in sets:
            main_score = None
            if own_run := newest_runs[submission.pk].get(evaluation_set):
                main_score = main_scores.get(own_run.pk)
            scores.append((evaluation_set, main_score))
        row = ListedSubmission(
            submission,
            find_shown_name(submission, viewer),
            find_shown_owner(submission, viewer),
            find_shown_team(submission, viewer),
            scores,
        )
        rows.append(row)
    titles = [(evaluation_set, newest_version[evaluation_set]) for evaluation_set in sets]
    return {"metric": main_metric, "sets": titles, "rows": rows}


@dataclass(frozen=True)
class SetResults:
    """The results of a model on one version of a set."""

    title: str
    version: EvaluationSetVersion
    is_in_the_loop: bool  # people wrote the examples against this very model
    runs: list[EvaluationRun]  # the last of each suite
    scores: list[Score]  # over all examples
    slices: list[Score]  # of the main metric
    suites: list["SuiteResults"]
    plain: EvaluationRun | None  # whose scores these are
    sealed: Disclosure | None  # what is shown of results on it; None: it is not sealed
    overlap: float | None  # the part of it that anybody may train on
    seen: float | None  # the part of it that the model was trained on; None: not known

    @property
    def is_seen(self) -> bool:
        """Return whether the model was trained on examples of the set. The warning is public."""
        return self.plain is not None and SEEN_WARNING in self.plain.warnings

    @property
    def has_failed(self) -> bool:
        """Return whether one of the model's runs ended without a result."""
        return any(run.is_over and run.outcome != Outcome.OK for run in self.runs)

    @property
    def has_tokens(self) -> bool:
        """Return whether the server reported tokens in one of the runs."""
        return any(run.usage.get("tokens_in") is not None for run in self.runs)

    @property
    def has_latency(self) -> bool:
        """Return whether the latency of single calls was measured in one of the runs."""
        return any(run.usage.get("latency_seconds") is not None for run in self.runs)


@dataclass(frozen=True)
class SuiteResults:
    """The effects of perturbations: a row for each kind, after a first row for all of them."""

    title: str
    metrics: list[str]
    rows: list[tuple[str, int, list[Score | None]]]  # kind, examples, a score for each metric


def group_results_by_set(
    runs: Iterable[EvaluationRun],
    main_metric: str,
    *,
    exact: bool,
    training_sources: Collection[str] | None = None,
) -> list[SetResults]:
    """Return the results by set version. Of repeated runs, the first good one counts. One query.

    runs: those that the viewer may see. exact: whether the scores are shown as to the task's
    editors. training_sources: what the model learned from, by name; None if unknown.
    """
    runs = list(runs)
    # Backwards, so that the first good run of each suite is the one that stays.
    counting_runs = {}
    for run in reversed(runs):
        if run.outcome == Outcome.OK:
            counting_runs[run.version_id, run.suite] = run
    scores: dict[Any, list[Score]] = defaultdict(list)
    for score in list_scores(counting_runs.values(), exact=exact):
        scores[score.run_id].append(score)
    by_version: dict[int, list[EvaluationRun]] = defaultdict(list)
    for run in sorted(keep_latest_runs(runs), key=lambda run: SUITES.index(run.suite)):
        by_version[run.version_id].append(run)
    results = []
    for runs_of_version in sorted(by_version.values(), key=lambda runs: _sort_key(runs[0])):
        version = runs_of_version[0].version
        plain_run = counting_runs.get((version.pk, EvaluationRun.Suite.PLAIN))
        numbers: list[Score] = []
        if plain_run:
            numbers = scores[plain_run.pk]
        suites = []
        for suite in SUITES[1:]:
            if suite_run := counting_runs.get((version.pk, suite)):
                suites.append(_make_suite_results(suite_run, scores[suite_run.pk]))
        disclosure = None
        if version.is_sealed:
            disclosure = describe_disclosure(version)
        set_results = SetResults(
            title=f"{version.evaluation_set.name} v{version.version}",
            version=version,
            is_in_the_loop=any(run.in_the_loop for run in runs_of_version),
            runs=runs_of_version,
            scores=[each for each in numbers if not each.slice],
            slices=[each for each in numbers if each.slice and each.metric == main_metric],
            suites=suites,
            plain=plain_run,
            sealed=disclosure,
            overlap=version.overlap_with(),
            seen=compute_seen_share(plain_run, version, training_sources),
        )
        results.append(set_results)
    return results


def _sort_key(run: EvaluationRun) -> tuple[str, int]:
    """Return the sort key of a run: by set name, then the newest version first."""
    return run.version.evaluation_set.name, -run.version.version


def _make_suite_results(run: EvaluationRun, scores: Sequence[Score]) -> SuiteResults:
    """Return a suite's scores as a table of perturbation kinds by metrics."""
    metrics = list(dict.fromkeys(score.metric for score in scores if not score.slice))
    examples = {score.kind: score.n for score in scores}
    cells = {(score.kind, score.metric): score for score in scores if not score.slice}
    rows = [
        (kind, examples[kind], [cells.get((kind, metric)) for metric in metrics])
        for kind in sorted(examples)
    ]
    return SuiteResults(run.get_suite_display(), metrics, rows)
