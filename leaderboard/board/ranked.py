"""Rows of a leaderboard: a matrix of numbers and weights become scores, intervals and ranks.

Nothing is drawn here: stored resamples are multiplied by the weights. docs/evaluation.md,
“Leaderboard”, tells in words what is done. It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from leaderboard.board import notices
from leaderboard.board.cells import BoardScore, Cell, MetricColumn, Metrics, ScoreColumn
from leaderboard.board.columns import COSTS, UPLOADED
from leaderboard.board.matrix import Floats, Matrix, Model, Numbers
from leaderboard.board.means import (
    Means,
    main_errors,
    means_over_sets,
    means_table,
    memoised,
    none_for_nan,
)
from leaderboard.board.pairs import sure_pairs
from leaderboard.board.query import Mode
from leaderboard.board.scales import anchors_for, rule_of
from leaderboard.board.scores import Scores, anchored_scores, priced_scores
from leaderboard.scoring.anchored import ALIKE, Anchors, used_weights
from leaderboard.scoring.dynascore import Rates, Rule, exchange_rates
from leaderboard.scoring.ranks import rank_labels
from leaderboard.scoring.weights import Weighting, check_weights

MOST_MOVED = 3
"""Models of whom a status line tells where they moved."""


class RankedModel(NamedTuple):
    """A model's line. Without a score it is not run, and `missing` says on what.

    With one, `missing` says what was not measured, and the score may be a range. first, last: the
    ranks that the data leave open.
    """

    place: int  # in the matrix
    model: Model
    rank: str  # 2= where it is shared, 2–4 of a score that is a range; empty: not run
    first: int | None
    last: int | None
    missing: tuple[str, ...]
    in_the_loop: tuple[str, ...]  # the weighted sets that people wrote against it
    scores: ScoreColumn
    columns: Mapping[str, MetricColumn]
    points: Mapping[str, Sequence[float | None]]  # of the anchored score, by metric; else empty

    @property
    def rank_number(self) -> int | None:
        """Return the rank, shared or not; None for a range."""
        number = self.rank.rstrip("=")
        return int(number) if number.isdecimal() else None

    @property
    def parts(self) -> Mapping[str, float]:
        """Return what each measured metric adds to the anchored score; empty without one."""
        found = {name: values[self.place] for name, values in self.points.items()}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def dynascore(self) -> BoardScore:
        """Return the model's score."""
        return self.scores.cell(self.place)

    @property
    def metrics(self) -> Mapping[str, Cell]:
        """Return the model's metrics over the weighted sets."""
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


def rank_board(matrix: Matrix, weighting: Weighting, mode: Mode | None = None) -> Ranked:
    """Rank the models by score; after them come those that lack a result, by name.

    mode: one of the matrix's formulas, by default its usual one. The latest results are cached with
    the numbers. Raises WeightsError.
    """
    check_weights(weighting)
    wanted = mode or matrix.modes[0]
    how = _anchored if wanted == "anchored" else partial(_ranked, mode=wanted)
    key = (
        *(matrix.models, matrix.sets, matrix.frozen, matrix.pool, *matrix.customs.values()),
        *(weighting, wanted),
    )
    return memoised(matrix, key, lambda: how(matrix, weighting))


def _anchored(matrix: Matrix, weighting: Weighting) -> Ranked:
    """Rank by the anchored score: a range where a metric other than the main one is missing."""
    means = means_over_sets(matrix, weighting.sets)
    assert matrix.pool  # else the mode is none of the matrix's
    anchors = anchors_for(matrix, matrix.pool)
    weights = _defined(matrix, means, weighting.metrics)
    scores, parts = anchored_scores(matrix, means, anchors, weights)
    shown = {name: none_for_nan(values) for name, values in parts.items()}
    rates = Rates(dict.fromkeys(matrix.weighable), tuple(matrix.pool.rows))
    told = (
        *notices.of_sets(matrix),
        *notices.of_ranges(has_ranges=bool(scores.is_range.any())),
        *notices.of_parts(_undefined(matrix, means), weighting.metrics),
        *notices.of_costs(matrix, used_weights(anchors, weights)),
        *notices.of_weighted(anchors.notices, weighting.metrics),
        *notices.of_method(matrix),
    )
    rows = _rows(matrix, means, scores, shown)
    return Ranked("anchored", weighting, rates, rows, told, anchors)


