"""What a leaderboard rests on: every model's numbers on every set, in a few queries.

Who sees which models and sets is decided here and nowhere else. It loads numpy, so modules that
the web process loads at its start import it within functions.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.db.models import BooleanField, CharField, ExpressionWrapper, Max, Q
from django.db.models.functions import Cast
from django.utils import timezone
from numpy.typing import NDArray

from core.accounts.models import User
from core.text.names import visible
from evaluation.contract import Outcome
from evaluation.judges.custom_metrics.selectors import Column as Custom
from evaluation.judges.custom_metrics.selectors import columns_of
from evaluation.judges.llm_judges.selectors import MetricJudge, metric_judge
from evaluation.models import EvaluationRun, EvaluationSet, LlmScore, Score, Submission
from evaluation.runs.selectors import accepted, counting
from evaluation.sets.shown_scores import round_number
from evaluation.submissions.selectors import seen_by_all
from evaluation.submissions.teams.selectors import team_ids
from leaderboard.board.columns import (
    ASIDE,
    AXES,
    COSTS,
    ELSEWHERE,
    LESS_IS_BETTER,
    OF_RUNS,
    UNITS,
    drawn_metrics,
)
from leaderboard.board.query import MODES, Mode
from leaderboard.board.sets import BoardSet, shown_sets, with_detectable
from leaderboard.models import Board, Resample
from leaderboard.scoring.pools import Pool, locally_measured_pool, plain_pool, shipped_pool
from tasks.config.schema import CUSTOM_PREFIX, LLM_JUDGE
from tasks.models import Task
from tasks.permissions import Person, can_edit

DRAWS = 200
HALF_WIDTH = 1.96
"""Standard errors in half an interval of 95 %."""
RUN = Cast("run_id", CharField())
"""As text: to make an object of each id takes a third of the time."""
_READING = Lock()
"""When a board has changed, one thread reads it and the others wait for that."""
Access, Suite = EvaluationSet.Access, EvaluationRun.Suite
Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


class Model(NamedTuple):
    """A model as it is named on the board: before its day an anonymous one has only a number."""

    id: UUID
    name: str
    owner: str  # empty: none, or hidden
    team: str  # likewise
    kind: str  # of Submission.Kind
    is_published: bool
    is_anonymous: bool  # all but owner, team and the task's owners see a number for its name
    files: tuple[UUID, ...]  # the submissions that it stands of: itself, and further predictions


@dataclass(frozen=True)
class Frozen:
    """The exchange rates that a board keeps, and the names of the models they were read from."""

    rates: tuple[tuple[str, float | None], ...]
    pool: tuple[str, ...]
    is_sensitive: bool  # without one of them the others stand in another order


@dataclass(frozen=True, eq=False)
class Numbers:
    """Models × sets × metrics. Rates are percent, throughput examples/s, memory GiB; NaN: none.

    draws: counting sets × drawn metrics × models × DRAWS, each set's resamples the same for all
    models; 0 where the value is missing.
    """

    values: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]  # examples; of a suite those that have variants
    draws: NDArray[np.float32]
    in_the_loop: Marks  # models × sets: people wrote its examples against this very model
    warned: Marks  # models × sets: the run has a warning, such as missing answers
    outdated: Marks  # models × sets: measured on an older version only
    kept_back: Marks  # models × sets: measured, but its person was shown enough of a sealed set
    undefined: Marks  # sets × metrics: no model has it there, as the parts to compare are too small
    runners: NDArray[np.str_]  # models × sets; empty: not run
    runner: str = ""  # the one whose costs are compared
    is_provisional: bool = False  # some runs are not resampled yet
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)  # of `means.kept`


@dataclass(frozen=True)
class Matrix:
    """All that a board shows, before weights. The counting sets come first, then the others."""

    task: str
    main: str
    metrics: tuple[str, ...]
    models: tuple[Model, ...]
    sets: tuple[BoardSet, ...]
    numbers: Numbers
    frozen: Frozen | None  # None: no rates are frozen yet
    pool: Pool | None = None  # what anchors the scores; None: the task has none
    state: tuple[datetime | None, datetime | None] = (None, None)  # last run's end, last renewal
    judge: MetricJudge | None = None  # of `llm_judge`; None: that is none of the metrics
    customs: Mapping[str, Custom] = field(default_factory=dict)  # the owners' own, by their names
    language: str = "en"

    @property
    def has_weighted(self) -> bool:
        """Return whether sets count that the owners chose."""
        return any(one.access == Access.SCORING for one in self.counting)

    @property
    def counting(self) -> tuple[BoardSet, ...]:
        """Return the sets that have a weight."""
        return tuple(one for one in self.sets if one.counts)

    @property
    def provisional(self) -> tuple[BoardSet, ...]:
        """Return the counting sets that were taken while their rounds were still being judged."""
        return tuple(one for one in self.counting if one.is_provisional)

    @property
    def weighable(self) -> tuple[str, ...]:
        """Return the metrics that may count.

        Left out are the metric of a judge that is not calibrated, the owners' own that nobody has
        approved, and columns that only say more about another one.
        """
        left_out = {name for name, one in self.customs.items() if not one.number} | ASIDE
        left_out |= {LLM_JUDGE} if self.judge and not self.judge.ranks else set()
        return tuple(name for name in self.metrics if name not in left_out)

    @property
    def less_is_better(self) -> frozenset[str]:
        """Return the metrics of which less is better."""
        own = (name for name, one in self.customs.items() if not one.higher_is_better)
        return LESS_IS_BETTER.union(own)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Return the formulas by which the board can be scored, the usual one first."""
        return MODES if self.pool else MODES[1:]

    @property
    def drawn(self) -> tuple[str, ...]:
        """Return the metrics that are resampled, in the order of `numbers.draws`."""
        return drawn_metrics(self.metrics)


