"""Rows of a leaderboard: a matrix of numbers and weights become scores, intervals and ranks.

Nothing is drawn here: stored resamples are multiplied by the weights. docs/evaluation.md,
“Leaderboard”, tells in words what is done. It loads numpy (see `leaderboard.board.matrix`).

A number has one interval wherever it stands. A metric on a set has the one that was stored with it,
a mean over sets has one made of these, and the resamples are stretched to them before they are put
together to a score.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from math import sqrt
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from numpy.typing import NDArray

from leaderboard.board import notices
from leaderboard.board.columns import COSTS
from leaderboard.board.intervals import ends_around, mean_with_ends, stretch
from leaderboard.board.matrix import Floats, Marks, Matrix, Model, Numbers
from leaderboard.board.query import Mode
from leaderboard.board.scales import anchors_for, rule_of
from leaderboard.scoring.anchored import ALIKE, Anchors, points, used_weights
from leaderboard.scoring.dynascore import Rates, Rule, exchange_rates
from leaderboard.scoring.ranks import ALPHA, NORMAL, as_shown
from leaderboard.scoring.weights import Weighting, check

MOST_KEPT = 16
"""Weights whose rows are kept; those of 1,000 models take 3 MB."""
MOST_MOVED = 3
"""Models of whom a status line tells where they moved."""
LEAST = np.float32(1e-20)
"""Variance of a difference that no draw shows; so it is sure."""
FEW = 60
"""Fewer examples than that bound how sure a difference can be."""
Draws = NDArray[np.float32]
T = TypeVar("T")


class Cell(NamedTuple):
    """A number with what 95 % of the resamples lie between; None: none, or not resampled."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Column(NamedTuple):
    """One number of all models, by place; lists that the garbage collector passes by."""

    values: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]

    def cell(self, place: int) -> Cell:
        """That of one model."""
        return Cell(self.values[place], self.low[place], self.high[place])


class Metrics(Mapping[str, Cell]):
    """A model's metrics over the weighted sets."""

    def __init__(self, columns: Mapping[str, Column], place: int) -> None:
        self._columns, self._place = columns, place

    def __getitem__(self, name: str) -> Cell:
        return self._columns[name].cell(self._place)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class RankedModel(NamedTuple):
    """A model's line. Without a score it is not run, and `missing` says on what."""

    place: int  # in the matrix
    model: Model
    rank: str  # 2=; empty: not run
    first: int | None  # the ranks that the data leave open
    last: int | None
    missing: tuple[str, ...]
    in_the_loop: tuple[str, ...]  # the weighted sets that people wrote against it
    scores: Column
    columns: Mapping[str, Column]
    points: Mapping[str, Sequence[float | None]]  # of the anchored score, by metric; else empty

    @property
    def rank_number(self) -> int | None:
        """Its rank, whether or not others have it too."""
        return int(self.rank.rstrip("=")) if self.rank else None

    @property
    def parts(self) -> Mapping[str, float]:
        """What each metric adds to the anchored score; empty without one."""
        found = {name: values[self.place] for name, values in self.points.items()}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def dynascore(self) -> Cell:
        """Its score."""
        return self.scores.cell(self.place)

    @property
    def metrics(self) -> Mapping[str, Cell]:
        """Its metrics over the weighted sets."""
        return Metrics(self.columns, self.place)


@dataclass(frozen=True)
class Ranked:
    """A board under weights."""

    mode: Mode
    weighting: Weighting
    rates: Rates
    rows: tuple[RankedModel, ...]
    notices: tuple[str, ...]
    anchors: Anchors | None = None  # of mode anchored


