"""Two models compared: on the same examples where these can be read, else on resamples.

At most MOST examples are read for a page, and what was found is kept in the cache: neither
predictions nor right answers ever change. It loads numpy (see `leaderboard.board.matrix`).
"""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import orjson
from django.core.cache import cache
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from evaluation.contract import Answer, SetRow
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import counting
from evaluation.scoring.bootstrap import MOST_VALUES
from evaluation.scoring.metrics import Metric
from evaluation.scoring.metrics.base import Mean, plain
from evaluation.sets.selectors import set_rows
from evaluation.submissions.visibility import Viewer, may_see_wrong
from leaderboard.board.bootstrap import available_metrics, read_answers
from leaderboard.board.cells import Cell
from leaderboard.board.columns import OF_RUNS
from leaderboard.board.intervals import correlations, difference_ends
from leaderboard.board.matrix import Matrix
from leaderboard.board.means import Draws
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import cell_of, code_version
from leaderboard.scoring.ranks import (
    ALPHA,
    EXTREME,
    NORMAL,
    Difference,
    benjamini_hochberg,
    difference,
    holm,
)
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import shown_value
from tasks.models import Task

MOST = 100_000
"""Examples that are read for a page; later and larger sets are compared on stored resamples."""
LEAST = 30
"""Examples of a slice that is tested."""
SLICES = 50
"""Slices that are listed."""
EXAMPLES = 20
"""On a page."""
SLICES_BY = "benjamini-hochberg"
SECONDS = 24 * 3600
LEAST_P = 1e-4
"""Below it a p is not written out."""
METHODS: Mapping[str, str] = {
    "mcnemar": gettext_noop("McNemar's exact test"),
    "student": gettext_noop("paired t test"),
    "sign-flips": gettext_noop("exact sign flips"),
    "resamples": gettext_noop("stored resamples"),
}
Pair = tuple[EvaluationRun, EvaluationRun]


@dataclass(frozen=True)
class ComparedMetric:
    """A metric on a set: both values, and first − second with an interval, in percent.

    found: the test on a scale of 0 to 1. adjusted: its p after `correction`; None: not tested.
    """

    set: BoardSet
    metric: str
    values: tuple[Cell, Cell]
    found: Difference | None
    adjusted: float | None = None
    slice: str = ""
    is_less_better: bool = False
    correction: str = "holm"

    @property
    def ps(self) -> tuple[str, str]:
        """Return the p of the test and the corrected p as people read them; "" when not tested."""
        if self.found is None or self.adjusted is None:
            return "", ""
        return p_text(self.found.p), p_text(self.adjusted)

    @property
    def cell(self) -> Cell:
        """Return the difference in points."""
        found = self.found
        return Cell(100 * found.value, 100 * found.low, 100 * found.high) if found else Cell(None)

    @property
    def better(self) -> str:
        """Return `first`, `second`, "" for no clear difference, or `untested`."""
        if self.found is None or self.adjusted is None:
            return "untested"
        if self.adjusted > ALPHA:
            return ""
        return "first" if (self.found.value > 0) != self.is_less_better else "second"

    @property
    def method(self) -> str:
        """Describe how it was tested."""
        if self.found is None:
            return ""
        words = _(METHODS[self.found.method])
        is_clustered = self.found.clusters < self.found.n
        return _("%(test)s, by context") % {"test": words} if is_clustered else words


@dataclass(frozen=True)
class SetDifferences:
    """What two models' answers to a set showed, by metric and of the main one by slice."""

    metrics: Mapping[str, Difference]
    slices: Mapping[str, Difference]
    small: int  # slices that have too few examples to be tested


@dataclass(frozen=True)
class Comparison:
    """Two models on all sets. unread: sets that are compared on stored resamples alone."""

    rows: tuple[ComparedMetric, ...]
    slices: tuple[ComparedMetric, ...]  # the surest first, at most SLICES
    tested_slices: int
    small_slices: int
    unread: tuple[str, ...]
    in_the_loop: tuple[tuple[int, str], ...]  # which of the two (0, 1) on which set

    def count(self, better: str) -> int:
        """Count the rows with this outcome."""
        return sum(row.better == better for row in self.rows)


