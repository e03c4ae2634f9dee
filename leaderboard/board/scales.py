"""On which scales a board's metrics count, the owners' own among them.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from leaderboard.board.matrix import Matrix
from leaderboard.scoring.anchored import PERFECT, Anchors, Scale, anchors_of, plain_anchors
from leaderboard.scoring.dynascore import MEMORY_BUDGET, Rule
from leaderboard.scoring.pools import Pool


def anchors_for(matrix: Matrix, pool: Pool) -> Anchors:
    """Return the anchors of the pool, with 0 and 100 % for the owners' own metrics."""
    own = {
        name: Scale(*((0.0, PERFECT) if one.higher_is_better else (PERFECT, 0.0)))
        for name, one in matrix.customs.items()
        if one.number
    }
    known = [name for name in matrix.weighable if name not in own]
    if pool.is_plain:
        ((_, chance),) = pool.rows.items()
        found = plain_anchors(matrix.main, chance[matrix.main] or 0.0, known)
    else:
        found = anchors_of(pool.rows, matrix.main, known)
    return replace(found, scales={**found.scales, **own})


def rule_of(
    matrix: Matrix, weights: Mapping[str, float], mode: Literal["robust", "classic"] = "robust"
) -> Rule:
    """Return the rule for a Dynascore with these weights. Raises ValueError for useless ones."""
    own = (name for name, one in matrix.customs.items() if not one.higher_is_better)
    budgets = {"memory": MEMORY_BUDGET, **dict.fromkeys(own, PERFECT)}
    return Rule(mode=mode, weights=weights, main=matrix.main, budgets=budgets)