@dataclass(frozen=True)
class Means:
    """Weighted means over sets: models × metrics, NaN where a set with a weight lacks its result.

    low, high: the ends of their intervals, NaN where one of the sets has none, as with too few
    examples. draws: drawn metrics × models × draws; stretched: the same, so that 95 % of them lie
    between the ends. sets: the places of those with a weight. columns: the values by metric.
    """

    values: Floats
    low: Floats
    high: Floats
    draws: Draws
    stretched: Floats
    sets: tuple[int, ...]
    columns: Mapping[str, Column]

    @property
    def unsure(self) -> Marks:
        """Models × metrics that have a value and no interval."""
        return np.isnan(self.low) & ~np.isnan(self.values)


def ranked(matrix: Matrix, weighting: Weighting, mode: Mode | None = None) -> Ranked:
    """The models by score, and so by rank; after them those that lack a result, by name.

    mode: one of the matrix's; None: its usual one. What was asked last of these numbers is kept
    with them. Raises WeightsError.
    """
    check(weighting)
    wanted = mode or matrix.modes[0]
    how = _anchored if wanted == "anchored" else partial(_ranked, mode=wanted)
    key = (
        *(matrix.models, matrix.sets, matrix.frozen, matrix.pool, *matrix.customs.values()),
        *(weighting, wanted),
    )
    return _kept(matrix, key, lambda: how(matrix, weighting))


def _kept(matrix: Matrix, key: Any, make: Callable[[], T]) -> T:
    """What was made of these numbers before, or is made now."""
    memo = matrix.numbers.memo
    found: T | None = memo.get(key)
    if found is None:
        if len(memo) >= MOST_KEPT:
            memo.clear()
        found = memo[key] = make()
    return found


def _anchored(matrix: Matrix, weighting: Weighting) -> Ranked:
    """By the anchored score: what another metric lacks adds nothing, and the row says so."""
    means = means_over_sets(matrix, weighting.sets)
    assert matrix.pool  # else the mode is none of the matrix's
    anchors = anchors_for(matrix, matrix.pool)
    used = used_weights(anchors, _defined(matrix, means, weighting.metrics))
    columns = {name: _column(matrix, means, name) for name in {*used, matrix.main}}
    parts, draws, stretched = (
        points(anchors, used, {name: column[kind] for name, column in columns.items()})
        for kind in range(3)
    )
    if not used:
        nothing = np.full(len(matrix.models), np.nan)
        score = _Scores(nothing, means.draws[0], means.stretched[0], ())
    else:
        summed: Draws = np.asarray(sum(draws.values()), dtype=np.float32)
        score = _Scores(
            np.asarray(sum(parts.values())),
            summed,
            np.asarray(sum(stretched.values())),
            (*used,),
        )
    shown = {name: _optional(values) for name, values in parts.items()}
    rates = Rates(dict.fromkeys(matrix.weighable), tuple(matrix.pool.rows))
    told = (
        *notices.of_sets(matrix),
        *notices.of_parts(_undefined(matrix, means), weighting.metrics),
        *notices.of_costs(matrix, used),
        *notices.of_weighted(anchors.notices, weighting.metrics),
    )
    rows = _rows(matrix, means, score, shown)
    return Ranked("anchored", weighting, rates, rows, told, anchors)


def _ranked(matrix: Matrix, weighting: Weighting, mode: Literal["robust", "classic"]) -> Ranked:
    means = means_over_sets(matrix, weighting.sets)
    weights = _defined(matrix, means, weighting.metrics)
    rule = rule_of(matrix, weights, mode)
    rates = _rates(matrix, rule, means)
    rows = _rows(matrix, means, _scored(matrix, rule, rates, means), {})
    pool = set(rates.pool)
    names = {str(model.id): model.name for model in matrix.models if str(model.id) in pool}
    shown = replace(rates, pool=tuple(names.get(one, one) for one in rates.pool))
    told = (
        *notices.of_parts(_undefined(matrix, means), weighting.metrics),
        *notices.of_rates(matrix, rule, rates),
    )
    return Ranked(mode, weighting, shown, rows, told)


def _defined(matrix: Matrix, means: Means, weights: Mapping[str, float]) -> dict[str, float]:
    """The weights of metrics that some weighted set defines."""
    lacking = {*_undefined(matrix, means)}
    return {name: weight for name, weight in weights.items() if name not in lacking}


