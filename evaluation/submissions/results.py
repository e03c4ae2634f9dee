"""The results of submissions, as far as their readers may see them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.contract import Outcome
from evaluation.kinds import KINDS
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
from validation.statistics.report import Number, compute_headline_numbers

MIN_SLICE_EXAMPLES = 10
"""The fewest examples of a slice that is named as a strength or a weakness."""
SUITES = EvaluationRun.Suite.values  # in display order


@dataclass(frozen=True)
class LoopFigures:
    """The figures of the examples that people wrote against a target in a round."""

    round: int
    collected: Number
    vmer: Number


def find_loop_figures(submission: Submission) -> list[LoopFigures]:
    """Return figures of the rounds in which people wrote against a target; two queries.

    Empty for models that are not targets.
    """
    target = submission.target
    if target is None:
        return []
    rounds = list(target.rounds.select_related("task").order_by("number"))
    if not rounds:
        return []
    cells = count_cells(rounds, "target")
    loop_figures = []
    for round in rounds:
        if counts := cells.parts.get((round.pk, target.name)):
            numbers = compute_headline_numbers(counts)
            loop_figures.append(LoopFigures(round.number, numbers["collected"], numbers["vmer"]))
    return loop_figures


@dataclass(frozen=True)
class ListedSubmission:
    """A submission in a list, as one person sees it."""

    submission: Submission
    name: str
    owner: str
    team: str
    scores: list[tuple[EvaluationSet, Score | None]]  # the main one on each set


def list_submissions_with_scores(
    submissions: Iterable[Submission], task: Task, user: Person
) -> dict[str, Any]:
    """Return the template values for a table of models with their main score on the newest sets.

    Contains only sets that the user may see.
    """
    get_viewer, main_metric = make_viewer_function(user, task), task.config.metrics.main
    models = [(submission, get_viewer(submission)) for submission in submissions]
    newest_runs: dict[Any, dict[EvaluationSet, EvaluationRun]] = {}
    for submission, viewer in models:
        newest_runs[submission.pk] = {}
        for run in submission.runs.all():  # ordered by version, so the newest one wins
            if may_see_scores(run, viewer):
                newest_runs[submission.pk][run.version.evaluation_set] = run
    runs: list[EvaluationRun] = []
    for run_by_set in newest_runs.values():
        runs += run_by_set.values()
    versions = [run.version for run in runs]
    versions.sort(key=lambda version: version.version)
    newest_version = {version.evaluation_set: version for version in versions}
    sets = sorted(newest_version, key=lambda evaluation_set: evaluation_set.name)
    is_exact = any(viewer.is_task_owner for _, viewer in models)
    main_scores = {}
    for score in list_scores(runs, is_exact=is_exact):
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


def merge_files(rows: Sequence[ListedSubmission]) -> list[ListedSubmission]:
    """Join the rows of prediction files that make up one model, as boards do.

    The row of the newest file stays, with the scores of all.
    """
    row_by_model: dict[Any, ListedSubmission] = {}
    for row in rows:
        submission = row.submission
        key: Any = submission.pk
        if KINDS[submission.kind].is_file_of_answers and submission.owner_id is not None:
            key = (submission.owner_id, submission.team_id, submission.name)
        # Rows are sorted newest first, so the first one of a model stays.
        if key not in row_by_model:
            row_by_model[key] = row
            continue
        pairs = zip(row_by_model[key].scores, row.scores, strict=True)
        scores = [(set, score or other_score) for (set, score), (_, other_score) in pairs]
        row_by_model[key] = replace(row_by_model[key], scores=scores)
    return list(row_by_model.values())


@dataclass(frozen=True)
class SetResults:
    """The results of a model on one version of a set."""

    title: str
    version: EvaluationSetVersion
    is_in_the_loop: bool  # people wrote the examples against this model
    runs: list[EvaluationRun]  # the last run of each suite
    scores: list[Score]  # over all examples
    slices: list[Score]  # of the main metric
    suites: list["SuiteResults"]
    plain: EvaluationRun | None  # the run of these scores
    sealed: Disclosure | None  # what is shown of its results; None: it is not sealed
    overlap: float | None  # the share of it that is public training data
    seen: float | None  # the share of it that the model was trained on; None: unknown

    @property
    def is_seen(self) -> bool:
        """Return whether a public warning says that the model was trained on the set's examples."""
        return self.plain is not None and SEEN_WARNING in self.plain.warnings

    @property
    def has_failed(self) -> bool:
        """Return whether one of the model's runs ended without a result."""
        return any(run.is_over and run.outcome != Outcome.OK for run in self.runs)

    @property
    def has_usage(self) -> bool:
        """Return whether speed or memory was measured in one of the runs."""
        usages = [run.usage for run in self.runs]
        return any(
            usage.get("examples_per_second") is not None or usage.get("peak_bytes")
            for usage in usages
        )

    @property
    def has_tokens(self) -> bool:
        """Return whether the server reported tokens in one of the runs."""
        return any(run.usage.get("tokens_in") is not None for run in self.runs)

    @property
    def has_latency(self) -> bool:
        """Return whether the latency of single calls was measured in one of the runs."""
        return any(run.usage.get("latency_seconds") is not None for run in self.runs)


