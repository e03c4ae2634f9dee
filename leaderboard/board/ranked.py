"""Rows of a leaderboard: a matrix of numbers and weights become scores, intervals and ranks.

Nothing is drawn here: stored resamples are multiplied by the weights. docs/evaluation.md,
“Leaderboard”, explains it in words. It loads numpy (see `leaderboard.board.matrix`).

The scores follow the rules of `leaderboard.ranking`, which also score tables in files; see
`leaderboard.ranking.dynascore` for how the two relate, and `leaderboard.ranking.ranks` for ties.
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
from leaderboard.board.cells import BoardScore, Cell, MetricColumn, ModelMetrics, ScoreColumn
from leaderboard.board.columns import COST_METRICS, UPLOADED_RUNNER
from leaderboard.board.matrix import BoardModel, Floats, Matrix, Numbers
from leaderboard.board.means import (
    Means,
    build_means_table,
    compute_main_errors,
    compute_means,
    memoise,
    replace_nan,
)
from leaderboard.board.pairs import find_significant_pairs
from leaderboard.board.query import Mode
from leaderboard.board.scales import build_rule, choose_anchors
from leaderboard.board.scores import Scores, compute_anchored_scores, compute_priced_scores
from leaderboard.ranking.anchored import SCORE_DECIMALS, Anchors, select_used_weights
from leaderboard.ranking.dynascore import Rates, Rule, compute_exchange_rates
from leaderboard.ranking.ranks import label_ranks
from leaderboard.ranking.weights import Weighting, check_weights

MAX_MOVES = 3
"""The most models whose moves a status line describes."""


class _Move(NamedTuple):
    """A model whose rank changed from old to new."""

    name: str
    old: int
    new: int


class RankedModel(NamedTuple):
    """A model's row. Without a score, `missing` says what the model lacks.

    With a score, `missing` says what was not measured, and the score may be a range. first, last:
    the best and the worst rank that the data allow.
    """

    model_index: int  # its index in the matrix
    model: BoardModel
    rank: str  # 2= if it is shared, 2–4 if the score is a range; empty: not run
    first: int | None
    last: int | None
    missing: tuple[str, ...]
    in_the_loop: tuple[str, ...]  # the weighted sets that people wrote against it
    scores: ScoreColumn
    columns: Mapping[str, MetricColumn]
    points: Mapping[str, Sequence[float | None]]  # of the anchored score, by metric; else empty

    @property
    def open_rank(self) -> str:
        """Return the rank as pages show it: a range where it is open, "" if there is none."""
        if self.first is None or self.last is None:
            return self.rank
        return _format_open_ranks(self.first, self.last)

    @property
    def rank_number(self) -> int | None:
        """Return the rank as a number, even if it is shared; None for a range."""
        number = self.rank.rstrip("=")
        if not number.isdecimal():
            return None
        return int(number)

    @property
    def points_by_metric(self) -> Mapping[str, float]:
        """Return the points that each measured metric adds to an anchored score.

        Empty if the score is not anchored.
        """
        points_by_metric = {}
        for name, values in self.points.items():
            value = values[self.model_index]
            if value is not None:
                points_by_metric[name] = value
        return points_by_metric

    @property
    def dynascore(self) -> BoardScore:
        """Return the model's score."""
        return self.scores.get_cell(self.model_index)

    @property
    def metrics(self) -> Mapping[str, Cell]:
        """Return the model's metrics over the weighted sets."""
        return ModelMetrics(self.columns, self.model_index)


@dataclass(frozen=True)
class RankedBoard:
    """A board ranked by given weights."""

    mode: Mode
    weighting: Weighting
    rates: Rates
    rows: tuple[RankedModel, ...]
    notices: tuple[str, ...]
    anchors: Anchors | None = None  # only in the mode `anchored`