def score_matrix(task: Task, user: Person | None = None, *, is_frozen: bool = True) -> Matrix:
    """Return the public board's numbers; with a user, also what only they may see of it.

    is_frozen: use what the board has frozen, if anything.

    Accepted models are public as `seen_by_all` defines it. A user adds the unpublished models that
    belong to them or their teams, and an editor of the task all models, by their names. Hidden sets
    are in neither. The caller decides whether the task itself may be seen.

    Eight queries, or four while nothing has ended since the last call in this process. A user costs
    one more, custom metrics one, a judge three.
    """
    metrics, judge, customs = task.config.metrics, metric_judge(task), columns_of(task)
    models, sets = _models(task, user), shown_sets(task)
    board = Board.objects.filter(task=task).first()
    frozen = board if board and board.rates and is_frozen else None
    pool = pool_of(task, board)
    ended = EvaluationRun.objects.filter(version__in=[one.version_id for one in sets])
    newest = ended.aggregate(newest=Max("finished_at"))["newest"]
    with _READING:
        numbers = _numbers(
            tuple((model.files, model.is_published) for model in models),
            tuple((one.version_id, one.counts, one.size * one.is_sealed) for one in sets),
            (*metrics.names, *metrics.further),
            pool.runner if pool and pool.costs else frozen.runner if frozen else "",
            newest,
            board.renewed_to if board else None,
            (judge.pk, judge.newest) if judge else (None, None),
            tuple(customs.values()),
        )
    return Matrix(
        task=task.code,
        main=metrics.main,
        metrics=(*metrics.names, *metrics.further),
        models=models,
        sets=tuple(
            with_detectable(one, values, metrics.main)
            for one, values in zip(sets, numbers.values[:, :, 0].T, strict=True)
        ),
        numbers=numbers,
        frozen=Frozen((*frozen.rates.items(),), (*frozen.pool,), frozen.is_sensitive)
        if frozen
        else None,
        pool=pool,
        state=(newest, board.renewed_to if board else None),
        judge=judge,
        customs=customs,
        language=task.config.language,
    )


