"""The numbers behind a leaderboard: every model on every set, read in a few queries.

Only this module decides who sees which models and sets. It loads numpy, so modules that the web
process loads at its start import it within functions.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
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
from core.text.names import remove_invisible_characters
from evaluation.contract import Outcome
from evaluation.judges.custom_metrics.selectors import CustomMetricColumn as Custom
from evaluation.judges.custom_metrics.selectors import find_custom_columns
from evaluation.judges.llm_judges.selectors import MetricJudge, find_metric_judge
from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, EvaluationSet, LlmScore, Score
from evaluation.runs.selectors import filter_counting_runs, find_accepted_models
from evaluation.scoring.worst import COLUMN_BY_SUITE
from evaluation.submissions.selectors import build_public_condition
from evaluation.submissions.teams.selectors import select_team_ids
from evaluation.test_sets.shown_scores import round_number
from leaderboard.board.columns import (
    COST_METRICS,
    DETAIL_METRICS,
    EXTERNAL_RUNNER_PREFIXES,
    LOWER_IS_BETTER_METRICS,
    RUN_COLUMNS,
    SIZE_UNITS,
    select_drawn_metrics,
)
from leaderboard.board.query import MODES, Mode
from leaderboard.board.sets import BoardSet, add_detectable_difference, list_shown_sets
from leaderboard.models import Board, Resample
from leaderboard.ranking.pools import Pool, build_local_pool, build_plain_pool, read_shipped_pool
from tasks.config.schema import CUSTOM_PREFIX, ERROR_METRICS, LLM_JUDGE
from tasks.models import Task
from tasks.permissions import Person, can_edit

DRAW_COUNT = 200
NORMAL_QUANTILE = 1.96
"""The number of standard errors in half a 95% interval."""
RUN_ID = Cast("run_id", CharField())
"""A run's id as text, because making UUID objects would take a third of the time."""
_READ_LOCK = Lock()
"""Held by the one thread that reads a changed board, while others wait for its result."""
Access, Suite = EvaluationSet.Access, EvaluationRun.Suite
Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


class BoardModel(NamedTuple):
    """A model as the board names it; an anonymous model has only a number until its date."""

    id: UUID
    name: str
    owner: str  # empty if there is none, or it is hidden
    team: str  # also empty if hidden
    kind: str  # one of `evaluation.kinds`
    is_published: bool
    is_anonymous: bool  # only its owner, its team and the task's owners see its name
    files: tuple[UUID, ...]  # its submissions: itself, and further predictions


@dataclass(frozen=True)
class FrozenRates:
    """The frozen exchange rates of a board, and the names of the models in their pool."""

    rates: tuple[tuple[str, float | None], ...]
    pool: tuple[str, ...]
    is_sensitive: bool  # without one of the models, the others change their order


@dataclass(frozen=True, eq=False)
class Numbers:
    """Models × sets × metrics: rates in percent, throughput in examples/s, memory in GiB, or NaN.

    draws: counting sets × drawn metrics × models × DRAW_COUNT; 0 if the value is missing. Each
    set's resamples are the same for all models.
    """

    values: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]  # numbers of examples; in a suite, of those with variants
    draws: NDArray[np.float32]
    in_the_loop: Marks  # models × sets: people wrote the examples against this model
    warned: Marks  # models × sets: the run has a warning, such as missing answers
    outdated: Marks  # models × sets: measured on an older version only
    kept_back: Marks  # models × sets: measured on a sealed set of which its person has seen enough
    undefined: Marks  # sets × metrics: for all models, because the compared parts are small
    runners: NDArray[np.str_]  # models × sets; empty: not run
    runner: str = ""  # the runner whose costs are compared
    is_provisional: bool = False  # some runs are not resampled yet
    # The cache of `means.memoise`.
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)