@dataclass(frozen=True)
class ExtremeSlices:
    """The slices of a set on which a model does best and worst. title: the set's title."""

    title: str
    strongest: Score
    weakest: Score


def find_extreme_slices(results: Sequence[SetResults]) -> ExtremeSlices | None:
    """Return the best and the worst slice on the largest set where they clearly differ.

    None if no set has two slices of MIN_SLICE_EXAMPLES whose intervals do not overlap.
    """
    largest_first = sorted(results, key=lambda set_results: set_results.version.size, reverse=True)
    for set_results in largest_first:
        slices = [
            score
            for score in set_results.slices
            if score.value is not None and score.n >= MIN_SLICE_EXAMPLES
        ]
        if len(slices) < 2:
            continue
        strongest = max(slices, key=lambda score: score.value or 0)
        weakest = min(slices, key=lambda score: score.value or 0)
        # Only claims what the intervals support.
        if strongest.low is None or weakest.high is None:
            continue
        if strongest.low > weakest.high:
            return ExtremeSlices(set_results.title, strongest, weakest)
    return None


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
    is_exact: bool,
    training_sources: Collection[str] | None = None,
) -> list[SetResults]:
    """Return the results by set version. Of repeated runs, the first that succeeded counts.

    runs: those that the viewer may see. is_exact: whether to show the scores exactly, as to the
    task's editors. training_sources: the names of the sources that the model was trained on; None
    if unknown. One query.
    """
    runs = list(runs)
    # In reverse, so that the first good run of each suite replaces the others.
    counting_runs = {}
    for run in reversed(runs):
        if run.outcome == Outcome.OK:
            counting_runs[run.version_id, run.suite] = run
    scores: dict[Any, list[Score]] = defaultdict(list)
    for score in list_scores(counting_runs.values(), is_exact=is_exact):
        scores[score.run_id].append(score)
    runs_by_version: dict[int, list[EvaluationRun]] = defaultdict(list)
    for run in sorted(keep_latest_runs(runs), key=lambda run: SUITES.index(run.suite)):
        runs_by_version[run.version_id].append(run)
    results = []
    for version_runs in sorted(runs_by_version.values(), key=lambda runs: _build_sort_key(runs[0])):
        version = version_runs[0].version
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
            is_in_the_loop=any(run.in_the_loop for run in version_runs),
            runs=version_runs,
            scores=[each for each in numbers if not each.slice],
            slices=[each for each in numbers if each.slice and each.metric == main_metric],
            suites=suites,
            plain=plain_run,
            sealed=disclosure,
            overlap=version.compute_overlap(),
            seen=compute_seen_share(plain_run, version, training_sources),
        )
        results.append(set_results)
    return results


def _build_sort_key(run: EvaluationRun) -> tuple[str, int]:
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
