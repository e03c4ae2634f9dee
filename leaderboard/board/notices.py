"""Sentences about the numbers of a board, in English, because snapshots store them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from django.utils.translation import gettext_noop

from evaluation.contract import MIN_RESAMPLED_EXAMPLES
from leaderboard.board.columns import COST_METRICS
from leaderboard.board.exports import METHOD_NOTE
from leaderboard.board.matrix import Matrix
from leaderboard.ranking.dynascore import Rates, Rule

PART_NAMES = {"fairness": "two groups", "robustness": "a kind"}
"""The parts that a set must have for each metric of worst parts, in words."""


def explain_sets(matrix: Matrix) -> Iterator[str]:
    """Yield notices about the sets, in English because snapshots store them."""
    has_small = any(board_set.is_small for board_set in matrix.sets)
    if matrix.sets and not matrix.counting_sets:
        yield gettext_noop("No test set has enough examples for a ranking yet.")
    elif not matrix.has_weighted_set and not has_small and matrix.counting_sets:
        yield gettext_noop(
            "The task's owner hasn't chosen test sets to rank by, so all sets shown here count."
        )
    elif has_small:
        yield gettext_noop("Test sets with too few examples are shown but don't count.")
    if matrix.numbers.is_provisional:
        yield gettext_noop(
            "Some results are new. Their intervals and ranks are provisional for a few minutes."
        )
    if any(board_set.is_provisional for board_set in matrix.sets):
        yield gettext_noop(
            "A round is still being judged, so results on its test set are provisional."
        )

    if any(board_set.left_out for board_set in matrix.sets):
        yield gettext_noop(
            "People judged only a sample of a round, so its test set lacks examples. Of most of "
            "them a judge model was sure."
        )
    # Of a release's test split nothing is estimated, and of a sealed set only its editors see it.
    if any(board_set.is_whole_round and not board_set.is_sealed for board_set in matrix.sets):
        yield gettext_noop("The page of each model estimates the whole round.")


def explain_method(matrix: Matrix) -> Iterator[str]:
    """Yield a notice on how intervals are computed, if the board has any."""
    if matrix.models and matrix.counting_sets:
        yield METHOD_NOTE


def explain_ranges(*, has_ranges: bool) -> Iterator[str]:
    """Yield a notice on why some scores are ranges."""
    if has_ranges:
        yield gettext_noop(
            "Some models weren't measured on every metric. Their scores and ranks are ranges "
            "from worst to best case."
        )


def explain_rates(matrix: Matrix, rule: Rule, rates: Rates) -> Iterator[str]:
    """Yield the notices about sets, and one for each weighted metric that has no exchange rate.

    In robust mode, another notice warns of rates that are not frozen, or that depend on a single
    reference model.
    """
    yield from explain_sets(matrix)
    # Notices begin with the metric's name. Frozen rates come without them.
    by_metric = {notice.partition(" ")[0]: notice for notice in rates.notices}
    reason = "the reference models show no exchange rate for it"
    for name, weight in rule.weights.items():
        if weight and not rates.values.get(name):
            usual = f"{name} doesn't count, so the other weights count more: {reason}."
            yield by_metric.get(name, usual)
    if rule.mode != "robust":
        return
    if not matrix.frozen:
        yield gettext_noop(
            "The exchange rates aren't frozen yet, so each new model may change all scores."
        )
    elif matrix.frozen.is_sensitive:
        yield gettext_noop(
            "Without one of the reference models, the top models would be in a different order."
        )


def explain_parts(undefined_metrics: Iterable[str], weights: Mapping[str, float]) -> Iterator[str]:
    """Yield a notice on metrics that do not count because the sets are too small for them."""
    for name in undefined_metrics:
        if weights.get(name):
            yield (
                f"{name} doesn't count, so the other weights count more. No weighted test "
                f"set has {PART_NAMES[name]} with {MIN_RESAMPLED_EXAMPLES} examples."
            )


def explain_costs(matrix: Matrix, used_weights: Mapping[str, float]) -> Iterator[str]:
    """Yield a notice if the scale of speed and memory comes from another machine or runner."""
    pool = matrix.pool
    if pool is None or pool.is_plain or not any(name in used_weights for name in COST_METRICS):
        return
    if not pool.cost_version:
        yield gettext_noop(
            "Speed and memory use another machine's scale. An operator can measure the "
            "reference models here with manage.py measure_anchors."
        )
    elif matrix.numbers.runner not in ("", pool.runner):
        yield gettext_noop(
            "The reference models ran in a different environment, so speed and memory are "
            "hard to compare. An operator can run manage.py measure_anchors."
        )


def select_weighted_notices(notices: Sequence[str], weights: Mapping[str, float]) -> Iterator[str]:
    """Yield the notices about metrics that have a weight."""
    for notice in notices:
        metric = notice.partition(" ")[0]
        if weights.get(metric):
            yield notice