@dataclass(frozen=True)
class Matrix:
    """The data of a board before weighting. The counting sets come first."""

    task: str
    main: str
    metrics: tuple[str, ...]
    models: tuple[BoardModel, ...]
    sets: tuple[BoardSet, ...]
    numbers: Numbers
    frozen: FrozenRates | None  # None: no rates are frozen yet
    pool: Pool | None = None  # the pool that anchors the scores; None: the task has none
    state: tuple[datetime | None, datetime | None] = (None, None)  # last run's end, last renewal
    judge: MetricJudge | None = None  # of `llm_judge`; None if that metric is missing
    customs: Mapping[str, Custom] = field(default_factory=dict)  # the owners' own, by their names
    language: str = "en"

    @property
    def has_weighted_set(self) -> bool:
        """Return whether a counting set was marked for scoring by the owners."""
        return any(each.access == Access.SCORING for each in self.counting_sets)

    @property
    def counting_sets(self) -> tuple[BoardSet, ...]:
        """Return the sets that count toward scores."""
        return tuple(each for each in self.sets if each.counts)

    @property
    def provisional_sets(self) -> tuple[BoardSet, ...]:
        """Return the counting sets that were taken while their rounds were still being judged."""
        return tuple(each for each in self.counting_sets if each.is_provisional)

    @property
    def weighable_metrics(self) -> tuple[str, ...]:
        """Return the metrics that may count.

        Excludes an uncalibrated judge's metric, owners' metrics without an approved version, and
        columns that only detail another metric.
        """
        excluded_names = set(DETAIL_METRICS)
        for name, custom in self.customs.items():
            if not custom.number:  # the number of its approved version
                excluded_names.add(name)
        if self.judge and not self.judge.counts_in_ranking:
            excluded_names.add(LLM_JUDGE)
        return tuple(name for name in self.metrics if name not in excluded_names)

    @property
    def less_is_better(self) -> frozenset[str]:
        """Return the metrics for which lower is better."""
        return LOWER_IS_BETTER_METRICS | self.error_metrics

    @property
    def error_metrics(self) -> frozenset[str]:
        """Return the metrics of answers that count errors: 0 is perfect and 100 % is useless."""
        names = {name for name in self.metrics if name in ERROR_METRICS}
        for name, custom in self.customs.items():
            if not custom.higher_is_better:
                names.add(name)
        return frozenset(names)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Return the formulas that the board can be scored by, the default first."""
        return MODES if self.pool else MODES[1:]

    @property
    def drawn_metrics(self) -> tuple[str, ...]:
        """Return the metrics that are resampled, in the order of `numbers.draws`."""
        return select_drawn_metrics(self.metrics)


def read_matrix(task: Task, user: Person | None = None, *, is_frozen: bool = True) -> Matrix:
    """Return the public board's matrix; with a user, include models that only they may see.

    is_frozen: use the board's frozen exchange rates and pool, if any.

    Accepted models are public as `build_public_condition` defines. With a user, the unpublished
    models of the user and their teams are added. Editors of the task get all accepted models, with
    their names. Hidden sets are never included. The caller checks who may see the task itself.

    Eight queries, or four if no run has ended since the last call in this process. A user adds one,
    custom metrics one, a judge three.
    """
    config, judge, customs = task.config, find_metric_judge(task), find_custom_columns(task)
    metrics = (*config.metrics.names, *config.metrics.detail_columns)
    models, sets = _read_models(task, user), list_shown_sets(task)
    board = Board.objects.filter(task=task).first()
    pool = choose_pool(task, board)
    # Freezing needs the numbers as if nothing were frozen yet.
    rates_board = board if board and board.rates and is_frozen else None
    runner = ""
    if pool and pool.cost_version:
        runner = pool.runner
    elif rates_board:
        runner = rates_board.runner
    ended_runs = EvaluationRun.objects.filter(
        version__in=[board_set.version_id for board_set in sets]
    )
    newest_finished_at = ended_runs.aggregate(newest=Max("finished_at"))["newest"]
    renewed_to = board.renewed_to if board else None
    # One thread computes it, and the others then find it in the cache.
    with _READ_LOCK:
        # The arguments are the cache key: they include every state that changes a number.
        numbers = _read_numbers(
            tuple((model.files, model.is_published) for model in models),
            tuple(
                (board_set.version_id, board_set.counts, board_set.size * board_set.is_sealed)
                for board_set in sets
            ),
            metrics,
            runner,
            newest_finished_at,
            renewed_to,
            (judge.pk, judge.newest) if judge else (None, None),
            tuple(customs.values()),
        )
    # The main metric is the first, so its values on each set are at index 0.
    sets_with_values = zip(sets, numbers.values[:, :, 0].T, strict=True)
    return Matrix(
        task=task.code,
        main=config.metrics.main,
        metrics=metrics,
        models=models,
        sets=tuple(
            add_detectable_difference(board_set, main_values, config.metrics.main)
            for board_set, main_values in sets_with_values
        ),
        numbers=numbers,
        frozen=_read_frozen(rates_board),
        pool=pool,
        state=(newest_finished_at, renewed_to),
        judge=judge,
        customs=customs,
        language=config.language,
    )


def _read_frozen(board: Board | None) -> FrozenRates | None:
    """Return the frozen rates of a board; None without a board."""
    if board is None:
        return None
    return FrozenRates(tuple(board.rates.items()), tuple(board.pool), board.is_sensitive)


def choose_pool(task: Task, board: Board | None) -> Pool:
    """Return the reference pool of an official task, or a plain pool for any other task.

    Plain, too, if the main metric differs. A reference pool has the costs measured here.
    """
    config = task.config
    pool = read_shipped_pool(task.code)
    if pool and board and board.anchor_costs:
        costs = board.anchor_costs
        rows = json.dumps(costs["rows"], sort_keys=True)
        pool = build_local_pool(task.code, costs["version"], costs["runner"], rows)
    if pool and pool.main == config.metrics.main:
        return pool
    return build_plain_pool(
        config.metrics.main, len(config.get_component(config.answer_field).labels)
    )


def _read_models(task: Task, user: Person | None) -> tuple[BoardModel, ...]:
    """Return the models in the order of submission; anonymous models are numbered in this order.

    Predictions with the same owner, team and name form one model, with a file for each set.
    """
    is_editor = user is not None and can_edit(user, task)
    is_own = Q(pk__in=())  # matches no rows
    if isinstance(user, User):
        is_own = Q(owner=user) | Q(team__in=select_team_ids(user))
    submissions = find_accepted_models(task).annotate(
        is_public=ExpressionWrapper(build_public_condition(), BooleanField()),
        is_mine=ExpressionWrapper(is_own, BooleanField()),
    )
    if not is_editor:
        submissions = submissions.filter(Q(is_public=True) | is_own)
    rows = submissions.order_by("queued_at", "pk").values_list(
        "pk", "name", "owner__annotator__pseudonym", "team__name", "owner", "team", "kind",
        "is_public", "is_mine", "anonymous_until", named=True,
    )  # fmt: skip
    # Uploaded predictions have a file for each set, so several submissions are one model.
    runs_by_file: dict[Any, list[Any]] = {}
    for row in rows:
        is_joined = KINDS[row.kind].is_file_of_answers and row.owner
        # Only predictions come file by file; other submissions are models of their own.
        key = (row.owner, row.team, row.name) if is_joined else row.pk
        runs_by_file.setdefault(key, []).append(row)
    number, models = 0, []
    for model_rows in runs_by_file.values():
        anonymous_until = _find_anonymous_until(model_rows)
        # Published models keep their numbers after that day, so that others' do not change.
        if anonymous_until is not None and any(row.is_public for row in model_rows):
            number += 1
        models.append(_build_model(model_rows, anonymous_until, number, is_editor=is_editor))
    return _share_models(tuple(models))


def _find_anonymous_until(rows: Sequence[Any]) -> date | None:
    """Return the latest date until which one of a model's submissions is anonymous, or None."""
    return max((row.anonymous_until for row in rows if row.anonymous_until), default=None)