def _undefined(matrix: Matrix, means: Means) -> Iterator[str]:
    """The metrics that no weighted set defines: its kinds or groups have too few examples."""
    lacks = np.flatnonzero(np.all(matrix.numbers.undefined[list(means.sets)], axis=0))
    return (matrix.metrics[place] for place in lacks if means.sets)


def means_over_sets(matrix: Matrix, weights: Mapping[str, float]) -> Means:
    """Over the counting sets; the same resample of each set goes into the same draw."""
    of_sets = tuple(weights.get(one.name, 0.0) for one in matrix.counting)
    return _kept(matrix, of_sets, lambda: _means(matrix, of_sets))


def _means(matrix: Matrix, weights: Sequence[float]) -> Means:
    numbers, shares = matrix.numbers, np.array(weights)
    used = np.flatnonzero(shares)
    of_metrics = shares[:, None] * ~numbers.undefined[: len(shares)]  # sets × metrics
    total = of_metrics.sum(axis=0)
    of_metrics /= np.where(total, total, 1)
    values, low, high = mean_with_ends(numbers, used, of_metrics[used])
    for some in (values, low, high):
        some[:, total == 0] = np.nan
    columns = [matrix.metrics.index(name) for name in matrix.drawn]
    draws: Draws = np.stack(
        [
            np.tensordot(of_metrics[:, column].astype(np.float32), numbers.draws[:, place], axes=1)
            for place, column in enumerate(columns)
        ]
    )
    stretched = np.stack(
        [
            stretch(some, values[:, column], low[:, column], high[:, column])
            for some, column in zip(draws, columns, strict=True)
        ]
    )
    shown = {
        name: Column(*(_optional(some[:, place]) for some in (values, low, high)))
        for place, name in enumerate(matrix.metrics)
    }
    return Means(values, low, high, draws, stretched, tuple(used.tolist()), shown)


def _rates(matrix: Matrix, rule: Rule, means: Means) -> Rates:
    """The frozen exchange rates; in classic mode, or before there are any, those of this board.

    Of these the pool has ids for names. What has no weight needs no rate, and a model that lacks it
    is left in the pool.
    """
    if rule.mode == "robust" and matrix.frozen:
        return Rates(dict(matrix.frozen.rates), matrix.frozen.pool)
    weighted = {name: weight for name, weight in rule.weights.items() if weight}
    own = replace(rule, weights=weighted)
    return exchange_rates(own, table_of(matrix, means), errors_of(matrix, means))


def table_of(matrix: Matrix, means: Means) -> dict[str, dict[str, float | None]]:
    """The means as `leaderboard.scoring.dynascore` reads them, by id of the model."""
    rows = _optional(means.values)
    return {
        str(model.id): dict(zip(matrix.metrics, row, strict=True))
        for model, row in zip(matrix.models, rows, strict=True)
    }


def _optional(values: Floats) -> list[Any]:
    """As lists, with None for NaN."""
    shown = values.astype(object)
    shown[np.isnan(values)] = None
    return cast(list[Any], shown.tolist())


def errors_of(matrix: Matrix, means: Means) -> dict[str, float]:
    """Standard errors of the main metric, by id of the model."""
    errors = means.draws[matrix.drawn.index(matrix.main)].std(axis=-1, ddof=1).tolist()
    return {str(model.id): error for model, error in zip(matrix.models, errors, strict=True)}


@dataclass(frozen=True)
class _Scores:
    """Scores of models (NaN: not run) and of their draws; used: metrics that have a weight.

    stretched: the draws that the interval is read from; draws: those by which models are paired.
    """

    values: Floats
    draws: Draws
    stretched: Floats
    used: tuple[str, ...]