@dataclass(frozen=True)
class ExamplePage:
    """The sets whose examples somebody may read, and a page of those of the chosen set."""

    readable_runs: list[str]
    set: str  # empty: none is chosen
    examples: list["Example"]
    with_gold: bool  # whether the reader may know what is right
    next: int | None  # the number of the next page


@dataclass(frozen=True)
class Example:
    """An example on which two models differ. gold: empty where it is not for the reader."""

    uid: str
    fields: list[tuple[str, str]]
    answers: tuple[str, str]
    gold: list[str]
    grades: tuple[float, float] | None


def p_text(p: float) -> str:
    """Return a p with two significant digits.

    >>> p_text(0.0412), p_text(0.5), p_text(1.0), p_text(1e-9)
    ('0.041', '0.5', '1', '< 0.0001')
    """
    return f"{p:.2g}" if p >= LEAST_P else f"< {LEAST_P:.4f}"


def shared_runs(matrix: Matrix, first: int, second: int) -> dict[int, Pair]:
    """Return the runs of two models (by their places) on the sets both were run on, by version."""
    sides = {pk: side for side in (first, second) for pk in matrix.models[side].files}
    versions = [one.version_id for one in matrix.sets]
    found = counting(
        EvaluationRun.objects.filter(
            submission__in=sides, version__in=versions, suite=EvaluationRun.Suite.PLAIN
        )
    ).select_related("version__evaluation_set", "version__dataset")
    found = found.defer("log", "version__dataset__numbers")
    runs = {(sides[run.submission_id], run.version_id): run for run in found}
    return {
        version: (runs[first, version], runs[second, version])
        for version in versions
        if (first, version) in runs and (second, version) in runs
    }


def readable_runs(pairs: Mapping[int, Pair], *, is_editor: bool) -> dict[str, Pair]:
    """Return the runs whose examples the reader may see, by the name of the set.

    Everybody may read inputs that may leave the site; the task's editors read them all.
    """
    found = {both[0].version.evaluation_set.name: both for both in pairs.values()}
    return {
        name: both
        for name, both in found.items()
        if (is_editor or both[0].version.evaluation_set.may_leave)
        and both[0].version.size <= MOST
        and all(run.predictions for run in both)
    }


def tells_gold(pair: Pair, *, is_editor: bool) -> bool:
    """Return whether the reader may see right answers: if both models' mistakes are shown."""
    viewer = Viewer(is_owner=False, is_task_owner=is_editor, may_take=True)
    return all(may_see_wrong(run, viewer) for run in pair)


def compare_models(
    task: Task, matrix: Matrix, first: int, second: int, pairs: Mapping[int, Pair]
) -> Comparison:
    """Compare two models: rows with Holm's correction, slices with Benjamini and Hochberg's.

    pairs: their `runs_of`.
    """
    read = _read(task, matrix, pairs)
    rows = [
        ComparedMetric(one, metric, values, found, is_less_better=metric in matrix.less_is_better)
        for place, one in enumerate(matrix.sets)
        if one.version_id in pairs
        for metric in matrix.metrics
        if metric not in OF_RUNS
        for values in [_cells(matrix, (first, second), place, metric)]
        for found in [_difference(matrix, (first, second), place, metric, read.get(one.version_id))]
        if found or any(cell.value is not None for cell in values)
    ]
    slices = [
        ComparedMetric(
            one, matrix.main, (Cell(None), Cell(None)), found, slice=name, correction=SLICES_BY
        )
        for one in matrix.sets
        if one.version_id in read
        for name, found in read[one.version_id].slices.items()
    ]
    shown = sorted(_adjusted(slices, benjamini_hochberg), key=lambda row: row.adjusted or 0.0)
    return Comparison(
        rows=tuple(_adjusted(rows, holm)),
        slices=tuple(shown[:SLICES]),
        tested_slices=len(slices),
        small_slices=sum(one.small for one in read.values()),
        unread=tuple(
            one.name
            for one in matrix.sets
            if one.version_id in pairs and one.version_id not in read
        ),
        in_the_loop=tuple(
            (which, one.name)
            for place, one in enumerate(matrix.sets)
            for which, at in enumerate((first, second))
            if matrix.numbers.in_the_loop[at, place]
        ),
    )