def _build_model(
    rows: Sequence[Any], anonymous_until: date | None, number: int, *, is_editor: bool
) -> BoardModel:
    """Return the model of these submissions as readers see it. number: while it is anonymous."""
    first_row = rows[0]
    is_anonymous = anonymous_until is not None and timezone.now().date() < anonymous_until
    name, owner, team = (
        remove_invisible_characters(first_row.name),
        first_row.owner__annotator__pseudonym or "",
        "",
    )
    if first_row.team__name:
        team = remove_invisible_characters(first_row.team__name)
    if is_anonymous and not (is_editor or first_row.is_mine):
        name, owner, team = f"Anonymous {number}", "", ""
    return BoardModel(
        id=first_row.pk,
        name=name,
        owner=owner,
        team=team,
        kind=first_row.kind,
        is_published=all(row.is_public for row in rows),
        is_anonymous=is_anonymous,
        files=tuple(row.pk for row in rows),
    )


@lru_cache(maxsize=8)
def _share_models(models: tuple[BoardModel, ...]) -> tuple[BoardModel, ...]:
    """Return the first equal tuple of models, so that all cached boards share one object."""
    return models


@lru_cache(maxsize=4)  # a matrix of 1,000 models on 20 sets takes 60 MB
def _read_numbers(
    models: tuple[tuple[tuple[UUID, ...], bool], ...],
    versions: tuple[tuple[int, bool, int], ...],
    metrics: tuple[str, ...],
    runner: str,
    newest_finished_at: datetime | None,
    renewed_to: datetime | None,
    judge: tuple[int | None, int | None],
    customs: tuple[Custom, ...],
) -> Numbers:
    """Read the numbers of models on versions of sets.

    models: the file ids of each model, and whether the model is public. versions: for each version
    its id, whether it counts, and the number of examples if it is sealed, else 0. runner: the
    preferred runner, whose costs are compared if it measured a public model. judge: its id, and the
    id of its last score. newest_finished_at, renewed_to and the judge's last score serve only as
    cache keys. Four queries, five with a judge.
    """
    table = _NumbersReader(
        models, versions, metrics, {custom.key: custom.name for custom in customs}
    )
    table.add_runs(runner)
    table.mark_outdated()
    table.add_scores()
    if judge[0]:
        table.add_judged_shares(judge[0])
    table.add_draws()
    return table.numbers