def rank_board(matrix: Matrix, weighting: Weighting, mode: Mode | None = None) -> RankedBoard:
    """Rank the models by score; models that lack a result follow, sorted by name.

    mode: one of the matrix's formulas, by default its first. The latest results are cached with the
    numbers. Raises WeightsError.
    """
    # Before the cache, which would otherwise store a board without scores.
    check_weights(weighting)
    used_mode = mode or matrix.modes[0]
    rank = _rank_anchored if used_mode == "anchored" else partial(_rank_by_rates, mode=used_mode)
    # Matrices with equal numbers may differ in names, sets and pools, which the rows contain.
    state = (matrix.models, matrix.sets, matrix.frozen, matrix.pool, tuple(matrix.customs.values()))
    return memoise(matrix, (state, weighting, used_mode), lambda: rank(matrix, weighting))


def _rank_anchored(matrix: Matrix, weighting: Weighting) -> RankedBoard:
    """Rank by the anchored score, a range if a metric other than the main one is missing."""
    means = compute_means(matrix, weighting.sets)
    assert matrix.pool  # otherwise the matrix does not offer this mode
    anchors = choose_anchors(matrix, matrix.pool)
    weights = _select_defined_weights(matrix, means, weighting.metrics)
    scores, points = compute_anchored_scores(matrix, means, anchors, weights)
    points_by_place = {name: replace_nan(values) for name, values in points.items()}
    rates = Rates(dict.fromkeys(matrix.weighable_metrics), tuple(matrix.pool.rows))
    sentences = (
        *notices.explain_sets(matrix),
        *notices.explain_ranges(has_ranges=bool(scores.is_range.any())),
        *notices.explain_parts(_find_undefined_metrics(matrix, means), weighting.metrics),
        *notices.explain_costs(matrix, select_used_weights(anchors, weights)),
        *notices.select_weighted_notices(anchors.notices, weighting.metrics),
        *notices.explain_method(matrix),
    )
    rows = _build_rows(matrix, means, scores, points_by_place)
    return RankedBoard("anchored", weighting, rates, rows, sentences, anchors)


def _rank_by_rates(
    matrix: Matrix, weighting: Weighting, mode: Literal["robust", "classic"]
) -> RankedBoard:
    """Rank by the Dynascore in units of the main metric."""
    means = compute_means(matrix, weighting.sets)
    weights = _select_defined_weights(matrix, means, weighting.metrics)
    # A metric that is undefined on all sets is left out, as if it had no weight.
    rule = build_rule(matrix, weights, mode)
    rates = _choose_rates(matrix, rule, means)
    rows = _build_rows(matrix, means, compute_priced_scores(matrix, means, rule, rates), {})
    # The pool of frozen rates contains names; that of the board's own rates contains ids.
    names = {str(model.id): model.name for model in matrix.models}
    shown_rates = replace(rates, pool=tuple(names.get(each, each) for each in rates.pool))
    sentences = (
        *notices.explain_parts(_find_undefined_metrics(matrix, means), weighting.metrics),
        *notices.explain_rates(matrix, rule, rates),
        *notices.explain_method(matrix),
    )
    return RankedBoard(mode, weighting, shown_rates, rows, sentences)


def _select_defined_weights(
    matrix: Matrix, means: Means, weights: Mapping[str, float]
) -> dict[str, float]:
    """Return the weights of metrics that at least one weighted set defines."""
    undefined = set(_find_undefined_metrics(matrix, means))
    return {name: weight for name, weight in weights.items() if name not in undefined}


def _find_undefined_metrics(matrix: Matrix, means: Means) -> Iterator[str]:
    """Yield metrics that no weighted set defines, because its kinds or groups have few examples."""
    if not means.sets:
        return
    is_undefined = np.all(matrix.numbers.undefined[list(means.sets)], axis=0)
    for index in np.flatnonzero(is_undefined):
        yield matrix.metrics[index]


