"""The scales on which a board's metrics count, the owners' own among them.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from leaderboard.board.matrix import Matrix
from leaderboard.ranking.anchored import PERFECT, Anchors, Scale, anchors_of, plain_anchors
from leaderboard.ranking.dynascore import MEMORY_BUDGET, Rule
from leaderboard.ranking.pools import Pool


def anchors_for(matrix: Matrix, pool: Pool) -> Anchors:
    """Return the anchors of the pool, with 0 and 100 % for the owners' own metrics."""
    own = {}
    for name, custom in matrix.customs.items():
        if custom.number:  # of its approved version
            best, worst = (PERFECT, 0.0) if custom.higher_is_better else (0.0, PERFECT)
            own[name] = Scale(low=worst, high=best)
    # A pool knows only the metrics that come with the product.
    others = [name for name in matrix.weighable if name not in own]
    if pool.is_plain:
        (chance,) = pool.rows.values()  # its only model answers by chance
        anchors = plain_anchors(matrix.main, chance[matrix.main] or 0.0, others)
    else:
        anchors = anchors_of(pool.rows, matrix.main, others)
    return replace(anchors, scales={**anchors.scales, **own})


def rule_of(
    matrix: Matrix, weights: Mapping[str, float], mode: Literal["robust", "classic"] = "robust"
) -> Rule:
    """Return the rule for a Dynascore with these weights. Raises ValueError for useless ones."""
    budgets = {"memory": MEMORY_BUDGET}
    for name, custom in matrix.customs.items():
        if not custom.higher_is_better:
            budgets[name] = PERFECT
    return Rule(mode=mode, weights=weights, main=matrix.main, budgets=budgets)
