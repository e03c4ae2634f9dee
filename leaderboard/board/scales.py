"""The scales on which a board's metrics count, including those of the owners' metrics.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from leaderboard.board.matrix import Matrix
from leaderboard.ranking.anchored import (
    PERFECT_VALUE,
    Anchors,
    Scale,
    build_plain_anchors,
    compute_anchors,
)
from leaderboard.ranking.dynascore import MEMORY_BUDGET, Rule
from leaderboard.ranking.pools import Pool


def choose_anchors(matrix: Matrix, pool: Pool) -> Anchors:
    """Return the pool's anchors. Owners' metrics and error metrics are scaled from 0 to 100 %."""
    own_scales = {}
    for name in matrix.weighable_metrics:
        if name in matrix.error_metrics:
            own_scales[name] = Scale(low=PERFECT_VALUE, high=0.0)
        elif name in matrix.customs:
            own_scales[name] = Scale(low=0.0, high=PERFECT_VALUE)
    # A pool has no owners' metrics, and its models differ in what they get right.
    pool_metrics = [name for name in matrix.weighable_metrics if name not in own_scales]
    if pool.is_plain:
        (chance_levels,) = pool.rows.values()  # its only model answers by chance
        anchors = build_plain_anchors(matrix.main, chance_levels[matrix.main] or 0.0, pool_metrics)
    else:
        anchors = compute_anchors(pool.rows, matrix.main, pool_metrics)
    return replace(anchors, scales={**anchors.scales, **own_scales})


def build_rule(
    matrix: Matrix, weights: Mapping[str, float], mode: Literal["robust", "classic"] = "robust"
) -> Rule:
    """Return the rule for a Dynascore with these weights. Raises ValueError for invalid weights."""
    budgets = {"memory": MEMORY_BUDGET}
    for name in matrix.error_metrics:
        budgets[name] = PERFECT_VALUE
    return Rule(mode=mode, weights=weights, main=matrix.main, budgets=budgets)