def _scored(matrix: Matrix, rule: Rule, rates: Rates, means: Means) -> _Scores:
    """Σ weight × utility ÷ rate, as `dynascore.scored` has it, for all models and draws at once.

    The rates are the same in all draws: the interval is that of a score in these units. Rates that
    are read from the draws are noisy and too large, as in each draw other neighbours nearly tie.
    """
    used = {
        name: rate
        for name, weight in rule.weights.items()
        if weight and (rate := rates.values.get(name))
    }
    total = sum(rule.weights[name] for name in used)
    values = np.full(len(matrix.models), 0.0 if used else np.nan)
    draws = np.zeros(means.draws.shape[1:], dtype=np.float32)
    stretched = np.zeros(means.draws.shape[1:])
    for name, rate in used.items():
        share = rule.weights[name] / total / rate
        column, some, wide = _column(matrix, means, name)
        if (budget := rule.budgets.get(name)) is not None:
            column, some, wide = budget - column, np.float32(budget) - some, budget - wide
        values += share * column
        draws += np.float32(share) * some
        stretched += share * wide
    return _Scores(values, draws, stretched, tuple(used))


def _column(matrix: Matrix, means: Means, name: str) -> tuple[Floats, Draws, Floats]:
    """A metric of all models, its draws, and these stretched; of costs each draw is the same."""
    column = means.values[:, matrix.metrics.index(name)]
    if name in matrix.drawn:
        place = matrix.drawn.index(name)
        return column, means.draws[place], means.stretched[place]
    return column, column[:, None].astype(np.float32), column[:, None]


def _rows(
    matrix: Matrix,
    means: Means,
    score: _Scores,
    parts: Mapping[str, Sequence[float | None]],
) -> tuple[RankedModel, ...]:
    models, is_run = matrix.models, ~np.isnan(score.values)
    in_the_loop = _in_the_loop(matrix, means)
    places = np.flatnonzero(is_run)
    examples = sum(matrix.sets[one].size for one in means.sets)
    sure = sure_pairs(score.values[places], score.draws[places], examples)
    firsts = dict(zip(places.tolist(), (1 + sure.sum(axis=0)).tolist(), strict=True))
    lasts = dict(zip(places.tolist(), (len(places) - sure.sum(axis=1)).tolist(), strict=True))
    drawn = [matrix.metrics.index(name) for name in score.used if name in matrix.drawn]
    unsure = np.any(means.unsure[:, drawn], axis=1)
    low, high = ends_around(score.values, score.stretched, unsure)
    scores = Column(*map(_optional, (score.values, low, high)))
    order, ranks = _in_order(score.values, firsts, models)
    used = [matrix.metrics.index(name) for name in score.used]
    is_whole = is_run & ~np.isnan(means.values[:, used]).any(axis=1)
    whole = set(np.flatnonzero(is_whole).tolist())
    order += sorted(np.flatnonzero(~is_run).tolist(), key=lambda at: models[at].name)
    return tuple(
        RankedModel(
            place=at,
            model=models[at],
            rank=ranks.get(at, ""),
            first=firsts.get(at),
            last=lasts.get(at),
            missing=() if at in whole else tuple(_missing(matrix, means, score.used, at)),
            in_the_loop=in_the_loop.get(at, ()),
            scores=scores,
            columns=means.columns,
            points=parts,
        )
        for at in order
    )


def _in_order(
    values: Floats, firsts: Mapping[int, int], models: Sequence[Model]
) -> tuple[list[int], dict[int, str]]:
    """The places by score, and by place the rank: the greatest `first` down to its score.

    So no model stands above one with a higher score, however little is known of it.
    """
    near = np.round(values, ALIKE)
    order = sorted(firsts, key=lambda at: (-near[at], -firsts[at], models[at].name))
    found = as_shown([*accumulate((firsts[at] for at in order), max)])
    return order, dict(zip(order, found, strict=True))