def _adjusted(rows: Sequence[ComparedMetric], adjust: Any) -> Iterator[ComparedMetric]:
    """Yield the rows, with a corrected p where they were tested."""
    ps = iter(adjust([row.found.p for row in rows if row.found]))
    for row in rows:
        yield replace(row, adjusted=next(ps)) if row.found else row


def _cells(matrix: Matrix, models: tuple[int, int], place: int, metric: str) -> tuple[Cell, Cell]:
    one, other = (cell_of(matrix, at, place, metric) for at in models)
    return one, other


def _difference(
    matrix: Matrix, models: tuple[int, int], place: int, metric: str, read: SetDifferences | None
) -> Difference | None:
    """Return the difference on examples, else on resamples; None when there is nothing to compare.

    Scores of a judge that is not calibrated are not tested.
    """
    if metric not in matrix.weighable:
        return None
    if read and metric in read.metrics:
        return read.metrics[metric]
    numbers, column = matrix.numbers, matrix.metrics.index(metric)
    if place >= len(numbers.draws):
        return None
    draws = numbers.draws[place, matrix.drawn.index(metric)]
    n = min(int(numbers.n[at, place, column]) for at in models)
    return on_resamples(
        _cells(matrix, models, place, metric), (draws[models[0]], draws[models[1]]), n
    )


def on_resamples(
    values: tuple[Cell, Cell], draws: tuple[Draws, Draws], n: int
) -> Difference | None:
    """Return the difference of two numbers in percent, with an interval from theirs and the draws.

    None when one has no interval. n: examples. The p is that of the error for which the interval
    ends where it does on the side of zero.
    """
    if any(None in cell for cell in values):
        return None
    (one, *one_ends), (other, *other_ends) = (np.array(values, dtype=float) / 100).tolist()
    shared = float(correlations(np.stack(draws)[:, None])[0, 1, 0])
    low, high = difference_ends((one, other), (one_ends, other_ends), shared)
    value = one - other
    error = (value - low if value > 0 else high - value) / EXTREME
    tail = NORMAL.cdf(-abs(value) / error) if error else 0.5 * (value == 0)
    # No flip of signs is rarer than this, however small the error looks.
    p = max(2 * tail, 2.0 ** (1 - max(1, n)))
    return Difference(value, low, high, p, n, n, "resamples")


def _read(task: Task, matrix: Matrix, pairs: Mapping[int, Pair]) -> dict[int, SetDifferences]:
    """Return what the examples of as many sets as may be read show, by version."""
    left, versions = MOST, []
    for one in matrix.sets:
        pair = pairs.get(one.version_id)
        if one.is_sealed:  # how often one alone was right is more than is shown
            continue
        if pair and one.size <= left and all(run.predictions for run in pair):
            versions.append(one.version_id)
            left -= one.size
    state = hashlib.sha256(f"{code_version()}{task.config_text}".encode()).hexdigest()[:32]
    keys = {
        version: f"compare:{pairs[version][0].pk}:{pairs[version][1].pk}:{state}"
        for version in versions
    }
    kept = cache.get_many(keys.values())
    fresh = {
        version: measure_differences(task.config, pairs[version])
        for version, key in keys.items()
        if key not in kept
    }
    if fresh:
        cache.set_many({keys[version]: found for version, found in fresh.items()}, SECONDS)
    return {version: fresh.get(version) or kept[key] for version, key in keys.items()}


def measure_differences(config: TaskConfig, pair: Pair) -> SetDifferences:
    """Compare two models' answers to all examples of a set, read once side by side.

    Only metrics that are means over examples are compared. Memory holds some numbers per example.
    """
    metrics = _means(config)
    grades = {metric.name: (array("d"), array("d")) for metric in metrics}
    contexts = array("q")
    parts: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    values: dict[str, set[str]] = defaultdict(set)
    names = [component.name for component in config.context]
    for place, (row, *answers) in enumerate(side_by_side(pair)):
        given = [row.inputs[name] for name in names if row.inputs.get(name)]
        contexts.append(hash(orjson.dumps(given or place)))  # without a context each is its own
        for metric in metrics:
            for column, answer in zip(grades[metric.name], answers, strict=True):
                column.append(_graded(metric, answer, row))
        for part in _parts(row, values):
            parts[part].append(place)
    clusters = np.asarray(contexts) if len(set(contexts)) < len(contexts) else None
    held = {name: (np.asarray(one), np.asarray(other)) for name, (one, other) in grades.items()}
    main = held.get(config.metrics.main)
    large = {name: np.asarray(places) for name, places in parts.items() if len(places) >= LEAST}
    return SetDifferences(
        metrics={name: _tested(*both, clusters) for name, both in held.items()},
        slices={
            name: _tested(
                main[0][places], main[1][places], None if clusters is None else clusters[places]
            )
            for name, places in sorted(large.items())
        }
        if main
        else {},
        small=len(parts) - len(large),
    )