def pool_of(task: Task, board: Board | None) -> Pool:
    """Return the reference pool of an official task with its own main metric, else a plain pool.

    An official pool has the costs that were measured here, if they were.
    """
    config = task.config
    pool = shipped_pool(task.code)
    if pool and board and (here := board.anchor_costs):
        rows = json.dumps(here["rows"], sort_keys=True)
        pool = locally_measured_pool(task.code, here["version"], here["runner"], rows)
    if pool and pool.main == config.metrics.main:
        return pool
    return plain_pool(config.metrics.main, len(config.component(config.answer_field).labels))


def _models(task: Task, user: Person | None) -> tuple[Model, ...]:
    """Return the models in the order of submission, by which anonymous ones are numbered.

    Predictions of one person, team and name are one model: a file for each set.
    """
    is_editor = user is not None and can_edit(user, task)
    mine = Q(owner=user) | Q(team__in=team_ids(user)) if isinstance(user, User) else Q(pk__in=())
    found = accepted(task).annotate(
        is_public=ExpressionWrapper(seen_by_all(), BooleanField()),
        is_mine=ExpressionWrapper(mine, BooleanField()),
    )
    shown = Q() if is_editor else Q(is_public=True) | mine
    rows = found.filter(shown).order_by("queued_at", "pk").values_list(
        "pk", "name", "owner__annotator__pseudonym", "team__name", "owner", "team", "kind",
        "is_public", "is_mine", "anonymous_until", named=True,
    )  # fmt: skip
    files: dict[Any, list[Any]] = {}
    for row in rows:
        joins = row.kind == Submission.Kind.PREDICTIONS and row.owner
        files.setdefault((row.owner, row.team, row.name) if joins else row.pk, []).append(row)
    today, number, models = timezone.now().date(), 0, []
    for of_model in files.values():
        first, pks = of_model[0], tuple(row.pk for row in of_model)
        until = max((row.anonymous_until for row in of_model if row.anonymous_until), default=None)
        published = [row.is_public for row in of_model]
        number += any(published) and until is not None  # also after its day: the others keep theirs
        is_anonymous = until is not None and today < until
        team = visible(first.team__name or "")
        named = visible(first.name), first.owner__annotator__pseudonym or "", team
        if is_anonymous and not (is_editor or first.is_mine):
            named = f"Anonymous {number}", "", ""
        models.append(Model(pks[0], *named, first.kind, all(published), is_anonymous, pks))
    return _once(tuple(models))


@lru_cache(maxsize=8)
def _once(models: tuple[Model, ...]) -> tuple[Model, ...]:
    """Return the same objects for the same models, so that all cached boards share them."""
    return models


@lru_cache(maxsize=4)  # that of 1,000 models on 20 sets takes 60 MB
def _numbers(
    models: tuple[tuple[tuple[UUID, ...], bool], ...],
    versions: tuple[tuple[int, bool, int], ...],
    metrics: tuple[str, ...],
    runner: str,
    newest: datetime | None,
    renewed_to: datetime | None,
    judge: tuple[int | None, int | None],
    customs: tuple[Custom, ...],
) -> Numbers:
    """Read the numbers of models on versions of sets.

    models: for each model its files, and whether everybody sees it. versions: for each version its
    id, whether it counts, and the number of examples if it is sealed, else 0. runner: whose costs
    are compared, as long as it measured a public model. judge: its id, and the id of its last
    score. newest, renewed_to and the judge's last score only name the state that is read.
    Four queries, five with a judge.
    """
    table = _Table(models, versions, metrics, {one.key: one.name for one in customs})
    table.add_runs(runner)
    table.add_outdated()
    table.add_scores()
    if judge[0]:
        table.add_judged(judge[0])
    table.add_draws()
    return table.numbers


