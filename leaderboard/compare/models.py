"""Two models compared: on the same examples where these can be read, else on resamples.

At most MAX_EXAMPLES are read for a page, and the results are cached: neither predictions nor
right answers ever change. It loads numpy (see `leaderboard.board.matrix`).
"""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from django.core.cache import cache
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.numbers import format_p
from evaluation.contract import Answer, SetRow
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import filter_counting_runs
from evaluation.scoring.bootstrap import MAX_SLICE_VALUES
from evaluation.scoring.corrections import adjust_by_benjamini_hochberg, adjust_by_holm
from evaluation.scoring.metrics.base import Mean, make_comparable
from evaluation.submissions.visibility import Viewer, may_see_wrong_answers
from evaluation.test_sets.selectors import read_set_rows
from leaderboard.board.bootstrap import iter_available_metrics, read_answers
from leaderboard.board.cells import Cell
from leaderboard.board.columns import RUN_COLUMNS
from leaderboard.board.intervals import compute_correlations, compute_difference_ends
from leaderboard.board.matrix import Matrix
from leaderboard.board.means import Draws
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import compute_code_version, read_cell
from leaderboard.compare.outcomes import OUTCOME_PARTS, OutcomeCounts, count_outcomes, name_outcome
from leaderboard.ranking.ranks import (
    ALPHA,
    CRITICAL_Z,
    STANDARD_NORMAL,
    Difference,
    compare_scores,
)
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Task

MAX_EXAMPLES = 100_000
"""The most examples read for a page; other sets are compared on stored resamples."""
MIN_SLICE_EXAMPLES = 30
"""The fewest examples of a slice that is tested."""
MAX_SHOWN_SLICES = 50
"""The most slices that are listed."""
PAGE_EXAMPLES = 20
"""Examples per page."""
SLICE_CORRECTION = "benjamini-hochberg"
"""The correction of the p-values of slices. Rows have Holm's correction."""
CACHE_SECONDS = 24 * 3600
METHODS: Mapping[str, str] = {
    "mcnemar": gettext_noop("McNemar's exact test"),
    "student": gettext_noop("Paired t-test"),
    "sign-flips": gettext_noop("Exact sign-flip test"),
    "resamples": gettext_noop("Bootstrap resamples"),
}
Pair = tuple[EvaluationRun, EvaluationRun]


@dataclass(frozen=True)
class ComparedMetric:
    """A metric on a set: both values, and first − second with an interval, in percent.

    test_result: the test on a scale of 0 to 1. adjusted_p: its p-value after `correction`; None if
    untested.
    """

    set: BoardSet
    metric: str
    values: tuple[Cell, Cell]
    test_result: Difference | None
    adjusted_p: float | None = None
    slice: str = ""
    is_less_better: bool = False
    correction: str = "holm"

    @property
    def p_texts(self) -> tuple[str, str]:
        """Return the formatted p-value of the test and the corrected one; "" if untested."""
        if self.test_result is None or self.adjusted_p is None:
            return "", ""
        return format_p(self.test_result.p), format_p(self.adjusted_p)

    @property
    def cell(self) -> Cell:
        """Return the difference in percentage points."""
        test = self.test_result
        if test is None:
            return Cell(None)
        return Cell(100 * test.value, 100 * test.low, 100 * test.high)

    @property
    def better(self) -> str:
        """Return `first`, `second`, "" for no significant difference, or `untested`."""
        if self.test_result is None or self.adjusted_p is None:
            return "untested"
        if self.adjusted_p > ALPHA:
            return ""
        return "first" if (self.test_result.value > 0) != self.is_less_better else "second"

    @property
    def method(self) -> str:
        """Return the name of the test in words; "" if untested."""
        if self.test_result is None:
            return ""
        words = _(METHODS[self.test_result.method])
        is_clustered = self.test_result.clusters < self.test_result.n
        return _("%(test)s, grouped by text") % {"test": words} if is_clustered else words


@dataclass(frozen=True)
class SetDifferences:
    """The differences of two models on a set, by metric, and of the main metric by slice."""

    metrics: Mapping[str, Difference]
    slices: Mapping[str, Difference]
    small: int  # the number of slices with too few examples to be tested
    outcomes: OutcomeCounts | None = None  # None if answers may be partly right