def _tested(first: Any, second: Any, contexts: Any) -> Difference:
    clusters = None if contexts is None else contexts.tolist()
    return difference(first.tolist(), second.tolist(), clusters)


def _means(config: TaskConfig) -> list[Metric]:
    return [metric for metric in available_metrics(config) if isinstance(metric, Mean)]


def _graded(metric: Metric, answer: Answer | None, row: SetRow) -> float:
    return metric.graded(metric.statistic(None if answer is None else answer.value, row))


def _parts(row: SetRow, values: dict[str, set[str]]) -> Iterator[str]:
    """Yield the slices of an example, only the first MOST_VALUES values of each field."""
    for field, tags in row.slices.items():
        for value in set(tags):
            if value in values[field] or len(values[field]) < MOST_VALUES:
                values[field].add(value)
                yield f"{field}={value}"


def side_by_side(pair: Pair) -> Iterator[tuple[SetRow, Answer | None, Answer | None]]:
    """Yield the examples of a set with both models' answers, in order. Streams."""
    return zip(set_rows(pair[0].version), *map(read_answers, pair), strict=True)


def example_page(
    task: Task, pairs: Mapping[int, Pair], name: str, page: int, *, is_editor: bool
) -> ExamplePage:
    """Return a page of examples of the set with this name, as far as the reader may see them.

    Right answers are only for readers who may see the mistakes of both models.
    """
    runs = readable_runs(pairs, is_editor=is_editor)
    if name not in runs:
        return ExamplePage([*runs], "", [], with_gold=False, next=None)
    with_gold = tells_gold(runs[name], is_editor=is_editor)
    found = differing_examples(task, runs[name], page, with_gold=with_gold)
    more = page + 1 if len(found) > EXAMPLES else None
    return ExamplePage([*runs], name, found[:EXAMPLES], with_gold=with_gold, next=more)


def differing_examples(task: Task, pair: Pair, page: int, *, with_gold: bool) -> list[Example]:
    """Return a page of examples on which the models differ, and one more if there is one.

    With gold these are the examples that only one of them has right. Without it, those with
    different answers, because which one is right would tell the gold. Reads no further than needed.
    """
    config = task.config
    metric = next(iter(_means(config)), None)
    found = (
        _example(config, row, (first, second), grades)
        for row, first, second in side_by_side(pair)
        for grades in [_grades(metric, row, (first, second)) if with_gold else None]
        if (grades[0] != grades[1] if grades else _said(first) != _said(second))
    )
    start = (page - 1) * EXAMPLES
    return list(islice(found, start, start + EXAMPLES + 1))


def _grades(
    metric: Metric | None, row: SetRow, answers: tuple[Answer | None, Answer | None]
) -> tuple[float, float] | None:
    if metric is None:
        return None
    return _graded(metric, answers[0], row), _graded(metric, answers[1], row)


def _said(answer: Answer | None) -> Any:
    return None if answer is None else plain(answer.value)


def _example(
    config: TaskConfig,
    row: SetRow,
    answers: tuple[Answer | None, Answer | None],
    grades: tuple[float, float] | None,
) -> Example:
    def words(answer: Answer | None) -> str:
        if answer is None:
            return _("no answer")
        return config.display(config.answer_field, answer.value)

    return Example(
        uid=row.uid,
        fields=[
            (config.component(name).others_title, shown_value(config, name, value))
            for name, value in row.inputs.items()
        ],
        answers=(words(answers[0]), words(answers[1])),
        gold=[config.display(config.answer_field, one) for one in row.gold] if grades else [],
        grades=grades,
    )