def _in_the_loop(matrix: Matrix, means: Means) -> dict[int, tuple[str, ...]]:
    """By model that has any: the weighted sets that people wrote against it."""
    found: dict[int, tuple[str, ...]] = {}
    for at, one in np.argwhere(matrix.numbers.in_the_loop).tolist():
        if one in means.sets:
            found[at] = (*found.get(at, ()), matrix.sets[one].name)
    return found


def _missing(matrix: Matrix, means: Means, used: Sequence[str], at: int) -> Iterator[str]:
    """What a model would need for a score, in words."""
    numbers = matrix.numbers
    for one in means.sets:
        if not numbers.runners[at, one]:
            older = " (only an older version was)" if numbers.outdated[at, one] else ""
            kept_back = " (sealed: kept back)" if numbers.kept_back[at, one] else ""
            yield matrix.sets[one].name + (kept_back or older)
    run = [one for one in means.sets if numbers.runners[at, one]]
    for name in used:
        column = matrix.metrics.index(name)
        lacks = np.isnan(numbers.values[at, run, column]) & ~numbers.undefined[run, column]
        if lacks.any():
            yield f"{name}{_why(numbers, at, run)}" if name in COSTS and numbers.runner else name


def _why(numbers: Numbers, at: int, run: Sequence[int]) -> str:
    """Why a model that was run lacks a cost, in words behind its name."""
    others = sorted({*numbers.runners[at, run].tolist()} - {numbers.runner})
    return f" (measured by {', '.join(others)})" if others else " (too short a run to measure it)"


def sure_pairs(values: Floats, draws: Draws, examples: int) -> Marks:
    """[i, j]: model i is surely better than j, by paired differences with Holm's correction.

    A difference is compared with the standard error of its draws. Its p is never below that of the
    rarest flip of signs of so many examples.
    """
    count, freedom = len(values), draws.shape[-1] - 1
    pairs = count * (count - 1) // 2
    if not pairs:
        return np.zeros((count, count), dtype=bool)
    centred = (draws - draws.mean(axis=1, keepdims=True)) / np.float32(sqrt(freedom))
    variance = centred @ centred.T
    own = variance.diagonal().copy()
    variance *= -2
    variance += own
    variance += own[:, None]
    np.maximum(variance, LEAST, out=variance)
    flat = (values - values.mean()).astype(np.float32)  # in single precision near 0
    lead = flat[:, None] - flat
    lead *= np.abs(lead)
    lead /= variance  # t², with the sign of the difference
    if examples < FEW:
        np.minimum(lead, _bar(2.0 ** (1 - max(1, examples)), freedom), out=lead)
    # Holm steps down as long as the next smallest p passes; each look here does many such steps.
    found, sure = 0, lead >= _bar(ALPHA / pairs, freedom)
    while found < (now := int(np.count_nonzero(sure))) < pairs:
        found, sure = now, lead >= _bar(ALPHA / (pairs - now), freedom)
    return cast(Marks, sure)


def _bar(p: float, freedom: int) -> float:
    """t² of a two-sided p, by the first terms of Fisher and Cornish (1960)."""
    z = -NORMAL.inv_cdf(p / 2)
    return (z + (z**3 + z) / (4 * freedom)) ** 2


def moved(before: Ranked, after: Ranked) -> list[str]:
    """What new weights did, in sentences: “ALBERT moved from 3 to 1.”, the longest ways first."""
    was = {row.model.id: row.rank_number for row in before.rows}
    steps = [
        (old - new, row.model.name, old, new)
        for row in after.rows
        if (new := row.rank_number) and (old := was.get(row.model.id)) and old != new
    ]
    if not steps:
        return [_("No model changed its rank.")]
    steps.sort(key=lambda step: (-abs(step[0]), step[3], step[1]))
    lines = [
        _("%(name)s moved from %(old)d to %(new)d.") % {"name": name, "old": old, "new": new}
        for _way, name, old, new in steps[:MOST_MOVED]
    ]
    more = len(steps) - len(lines)
    further = ngettext("%(number)d more moved.", "%(number)d more moved.", more)
    return [*lines, further % {"number": more}] if more else lines