class _Table:
    """Numbers while they are read; each step is a query."""

    def __init__(
        self,
        models: Sequence[tuple[Sequence[UUID], bool]],
        versions: Sequence[tuple[int, bool, int]],
        metrics: tuple[str, ...],
        customs: Mapping[str, str],
    ) -> None:
        self._customs = customs  # columns by the name of their approved version's scores
        self._models = {pk: place for place, (files, _) in enumerate(models) for pk in files}
        self._versions = {pk: place for place, (pk, *_) in enumerate(versions)}
        self._sealed = [size for *_, size in versions]
        self._is_public = np.array([public for _, public in models], dtype=bool)
        self._metrics = metrics
        self._runs: dict[str, tuple[int, int, str]] = {}  # model, version, suite
        shape, of_examples = (len(models), len(versions)), len(drawn_metrics(metrics))
        cells = (*shape, len(metrics))
        counting_sets = sum(counts for _, counts, _ in versions)
        self.numbers = Numbers(
            values=np.full(cells, np.nan),
            low=np.full(cells, np.nan),
            high=np.full(cells, np.nan),
            n=np.zeros(cells, dtype=np.int64),
            draws=np.zeros((counting_sets, of_examples, len(models), DRAWS), dtype=np.float32),
            in_the_loop=np.zeros(shape, dtype=bool),
            warned=np.zeros(shape, dtype=bool),
            outdated=np.zeros(shape, dtype=bool),
            kept_back=np.zeros(shape, dtype=bool),
            undefined=np.zeros(cells[1:], dtype=bool),
            runners=np.full(shape, "", dtype="U20"),
        )

    def add_runs(self, runner: str) -> None:
        """Add what each counting run tells by itself. Costs of only one runner are kept."""
        numbers, costs = self.numbers, [*map(self._metrics.index, OF_RUNS)]
        runs = EvaluationRun.objects.filter(version__in=self._versions).order_by("queued_at")
        names: dict[str, None] = {}  # of runners, in the order in which they came
        rows = counting(runs).values_list(
            Cast("pk", CharField()), "submission", "version", "suite", "runner", "in_the_loop",
            "warnings", "is_shown", *OF_RUNS.values(),
        )  # fmt: skip
        for pk, submission, version, suite, *run in rows:
            if submission not in self._models:
                continue
            at = self._models[submission], self._versions[version]
            name, in_the_loop, warnings, is_shown, *measured = run
            if self._sealed[at[1]] and not is_shown:
                numbers.kept_back[at] = True
                continue
            self._runs[pk] = (*at, suite)
            if suite == Suite.PLAIN:
                numbers.runners[at] = name
                names[name] = None
                numbers.in_the_loop[at] = in_the_loop
                numbers.warned[at] = bool(warnings)
                numbers.values[at][costs] = np.array(measured, dtype=float) / UNITS
        usual = self._usual(runner, names, [self._metrics.index(name) for name in COSTS])
        for cost in costs:
            numbers.values[..., cost][numbers.runners != usual] = np.nan
        self.numbers = replace(numbers, runner=usual)

    def _usual(self, runner: str, names: Iterable[str], costs: Sequence[int]) -> str:
        """Choose the runner whose costs are compared.

        This is the requested one, or else the runner of most public models (the first at work if
        several have as many). A runner elsewhere counts only when no model ran here. So one more
        model does not take the costs of the others away, nor do many chat models.
        """
        has_costs = ~np.isnan(self.numbers.values[..., costs]).all(axis=2)
        measured = np.where(has_costs, self.numbers.runners, "")
        public = measured[self._is_public]
        runners = public if public.any() else measured  # one's own model, before any is published
        models = Counter(name for row in runners.tolist() for name in {*row} - {""})
        if runner in models:
            return runner
        here = [name for name in names if name in models and not name.startswith(ELSEWHERE)]
        found = here or [name for name in names if name in models]
        return max(found, key=models.__getitem__, default="")

    def add_outdated(self) -> None:
        """Mark models that were measured on an older version of a set and not on the newest."""
        older = EvaluationRun.objects.filter(
            version__evaluation_set__versions__in=self._versions,
            suite=Suite.PLAIN,
            outcome=Outcome.OK,
        ).exclude(version__in=self._versions)
        pairs = (
            older.order_by()
            .values_list("submission", "version__evaluation_set__versions")
            .distinct()
        )
        for submission, version in pairs:
            if submission in self._models:
                at = self._models[submission], self._versions[version]
                self.numbers.outdated[at] = not self.numbers.runners[at]

    def add_scores(self) -> None:
        """Add metrics over all examples, and the results of suites and groups."""
        scores = Score.objects.filter(
            run__version__in=self._versions,
            run__outcome=Outcome.OK,
            metric__in=[*drawn_metrics(self._metrics), *(name for _, name in AXES), *self._customs],
            slice="",
            kind="",
        )
        for row in scores.values_list(RUN, "metric", "n", "value", "low", "high"):
            self._put(*row)
        self.numbers.undefined[:] &= np.isnan(self.numbers.values).all(axis=0)

    def add_judged(self, judge: int) -> None:
        """Add the shares of answers that a language model as judge finds correct."""
        scores = LlmScore.objects.filter(judge=judge, run__version__in=self._versions)
        for run, *row in scores.values_list(RUN, "n", "value", "low", "high"):
            self._put(run, LLM_JUDGE, *row)

    def _put(self, run: str, metric: str, n: int, *number: float | None) -> None:
        """Store a score with its interval; on sealed sets rounded as it may be known."""
        numbers = self.numbers
        if cell := self._cell(run, metric):
            numbers.n[cell] = n
            numbers.undefined[cell[1:]] |= number[0] is None and metric not in self._metrics
            if size := self._sealed[cell[1]]:
                number = round_number(metric, number[0], min(n, size))
            percent = 100 * np.array(number, dtype=float)  # None becomes NaN
            if percent[1] == percent[2]:  # of an earlier version: few examples, all alike
                percent[1:] = np.nan
            numbers.values[cell], numbers.low[cell], numbers.high[cell] = percent

    def add_draws(self) -> None:
        """Add stored resamples, and draw normal ones where they are missing.

        Where there are no resamples, or all are alike, and on sealed sets, values are drawn by the
        interval, normal to each side. They are independent between models, so that differences look
        less sure than they are.
        """
        numbers, of_examples = self.numbers, drawn_metrics(self._metrics)
        draws = numbers.draws
        counts, columns = len(draws), [self._metrics.index(name) for name in of_examples]
        exact = [pk for pk, place in self._versions.items() if not self._sealed[place]]
        stored = Resample.objects.filter(run__version__in=exact, run__outcome=Outcome.OK)
        resampled = set()
        for run, metric, drawn_values in stored.values_list(RUN, "metric", "values"):
            if not metric.startswith(CUSTOM_PREFIX):
                resampled.add(run)
            cell = self._cell(run, metric)
            if drawn_values and cell and cell[1] < counts and cell[2] in columns:
                model, one, column = cell
                draws[one, columns.index(column), model] = np.frombuffer(drawn_values, dtype="<f4")
        np.multiply(draws, 100, out=draws)
        values, low, high = (
            some[:, :counts][..., columns].transpose(1, 2, 0)
            for some in (numbers.values, numbers.low, numbers.high)
        )
        *where, number = np.nonzero(np.isnan(draws))  # resamples on which it is not defined
        draws[*where, number] = np.nan_to_num(values[*where])
        flat = (draws == draws[..., :1]).all(axis=-1) & ~np.isnan(values)
        noise = np.random.default_rng(0).standard_normal((flat.sum(), DRAWS), dtype=np.float32)
        below, above = (np.nan_to_num(some[flat]) for some in (values - low, high - values))
        draws[flat] = values[flat][:, None] + noise / HALF_WIDTH * np.where(
            noise < 0, below[:, None], above[:, None]
        )
        wanted = {
            run for run, (_, one, _) in self._runs.items() if one < counts and not self._sealed[one]
        }
        self.numbers = replace(numbers, is_provisional=bool(wanted - resampled))

    def _cell(self, run: str, metric: str) -> tuple[int, int, int] | None:
        """Return where a run's metric is stored; None without a column or for another run."""
        model, one, suite = self._runs.get(run, (0, 0, ""))
        metric = self._customs.get(metric, metric)
        column = AXES.get((suite, metric), metric if suite == Suite.PLAIN else "")
        return (model, one, self._metrics.index(column)) if column in self._metrics else None