def _ranked(matrix: Matrix, weighting: Weighting, mode: Literal["robust", "classic"]) -> Ranked:
    means = means_over_sets(matrix, weighting.sets)
    weights = _defined(matrix, means, weighting.metrics)
    rule = rule_of(matrix, weights, mode)
    rates = _rates(matrix, rule, means)
    rows = _rows(matrix, means, priced_scores(matrix, means, rule, rates), {})
    pool = set(rates.pool)
    names = {str(model.id): model.name for model in matrix.models if str(model.id) in pool}
    shown = replace(rates, pool=tuple(names.get(one, one) for one in rates.pool))
    told = (
        *notices.of_parts(_undefined(matrix, means), weighting.metrics),
        *notices.of_rates(matrix, rule, rates),
        *notices.of_method(matrix),
    )
    return Ranked(mode, weighting, shown, rows, told)


def _defined(matrix: Matrix, means: Means, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of metrics that some weighted set defines."""
    lacking = {*_undefined(matrix, means)}
    return {name: weight for name, weight in weights.items() if name not in lacking}


def _undefined(matrix: Matrix, means: Means) -> Iterator[str]:
    """Yield the metrics that no weighted set defines: its kinds or groups have too few examples."""
    lacks = np.flatnonzero(np.all(matrix.numbers.undefined[list(means.sets)], axis=0))
    return (matrix.metrics[place] for place in lacks if means.sets)


def _rates(matrix: Matrix, rule: Rule, means: Means) -> Rates:
    """Return the frozen exchange rates, or in classic mode and before there are any this board's.

    This board's have ids instead of names in their pool. A metric without a weight needs no rate,
    and a model that lacks it stays in the pool.
    """
    if rule.mode == "robust" and matrix.frozen:
        return Rates(dict(matrix.frozen.rates), matrix.frozen.pool)
    weighted = {name: weight for name, weight in rule.weights.items() if weight}
    own = replace(rule, weights=weighted)
    return exchange_rates(own, means_table(matrix, means), main_errors(matrix, means))


def _rows(
    matrix: Matrix,
    means: Means,
    score: Scores,
    parts: Mapping[str, Sequence[float | None]],
) -> tuple[RankedModel, ...]:
    models, is_run, is_range = matrix.models, score.is_run, score.is_range
    in_the_loop = _in_the_loop(matrix, means)
    places = np.flatnonzero(is_run)
    examples = sum(matrix.sets[one].size for one in means.sets)
    best = (score.most[places], score.most_draws[places]) if is_range.any() else None
    sure = sure_pairs(score.least[places], score.least_draws[places], examples, best)
    firsts = dict(zip(places.tolist(), (1 + sure.sum(axis=0)).tolist(), strict=True))
    lasts = dict(zip(places.tolist(), (len(places) - sure.sum(axis=1)).tolist(), strict=True))
    known = np.where(is_range, np.nan, score.least)
    scores = ScoreColumn(
        *map(none_for_nan, (known, score.low, score.high, score.least, score.most))
    )
    order = _in_order((score.least + score.most) / 2, firsts, models)
    ranks = _ranks_of([at for at in order if not is_range[at]], firsts)
    ranks |= {at: _open(firsts[at], lasts[at]) for at in order if is_range[at]}
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


def _in_order(values: Floats, firsts: Mapping[int, int], models: Sequence[Model]) -> list[int]:
    """Return the places by score, the best first; for a range its middle counts."""
    near = np.round(values, ALIKE)
    return sorted(firsts, key=lambda at: (-near[at], -firsts[at], models[at].name))


def _ranks_of(order: Sequence[int], firsts: Mapping[int, int]) -> dict[int, str]:
    """Return the ranks of models with known scores, by place: the greatest `first` down to each.

    So no model is placed above one with a higher score, however little is known of it.
    """
    found = rank_labels([*accumulate((firsts[at] for at in order), max)])
    return dict(zip(order, found, strict=True))


def _open(first: int, last: int) -> str:
    """Return the ranks that a model whose score is a range may have."""
    return str(first) if first == last else f"{first}–{last}"


def _in_the_loop(matrix: Matrix, means: Means) -> dict[int, tuple[str, ...]]:
    """Return the weighted sets that people wrote against a model, for each model with any."""
    found: dict[int, tuple[str, ...]] = {}
    for at, one in np.argwhere(matrix.numbers.in_the_loop).tolist():
        if one in means.sets:
            found[at] = (*found.get(at, ()), matrix.sets[one].name)
    return found


def _missing(matrix: Matrix, means: Means, used: Sequence[str], at: int) -> Iterator[str]:
    """Yield what a model would need for a score, in words."""
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
    """Explain why a model that was run lacks a cost; the words follow the metric's name."""
    others = sorted({*numbers.runners[at, run].tolist()} - {numbers.runner})
    if others == [UPLOADED]:
        return " (unknown of uploaded predictions)"
    return f" (measured by {', '.join(others)})" if others else " (too short a run to measure it)"


def describe_moves(before: Ranked, after: Ranked) -> list[str]:
    """Describe what new weights did: “ALBERT moved from 3 to 1.”, the longest ways first."""
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