@dataclass(frozen=True)
class Comparison:
    """Two models on all sets. unread: sets compared only by stored resamples."""

    rows: tuple[ComparedMetric, ...]
    slices: tuple[ComparedMetric, ...]  # the most certain first, at most MAX_SHOWN_SLICES
    tested_slices: int
    small_slices: int
    unread: tuple[str, ...]
    in_the_loop: tuple[tuple[int, str], ...]  # pairs of the model (0 or 1) and the set
    outcomes: Mapping[str, OutcomeCounts]  # which of them are right, by set

    def count_rows(self, better: str) -> int:
        """Count the rows with this outcome."""
        return sum(row.better == better for row in self.rows)


@dataclass(frozen=True)
class ChosenSet:
    """The sets whose examples the reader may see, and the one that they selected.

    set: empty if none is selected; then no examples are compared. with_gold: whether the reader may
    see the selected set's correct answers. with_gold_sets: all sets whose correct answers they may
    see. part: which examples are listed, one of OUTCOME_PARTS; empty for the examples on which the
    models differ.
    """

    readable: list[str]
    set: str
    pair: Pair | None
    with_gold: bool
    with_gold_sets: tuple[str, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class ComparedExample:
    """An example on which two models differ. gold: empty if the reader may not see it."""

    uid: str
    fields: list[tuple[str, str]]
    answers: tuple[str, str]
    gold: list[str]
    grades: tuple[float, float] | None


def find_shared_runs(matrix: Matrix, first: int, second: int) -> dict[int, Pair]:
    """Return the runs of two models on the sets that both were run on, by version.

    first, second: the indices of the models.
    """
    sides: dict[UUID, int] = {}
    for side in (first, second):
        sides |= dict.fromkeys(matrix.models[side].files, side)
    versions = [each.version_id for each in matrix.sets]
    runs = filter_counting_runs(
        EvaluationRun.objects.filter(
            submission__in=sides, version__in=versions, suite=EvaluationRun.Suite.PLAIN
        )
    ).select_related("version__evaluation_set", "version__dataset")
    runs_by_side = {}
    # Logs, measurements and a dataset's numbers are large, and none is needed here.
    for run in runs.defer("log", "measurements", "version__dataset__numbers"):
        runs_by_side[sides[run.submission_id], run.version_id] = run
    pairs = {}
    for version in versions:
        pair = runs_by_side.get((first, version)), runs_by_side.get((second, version))
        if pair[0] and pair[1]:
            pairs[version] = pair[0], pair[1]
    return pairs


def select_readable_runs(pairs: Mapping[int, Pair], *, is_editor: bool) -> dict[str, Pair]:
    """Return the runs whose examples the reader may see, by the name of the set.

    Everyone may read inputs that may leave the site; the task's editors may read all of them. Sets
    of more than MAX_EXAMPLES, and runs without stored predictions, are left out.
    """
    readable = {}
    for pair in pairs.values():
        version = pair[0].version
        may_read = is_editor or version.evaluation_set.may_leave
        if may_read and version.size <= MAX_EXAMPLES and _have_predictions(pair):
            readable[version.evaluation_set.name] = pair
    return readable


def _have_predictions(pair: Pair) -> bool:
    """Return whether both runs still have their predictions."""
    return all(run.predictions for run in pair)


def may_see_gold(pair: Pair, *, is_editor: bool) -> bool:
    """Return whether the reader may see correct answers: if both models' mistakes are shown."""
    viewer = Viewer(is_owner=False, is_task_owner=is_editor, may_download=True)
    return all(may_see_wrong_answers(run, viewer) for run in pair)


def compare_models(
    task: Task, matrix: Matrix, first: int, second: int, pairs: Mapping[int, Pair]
) -> Comparison:
    """Compare two models: rows with Holm's correction, slices with Benjamini and Hochberg's.

    pairs: what `find_shared_runs` returns for the two models.
    """
    differences = _read_differences(task, matrix, pairs)
    models = first, second
    rows: list[ComparedMetric] = []
    slices: list[ComparedMetric] = []
    unread: list[str] = []
    outcomes: dict[str, OutcomeCounts] = {}
    for set_index, board_set in enumerate(matrix.sets):
        set_differences = differences.get(board_set.version_id)
        if board_set.version_id in pairs:
            rows += _iter_set_rows(matrix, models, set_index, set_differences)
            if set_differences is None:
                unread.append(board_set.name)
        if set_differences and set_differences.outcomes:
            outcomes[board_set.name] = set_differences.outcomes
        if set_differences:
            slices += _iter_slice_rows(matrix, board_set, set_differences)
    surest_slices = sorted(
        _adjust_rows(slices, adjust_by_benjamini_hochberg), key=lambda row: row.adjusted_p or 0.0
    )
    return Comparison(
        rows=tuple(_adjust_rows(rows, adjust_by_holm)),
        slices=tuple(surest_slices[:MAX_SHOWN_SLICES]),
        tested_slices=len(slices),
        small_slices=sum(set_differences.small for set_differences in differences.values()),
        unread=tuple(unread),
        in_the_loop=tuple(_iter_in_the_loop(matrix, models)),
        outcomes=outcomes,
    )


def _iter_set_rows(
    matrix: Matrix, models: tuple[int, int], set_index: int, differences: SetDifferences | None
) -> Iterator[ComparedMetric]:
    """Yield a row for each metric that at least one of the models has on a set."""
    for metric in matrix.metrics:
        if metric in RUN_COLUMNS:
            continue  # speed and memory were measured once, so there is nothing to test
        values = _read_cells(matrix, models, set_index, metric)
        test = _choose_difference(matrix, models, set_index, metric, differences)
        if test or any(cell.value is not None for cell in values):
            is_less_better = metric in matrix.less_is_better
            yield ComparedMetric(
                matrix.sets[set_index], metric, values, test, is_less_better=is_less_better
            )


def _iter_slice_rows(
    matrix: Matrix, board_set: BoardSet, differences: SetDifferences
) -> Iterator[ComparedMetric]:
    """Yield a row of the main metric for each slice of a set."""
    empty_cells = Cell(None), Cell(None)
    for name, test in differences.slices.items():
        yield ComparedMetric(
            board_set, matrix.main, empty_cells, test, slice=name, correction=SLICE_CORRECTION
        )


def _iter_in_the_loop(matrix: Matrix, models: tuple[int, int]) -> Iterator[tuple[int, str]]:
    """Yield a model's number (0 or 1) and a set's name for each set written against a model."""
    for set_index, board_set in enumerate(matrix.sets):
        for model_number, model in enumerate(models):
            if matrix.numbers.in_the_loop[model, set_index]:
                yield model_number, board_set.name


def _adjust_rows(rows: Sequence[ComparedMetric], adjust: Any) -> Iterator[ComparedMetric]:
    """Yield the rows, with a corrected p-value if they were tested."""
    ps = iter(adjust([row.test_result.p for row in rows if row.test_result]))
    for row in rows:
        yield replace(row, adjusted_p=next(ps)) if row.test_result else row


def _read_cells(
    matrix: Matrix, models: tuple[int, int], set_index: int, metric: str
) -> tuple[Cell, Cell]:
    first, second = models
    return read_cell(matrix, first, set_index, metric), read_cell(matrix, second, set_index, metric)


def _choose_difference(
    matrix: Matrix,
    models: tuple[int, int],
    set_index: int,
    metric: str,
    differences: SetDifferences | None,
) -> Difference | None:
    """Return the difference on examples, else on resamples; None if neither is available.

    Scores of an uncalibrated judge are not tested.
    """
    if metric not in matrix.weighable_metrics:
        return None
    if differences and metric in differences.metrics:
        return differences.metrics[metric]
    numbers, column = matrix.numbers, matrix.metrics.index(metric)
    if set_index >= len(numbers.draws):  # only sets with a weight, which come first, are resampled
        return None
    draws = numbers.draws[set_index, matrix.drawn_metrics.index(metric)]
    n = min(int(numbers.n[model, set_index, column]) for model in models)
    first, second = models
    return compare_resamples(
        _read_cells(matrix, models, set_index, metric), (draws[first], draws[second]), n
    )


def compare_resamples(
    values: tuple[Cell, Cell], draws: tuple[Draws, Draws], n: int
) -> Difference | None:
    """Return the difference of two percentages, with an interval from their intervals and draws.

    Returns None if one of them has no interval. n: the number of examples. The p-value uses the
    standard error that the interval's end nearer to zero implies.
    """
    if any(None in cell for cell in values):
        return None
    (first, *first_ends), (second, *second_ends) = (np.array(values, dtype=float) / 100).tolist()
    shared = float(compute_correlations(np.stack(draws)[:, None])[0, 1, 0])
    low, high = compute_difference_ends((first, second), (first_ends, second_ends), shared)
    value = first - second
    to_zero = value - low if value > 0 else high - value
    error = to_zero / CRITICAL_Z
    tail = 0.0 if value else 0.5
    if error:
        tail = STANDARD_NORMAL.cdf(-abs(value) / error)
    # No flip of signs is rarer than this, even if the error looks smaller.
    p = max(2 * tail, 2.0 ** (1 - max(1, n)))
    return Difference(value, low, high, p, n, n, "resamples")


def _read_differences(
    task: Task, matrix: Matrix, pairs: Mapping[int, Pair]
) -> dict[int, SetDifferences]:
    """Return the differences on the examples of as many sets as may be read, by version."""
    versions = _list_versions_to_read(matrix, pairs)
    # Another configuration or other code may grade answers otherwise.
    state = hashlib.sha256(f"{compute_code_version()}{task.config_text}".encode()).hexdigest()[:32]
    keys = {}
    for version in versions:
        first, second = pairs[version]
        keys[version] = f"compare:{first.pk}:{second.pk}:{state}"
    # One request to the cache for all sets of the page.
    cached_differences = cache.get_many(keys.values())
    differences, new_differences = {}, {}
    for version, key in keys.items():
        if key in cached_differences:
            differences[version] = cached_differences[key]
        else:
            new_differences[key] = differences[version] = measure_differences(
                task.config, pairs[version]
            )
    if new_differences:
        cache.set_many(new_differences, CACHE_SECONDS)
    return differences


def _list_versions_to_read(matrix: Matrix, pairs: Mapping[int, Pair]) -> list[int]:
    """Return the shared sets to read, in the board's order, with at most MAX_EXAMPLES in total."""
    remaining_examples, versions = MAX_EXAMPLES, []
    for board_set in matrix.sets:
        pair = pairs.get(board_set.version_id)
        if board_set.is_sealed:  # how often only one was right would reveal too much
            continue
        if pair and board_set.size <= remaining_examples and _have_predictions(pair):
            versions.append(board_set.version_id)
            remaining_examples -= board_set.size
    return versions


def measure_differences(config: TaskConfig, pair: Pair) -> SetDifferences:
    """Compare two models' answers to all examples of a set, read once in parallel.

    Only metrics that are means over examples are compared. Memory use is a few numbers per example.
    """
    metrics = _list_means(config)
    grades = {metric.name: (array("d"), array("d")) for metric in metrics}
    # Packed numbers, because a list of 100,000 objects takes many times the memory.
    contexts = array("q")
    indices_by_slice: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    values: dict[str, set[str]] = defaultdict(set)
    names = [component.name for component in config.context]
    for example_index, (row, *answers) in enumerate(iter_side_by_side(pair)):
        context = [row.inputs[name] for name in names if row.inputs.get(name)]
        # Examples without a context are independent, so each is its own cluster.
        contexts.append(hash(orjson.dumps(context or example_index)))
        for metric in metrics:
            for column, answer in zip(grades[metric.name], answers, strict=True):
                column.append(_grade_answer(metric, answer, row))
        for name in _iter_slices(row, values):
            indices_by_slice[name].append(example_index)
    clusters = None
    # If each cluster has one example, there are no clusters, and a sharper test applies.
    if len(set(contexts)) < len(contexts):
        clusters = np.asarray(contexts)
    tests = {}
    for name, (first, second) in grades.items():
        tests[name] = _test_difference(np.asarray(first), np.asarray(second), clusters)
    slice_tests: dict[str, Difference] = {}
    # Small slices would only make the correction for the others stricter.
    large_slices = {
        name
        for name, row_indices in indices_by_slice.items()
        if len(row_indices) >= MIN_SLICE_EXAMPLES
    }
    if config.metrics.main in grades:
        main_first, main_second = map(np.asarray, grades[config.metrics.main])
        for name in sorted(large_slices):
            row_indices = np.asarray(indices_by_slice[name])
            slice_clusters = None if clusters is None else clusters[row_indices]
            slice_tests[name] = _test_difference(
                main_first[row_indices], main_second[row_indices], slice_clusters
            )
    outcomes = None
    if metrics:
        metric = metrics[0]  # examples are also listed by it
        graded = [[metric.grade(grade) for grade in column] for column in grades[metric.name]]
        outcomes = count_outcomes(graded[0], graded[1])
    small_slices = len(indices_by_slice) - len(large_slices)
    return SetDifferences(tests, slice_tests, small_slices, outcomes)


def _test_difference(first: Any, second: Any, contexts: Any) -> Difference:
    """Test the difference of two arrays of grades. contexts: None for independent examples."""
    clusters = None if contexts is None else contexts.tolist()
    return compare_scores(first.tolist(), second.tolist(), clusters)


def _list_means(config: TaskConfig) -> list[Mean]:
    """Return the metrics that are means over examples."""
    return [metric for metric in iter_available_metrics(config) if isinstance(metric, Mean)]


def _grade_answer(metric: Mean, answer: Answer | None, row: SetRow) -> float:
    """Return an answer's contribution to a mean; for a mean of errors, lower is better."""
    statistic: float = metric.compute_statistic(None if answer is None else answer.value, row)
    return statistic


def _iter_slices(row: SetRow, values: dict[str, set[str]]) -> Iterator[str]:
    """Yield an example's slices, of at most MAX_SLICE_VALUES values for each field over all calls.

    values: the values seen so far, by field; new ones are added.
    """
    for field, tags in row.slices.items():
        # With long texts as tags, there could be any number of slices.
        for value in set(tags):
            if value in values[field] or len(values[field]) < MAX_SLICE_VALUES:
                values[field].add(value)
                yield f"{field}={value}"


def iter_side_by_side(pair: Pair) -> Iterator[tuple[SetRow, Answer | None, Answer | None]]:
    """Yield the examples of a set with both models' answers, in order, one at a time."""
    return zip(read_set_rows(pair[0].version), *map(read_answers, pair), strict=True)


def choose_set(
    pairs: Mapping[int, Pair], name: str, part: str = "", *, is_editor: bool
) -> ChosenSet:
    """Return the sets that the reader may see, and the runs on the one called `name`.

    If there is no such set, none is selected. Correct answers, and parts by who is right, are only
    for readers who may see the mistakes of both models.
    """
    runs = select_readable_runs(pairs, is_editor=is_editor)
    with_gold_sets = []
    for set_name, pair in runs.items():
        if may_see_gold(pair, is_editor=is_editor):
            with_gold_sets.append(set_name)
    if name not in runs:
        return ChosenSet(
            list(runs), "", None, with_gold=False, with_gold_sets=tuple(with_gold_sets)
        )
    with_gold = name in with_gold_sets
    return ChosenSet(
        list(runs),
        name,
        runs[name],
        with_gold,
        tuple(with_gold_sets),
        part=part if with_gold and part in OUTCOME_PARTS else "",
    )


def find_differing_examples(
    task: Task, chosen_set: ChosenSet, start: int, end: int
) -> list[ComparedExample]:
    """Return the examples on which the models differ, from index `start` to `end`.

    With gold, these are the examples that only one model answers correctly. Without gold, they are
    those with different answers, because the correct one would reveal the gold. Reads no further
    than needed.
    """
    if chosen_set.pair is None:
        return []
    examples = _iter_differing_examples(
        task.config, chosen_set.pair, with_gold=chosen_set.with_gold, part=chosen_set.part
    )
    return list(islice(examples, start, end))


def _iter_differing_examples(
    config: TaskConfig, pair: Pair, *, with_gold: bool, part: str = ""
) -> Iterator[ComparedExample]:
    """Yield the examples on which the models differ, or those of a part, in the set's order."""
    metric = next(iter(_list_means(config)), None)
    for row, first, second in iter_side_by_side(pair):
        grades = None
        if with_gold and metric:
            grade, other_grade = (
                metric.grade(_grade_answer(metric, answer, row)) for answer in (first, second)
            )
            grades = grade, other_grade
            is_different = grades[0] != grades[1]
            if part:
                is_different = name_outcome(*grades) == part
        else:
            is_different = _make_answer_comparable(first) != _make_answer_comparable(second)
        if is_different:
            yield _build_example(config, row, (first, second), grades)


def _make_answer_comparable(answer: Answer | None) -> Any:
    return None if answer is None else make_comparable(answer.value)


def _build_example(
    config: TaskConfig,
    row: SetRow,
    answers: tuple[Answer | None, Answer | None],
    grades: tuple[float, float] | None,
) -> ComparedExample:
    """Return an example with formatted answers."""
    fields = []
    for name, value in row.inputs.items():
        fields.append(
            (config.get_component(name).third_person_title, render_value(config, name, value))
        )
    gold = []
    if grades:
        gold = [config.display(config.answer_field, label) for label in row.gold]
    return ComparedExample(
        uid=row.uid,
        fields=fields,
        answers=(_describe_answer(config, answers[0]), _describe_answer(config, answers[1])),
        gold=gold,
        grades=grades,
    )


def _describe_answer(config: TaskConfig, answer: Answer | None) -> str:
    if answer is None:
        return _("no answer")
    return config.display(config.answer_field, answer.value)