def _choose_rates(matrix: Matrix, rule: Rule, means: Means) -> Rates:
    """Return the frozen exchange rates; this board's own in classic mode or if none are frozen.

    The board's own rates name the models of their pool by id. A metric without a weight needs no
    rate, and a model that lacks it is still in the pool.
    """
    if rule.mode == "robust" and matrix.frozen:
        return Rates(dict(matrix.frozen.rates), matrix.frozen.pool)
    # A metric without a weight would remove models that lack it from the pool.
    used_weights = {name: weight for name, weight in rule.weights.items() if weight}
    weighted_rule = replace(rule, weights=used_weights)
    return compute_exchange_rates(
        weighted_rule, build_means_table(matrix, means), compute_main_errors(matrix, means)
    )


def _build_rows(
    matrix: Matrix,
    means: Means,
    score: Scores,
    points: Mapping[str, Sequence[float | None]],
) -> tuple[RankedModel, ...]:
    """Return the rows of all models in the order of the board."""
    models, is_run, is_range = matrix.models, score.is_run, score.is_range
    # 1. Bound the ranks by the pairs in which one model is surely better.
    first_ranks, last_ranks = _compute_rank_bounds(matrix, means, score)

    # 2. Order the models by score and assign ranks; models that were not run come last.
    order = _sort_places((score.least + score.most) / 2, first_ranks, models)
    ranks = _label_ranks([index for index in order if not is_range[index]], first_ranks)
    for index in order:
        if is_range[index]:
            ranks[index] = _format_open_ranks(first_ranks[index], last_ranks[index])
    not_run = np.flatnonzero(~is_run).tolist()
    order += sorted(not_run, key=lambda index: models[index].name)

    # 3. Build the rows.
    known_scores = np.where(is_range, np.nan, score.least)
    columns = (known_scores, score.low, score.high, score.least, score.most)
    scores = ScoreColumn(*map(replace_nan, columns))
    used_indices = [matrix.metrics.index(name) for name in score.used]
    # For all models at once; the loop below only looks up the values.
    is_complete = is_run & ~np.isnan(means.values[:, used_indices]).any(axis=1)
    in_the_loop = _find_in_the_loop(matrix, means)
    rows = []
    for index in order:
        # Reasons are searched only if something is missing, because that takes longest.
        missing_results = (
            ()
            if is_complete[index]
            else tuple(_iter_missing_results(matrix, means, score.used, index))
        )
        row = RankedModel(
            model_index=index,
            model=models[index],
            rank=ranks.get(index, ""),
            first=first_ranks.get(index),
            last=last_ranks.get(index),
            missing=missing_results,
            in_the_loop=in_the_loop.get(index, ()),
            scores=scores,
            columns=means.columns,
            points=points,
        )
        rows.append(row)
    return tuple(rows)