class _NumbersReader:
    """A reader of a board's numbers. Each `add_` method, and `mark_outdated`, runs one query.

    runs: by run id, the indices of the model and the version, and the suite.
    """

    def __init__(
        self,
        models: Sequence[tuple[Sequence[UUID], bool]],
        versions: Sequence[tuple[int, bool, int]],
        metrics: tuple[str, ...],
        customs: Mapping[str, str],
    ) -> None:
        self._customs = customs  # columns by the name of their approved version's scores
        self._models: dict[UUID, int] = {}
        for set_index, (runs_by_file, _) in enumerate(models):
            self._models |= dict.fromkeys(runs_by_file, set_index)
        self._versions = {pk: set_index for set_index, (pk, *_) in enumerate(versions)}
        self._sealed = [size for *_, size in versions]
        # The usual runner is chosen by public models, so that all readers compare the same costs.
        self._is_public = np.array([is_public for _, is_public in models], dtype=bool)
        self._metrics = metrics
        self._runs: dict[str, tuple[int, int, str]] = {}
        shape, drawn_count = (len(models), len(versions)), len(select_drawn_metrics(metrics))
        cells = (*shape, len(metrics))
        counting_sets = sum(counts for _, counts, _ in versions)
        self.numbers = Numbers(
            values=np.full(cells, np.nan),
            low=np.full(cells, np.nan),
            high=np.full(cells, np.nan),
            n=np.zeros(cells, dtype=np.int64),
            draws=np.zeros((counting_sets, drawn_count, len(models), DRAW_COUNT), dtype=np.float32),
            in_the_loop=np.zeros(shape, dtype=bool),
            warned=np.zeros(shape, dtype=bool),
            outdated=np.zeros(shape, dtype=bool),
            kept_back=np.zeros(shape, dtype=bool),
            undefined=np.zeros(cells[1:], dtype=bool),
            runners=np.full(shape, "", dtype="U20"),
        )

    def add_runs(self, runner: str) -> None:
        """Add the flags and costs of each counting run. Costs are taken from only one runner."""
        numbers, costs = self.numbers, [self._metrics.index(name) for name in RUN_COLUMNS]
        runs = EvaluationRun.objects.filter(version__in=self._versions).order_by("queued_at")
        runners: dict[str, None] = {}  # in the order of their first run
        rows = filter_counting_runs(runs).values_list(
            Cast("pk", CharField()), "submission", "version", "suite", "runner", "in_the_loop",
            "warnings", "is_shown", *RUN_COLUMNS.values(),
        )  # fmt: skip
        for pk, submission, version, suite, *run in rows:
            if submission not in self._models:
                continue  # this reader may not see it
            model, set_index = self._models[submission], self._versions[version]
            run_by, in_the_loop, warnings, is_shown, *costs_of_run = run
            if self._sealed[set_index] and not is_shown:
                numbers.kept_back[model, set_index] = True
                continue
            self._runs[pk] = model, set_index, suite
            # Speed and memory are those of a plain run, because a suite has other examples.
            if suite == Suite.PLAIN:
                numbers.runners[model, set_index] = run_by
                runners[run_by] = None
                numbers.in_the_loop[model, set_index] = in_the_loop
                numbers.warned[model, set_index] = bool(warnings)
                numbers.values[model, set_index, costs] = (
                    np.array(costs_of_run, dtype=float) / SIZE_UNITS
                )
        cost_columns = [self._metrics.index(name) for name in COST_METRICS]
        usual_runner = self._choose_runner(runner, runners, cost_columns)
        # Speed and memory of different machines are not comparable, so only one runner's are shown.
        for cost in costs:
            numbers.values[..., cost][numbers.runners != usual_runner] = np.nan
        self.numbers = replace(numbers, runner=usual_runner)

    def _choose_runner(self, runner: str, names: Iterable[str], costs: Sequence[int]) -> str:
        """Choose the runner whose costs are compared.

        This is the requested runner, or else the one that ran the most public models (ties go to
        the earliest). External runners count only if no model ran here. So a new model, or many
        chat models, cannot remove other models' costs from the comparison.
        """
        # A run that measured nothing must not choose the runner.
        has_costs = ~np.isnan(self.numbers.values[..., costs]).all(axis=2)
        runners = np.where(has_costs, self.numbers.runners, "")  # models × sets
        public_runners = runners[self._is_public]
        if public_runners.any():  # otherwise it is the reader's own model, before any is published
            runners = public_runners
        model_counts: Counter[str] = Counter()
        for model_runners in runners.tolist():
            model_counts.update(set(model_runners) - {""})
        if runner in model_counts:
            return runner
        candidates = [name for name in names if name in model_counts]
        local_names = [name for name in candidates if not name.startswith(EXTERNAL_RUNNER_PREFIXES)]
        return max(local_names or candidates, key=model_counts.__getitem__, default="")

    def mark_outdated(self) -> None:
        """Mark models that were measured on an older version of a set but not on the newest."""
        older_runs = EvaluationRun.objects.filter(
            version__evaluation_set__versions__in=self._versions,
            suite=Suite.PLAIN,
            outcome=Outcome.OK,
            # Runs on the newest versions were read above.
        ).exclude(version__in=self._versions)
        pairs = (
            # Without the default order, whose column would make rows distinct.
            older_runs.order_by()
            .values_list("submission", "version__evaluation_set__versions")
            .distinct()
        )
        # A model that was also run on the newest version is not outdated.
        for submission, version in pairs:
            if submission in self._models:
                cell = self._models[submission], self._versions[version]
                self.numbers.outdated[cell] = not self.numbers.runners[cell]

    def add_scores(self) -> None:
        """Add metrics over all examples, and the results of suites and groups."""
        names = set(select_drawn_metrics(self._metrics)).union(self._customs)
        names.update(score for _suite, score in COLUMN_BY_SUITE)
        # Totals only, because the board has no columns for slices and kinds.
        scores = Score.objects.filter(
            run__version__in=self._versions,
            run__outcome=Outcome.OK,
            metric__in=names,
            slice="",
            kind="",
        )
        for row in scores.values_list(RUN_ID, "metric", "n", "value", "low", "high"):
            self._store_score(*row)
        self.numbers.undefined[:] &= np.isnan(self.numbers.values).all(axis=0)

    def add_judged_shares(self, judge: int) -> None:
        """Add the shares of answers that the judging language model finds correct."""
        scores = LlmScore.objects.filter(judge=judge, run__version__in=self._versions)
        for run, *row in scores.values_list(RUN_ID, "n", "value", "low", "high"):
            self._store_score(run, LLM_JUDGE, *row)

    def _store_score(self, run: str, metric: str, n: int, *number: float | None) -> None:
        """Store a score with its interval; on sealed sets, rounded to the permitted precision."""
        numbers, cell = self.numbers, self._find_cell(run, metric)
        if cell is None:
            return
        numbers.n[cell] = n
        # Only worst groups and kinds, whose names differ from their columns, may be undefined.
        numbers.undefined[cell[1:]] |= number[0] is None and metric not in self._metrics
        if size := self._sealed[cell[1]]:
            number = round_number(metric, number[0], min(n, size))
        percent = 100 * np.array(number, dtype=float)  # None becomes NaN
        if percent[1] == percent[2]:  # from an earlier version: few examples, all equal
            percent[1:] = np.nan
        numbers.values[cell], numbers.low[cell], numbers.high[cell] = percent

    def add_draws(self) -> None:
        """Add stored resamples, and draw missing ones from normal distributions.

        They are missing if none are stored, if all are equal, and on sealed sets. Values are then
        drawn from the interval, as a normal distribution on each side. They are independent between
        models, so differences look less certain than they are.
        """
        numbers, drawn_metrics = self.numbers, select_drawn_metrics(self._metrics)
        draws = numbers.draws
        set_count, columns = len(draws), [self._metrics.index(name) for name in drawn_metrics]

        # 1. Read the resamples, but not of sealed sets, where they would reveal exact values.
        unsealed_version_ids = [
            pk for pk, set_index in self._versions.items() if not self._sealed[set_index]
        ]
        stored_resamples = Resample.objects.filter(
            run__version__in=unsealed_version_ids, run__outcome=Outcome.OK
        )
        resampled_runs = set()
        for run, metric, drawn_values in stored_resamples.values_list(RUN_ID, "metric", "values"):
            if not metric.startswith(CUSTOM_PREFIX):
                resampled_runs.add(run)
            cell = self._find_cell(run, metric)
            if drawn_values and cell and cell[1] < set_count and cell[2] in columns:
                model, set_index, column = cell
                # Stored little-endian, whatever the machine that reads it.
                row = np.frombuffer(drawn_values, dtype="<f4")
                draws[set_index, columns.index(column), model] = row
        np.multiply(draws, 100, out=draws)

        # 2. Insert the value where a metric is undefined on a resample.
        values = _transpose_to_draws(numbers.values, set_count, columns)
        *where, number = np.nonzero(np.isnan(draws))
        draws[*where, number] = np.nan_to_num(values[*where])

        # 3. Draw from the interval if there are no resamples, or if they never vary.
        low = _transpose_to_draws(numbers.low, set_count, columns)
        high = _transpose_to_draws(numbers.high, set_count, columns)
        is_flat = (draws == draws[..., :1]).all(axis=-1) & ~np.isnan(values)
        # A fixed seed: two readers of a board must see the same ranks.
        shape = is_flat.sum(), DRAW_COUNT
        noise = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        width_below = np.nan_to_num((values - low)[is_flat])[:, None]
        width_above = np.nan_to_num((high - values)[is_flat])[:, None]
        width = np.where(noise < 0, width_below, width_above)
        draws[is_flat] = values[is_flat][:, None] + noise / NORMAL_QUANTILE * width

        # 4. Note whether a worker still has to resample some run.
        awaited_runs = set()
        for run, (_model, set_index, _suite) in self._runs.items():
            if set_index < set_count and not self._sealed[set_index]:
                awaited_runs.add(run)
        self.numbers = replace(numbers, is_provisional=bool(awaited_runs - resampled_runs))

    def _find_cell(self, run: str, metric: str) -> tuple[int, int, int] | None:
        """Return the indices of a run's metric; None without a column or for an unknown run."""
        model, set_index, suite = self._runs.get(run, (0, 0, ""))
        metric = self._customs.get(metric, metric)
        column = COLUMN_BY_SUITE.get((suite, metric), metric if suite == Suite.PLAIN else "")
        if column not in self._metrics:
            return None
        return model, set_index, self._metrics.index(column)


def _transpose_to_draws(numbers: Floats, set_count: int, columns: Sequence[int]) -> Floats:
    """Transpose models × sets × metrics into counting sets × drawn metrics × models."""
    # Counting sets come first, so a slice leaves out the others.
    return numbers[:, :set_count][..., columns].transpose(1, 2, 0)
