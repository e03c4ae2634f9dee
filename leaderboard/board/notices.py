"""Sentences about the numbers of a board. In English: snapshots keep them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from django.utils.translation import gettext_noop

from evaluation.contract import LEAST_RESAMPLED
from leaderboard.board.columns import COSTS
from leaderboard.board.exports import METHOD_NOTE
from leaderboard.board.matrix import Matrix
from leaderboard.ranking.dynascore import Rates, Rule

PART_NAMES = {"fairness": "two groups", "robustness": "a kind"}
"""For each metric of a worst part, what a set must have."""


def explain_sets(matrix: Matrix) -> Iterator[str]:
    """Yield notices about the sets, in English because snapshots store them."""
    has_small = any(board_set.is_small for board_set in matrix.sets)
    if matrix.sets and not matrix.counting:
        yield gettext_noop("No set is large enough to rank by, so no model has a rank.")
    elif not matrix.has_weighted and not has_small and matrix.counting:
        yield gettext_noop(
            "The owner has chosen no set to rank by yet, so every set that is shown counts."
        )
    elif has_small:
        yield gettext_noop(
            "A round's set with too few examples is shown and never ranked by; the others count."
        )
    if matrix.numbers.is_provisional:
        yield gettext_noop(
            "Some results are new: their intervals and ranks are provisional for some minutes."
        )
    if any(board_set.is_provisional for board_set in matrix.sets):
        yield gettext_noop(
            "A round is still being judged: the numbers of its set are provisional and may change."
        )


def explain_method(matrix: Matrix) -> Iterator[str]:
    """Yield a notice on how intervals are computed, if there are any."""
    if matrix.models and matrix.counting:
        yield METHOD_NOTE


def explain_ranges(*, has_ranges: bool) -> Iterator[str]:
    """Yield a notice on why some scores are ranges."""
    if has_ranges:
        yield gettext_noop(
            "Some models were not measured on every metric. Their scores and ranks are shown as "
            "ranges, from the worst case to the best."
        )


def explain_rates(matrix: Matrix, rule: Rule, rates: Rates) -> Iterator[str]:
    """Yield notices about the sets and the models that the exchange rates depend on."""
    yield from explain_sets(matrix)
    # Notices begin with the metric's name. Frozen rates come without them.
    by_metric = {notice.partition(" ")[0]: notice for notice in rates.notices}
    reason = "the reference models show no exchange rate for it"
    for name, weight in rule.weights.items():
        if weight and not rates.values.get(name):
            usual = f"{name} is left out and the other weights count more: {reason}."
            yield by_metric.get(name, usual)
    if rule.mode != "robust":
        return
    if not matrix.frozen:
        yield gettext_noop(
            "The exchange rates are not frozen yet: each further model may change all scores."
        )
    elif matrix.frozen.is_sensitive:
        yield gettext_noop(
            "Without one of the reference models the best of them stand in another order."
        )


def explain_parts(undefined_metrics: Iterable[str], weights: Mapping[str, float]) -> Iterator[str]:
    """Yield a notice on metrics that do not count because the sets are too small for them."""
    for name in undefined_metrics:
        if weights.get(name):
            yield (
                f"{name} is left out and the other weights count more: no weighted set has "
                f"{PART_NAMES[name]} with {LEAST_RESAMPLED} examples."
            )


def explain_costs(matrix: Matrix, used_weights: Mapping[str, float]) -> Iterator[str]:
    """Yield a notice if speed and memory are scaled by another machine or another kind of run."""
    pool = matrix.pool
    if pool is None or pool.is_plain or not any(name in used_weights for name in COSTS):
        return
    if not pool.costs:
        yield gettext_noop(
            "Speed and memory are on the scale of another machine: nobody has measured the "
            "reference models here yet, which manage.py measure_anchors does."
        )
    elif matrix.numbers.runner not in ("", pool.runner):
        yield gettext_noop(
            "The reference models were run in another way than the models here, so speed and "
            "memory compare badly: manage.py measure_anchors runs them again."
        )


def select_weighted(notices: Sequence[str], weights: Mapping[str, float]) -> Iterator[str]:
    """Yield the notices about metrics that have a weight."""
    for notice in notices:
        metric = notice.partition(" ")[0]
        if weights.get(metric):
            yield notice