def _compute_rank_bounds(
    matrix: Matrix, means: Means, score: Scores
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the best and the worst rank of each model with a score, by index.

    A rank is one more than the number of models that are significantly better.
    """
    indices = np.flatnonzero(score.is_run)
    examples = sum(matrix.sets[index].size for index in means.sets)
    # Most boards have no ranges; they are compared with themselves.
    best_case = None
    if score.is_range.any():
        best_case = score.most[indices], score.most_draws[indices]
    # The rows of the matrix are the better models, so a column's sum counts the models above.
    is_better = find_significant_pairs(
        score.least[indices], score.least_draws[indices], examples, best_case
    )
    first_ranks = (1 + is_better.sum(axis=0)).tolist()
    last_ranks = (len(indices) - is_better.sum(axis=1)).tolist()
    keys = indices.tolist()
    return dict(zip(keys, first_ranks, strict=True)), dict(zip(keys, last_ranks, strict=True))


def _sort_places(
    values: Floats, firsts: Mapping[int, int], models: Sequence[BoardModel]
) -> list[int]:
    """Return the indices by score, the best first; a range is sorted by its middle."""
    # Scores that differ only by rounding count as equal; then the better rank decides.
    rounded_values = np.round(values, SCORE_DECIMALS)

    def compute_sort_key(index: int) -> tuple[float, int, str]:
        return -rounded_values[index], -firsts[index], models[index].name

    return sorted(firsts, key=compute_sort_key)


def _label_ranks(order: Sequence[int], firsts: Mapping[int, int]) -> dict[int, str]:
    """Return the ranks of models with known scores, by index: the running maximum of `firsts`.

    So no model is ranked above one with a higher score, however uncertain its score is.
    """
    # A model may have a better `first` than one above it, if it has wider intervals.
    ranks = accumulate((firsts[index] for index in order), max)
    return dict(zip(order, label_ranks(list(ranks)), strict=True))


def _format_open_ranks(first_rank: int, last_rank: int) -> str:
    """Return the possible ranks of a model, such as “2–4”."""
    return str(first_rank) if first_rank == last_rank else f"{first_rank}–{last_rank}"


def _find_in_the_loop(matrix: Matrix, means: Means) -> dict[int, tuple[str, ...]]:
    """Return the weighted sets that people wrote against each model, by index."""
    names: dict[int, tuple[str, ...]] = {}
    for model, index in np.argwhere(matrix.numbers.in_the_loop).tolist():
        if index in means.sets:
            names[model] = (*names.get(model, ()), matrix.sets[index].name)
    return names


def _iter_missing_results(
    matrix: Matrix, means: Means, used_metrics: Sequence[str], model: int
) -> Iterator[str]:
    """Yield the results that a model lacks for a score, in words."""
    numbers, run_set_indices = matrix.numbers, []
    for index in means.sets:
        if numbers.runners[model, index]:
            run_set_indices.append(index)
            continue
        reason = ""
        if numbers.kept_back[model, index]:
            reason = " (sealed)"
        elif numbers.outdated[model, index]:
            reason = " (only an older version)"
        yield matrix.sets[index].name + reason
    for name in used_metrics:
        column = matrix.metrics.index(name)
        # What a set is too small to show does not count as missing.
        lacks = (
            np.isnan(numbers.values[model, run_set_indices, column])
            & ~numbers.undefined[run_set_indices, column]
        )
        if lacks.any():
            is_cost = name in COST_METRICS and numbers.runner
            yield name + _explain_missing_cost(numbers, model, run_set_indices) if is_cost else name


def _explain_missing_cost(numbers: Numbers, model: int, run: Sequence[int]) -> str:
    """Explain why an evaluated model lacks a cost; the text follows the metric's name."""
    other_runners = sorted(set(numbers.runners[model, run].tolist()) - {numbers.runner})
    if other_runners == [UPLOADED_RUNNER]:
        return " (unknown for uploaded predictions)"
    if other_runners:
        return f" (measured by {', '.join(other_runners)})"
    return " (the run was too short to measure it)"


def describe_moves(before: RankedBoard, after: RankedBoard) -> list[str]:
    """Describe rank changes, such as “ALBERT moved from 3 to 1.”, the largest first.

    At most MAX_MOVES models are named; the others are counted.
    """
    old_ranks = {row.model.id: row.rank_number for row in before.rows}
    moves = []
    for row in after.rows:
        new, old = row.rank_number, old_ranks.get(row.model.id)
        if new and old and old != new:
            moves.append(_Move(row.model.name, old, new))
    if not moves:
        return [_("No model changed rank.")]
    # The longest distance first, then the better rank, then the name.
    moves.sort(key=lambda move: (-abs(move.old - move.new), move.new, move.name))
    sentence = _("%(name)s moved from rank %(old)d to rank %(new)d.")
    lines = [sentence % move._asdict() for move in moves[:MAX_MOVES]]
    unlisted_count = len(moves) - len(lines)
    if unlisted_count:
        summary = ngettext(
            "%(number)d more model moved.", "%(number)d more models moved.", unlisted_count
        )
        lines.append(summary % {"number": unlisted_count})
    return lines
