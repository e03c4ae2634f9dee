"""The exchange rates that a board's complete models show, to be frozen.

It loads numpy (see `leaderboard.board.matrix`).
"""

from typing import NamedTuple

import numpy as np
from django.utils.translation import gettext as _

from core.errors import Refused
from evaluation.models import EvaluationRun
from evaluation.models.jobs import UNFINISHED
from evaluation.runs.selectors import find_accepted_models
from leaderboard.board.columns import OWN
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.means import Means, main_errors, means_over_sets, means_table
from leaderboard.board.opening import opening_of
from leaderboard.board.scales import rule_of
from leaderboard.ranking.dynascore import Rates, exchange_rates, moved_by
from leaderboard.ranking.weights import OF_SET
from tasks.models import Task

POOL = 3
"""Complete models that are needed to freeze exchange rates."""


class PoolRates(NamedTuple):
    """Exchange rates of a pool. runner: the runner that measured the costs.

    is_sensitive: leaving out one of the models changes the order of the others.
    """

    rates: Rates
    runner: str
    is_sensitive: bool


def read_rates(task: Task) -> PoolRates:
    """Compute the exchange rates of the complete public models as if none were frozen.

    The pool uses the models' public names, and all sets have the same weight. Raises Refused if the
    models are too few to show a rate.
    """
    matrix = score_matrix(task, is_frozen=False)
    # The owner's weights of sets must not move rates that all readers share.
    set_names = [each.name for each in matrix.counting]
    means = means_over_sets(matrix, dict.fromkeys(set_names, OF_SET))
    complete, table = _complete(matrix, means), means_table(matrix, means)
    if len(complete) < POOL:
        raise Refused(
            _(
                "Exchange rates need %(needed)d published models with every result; "
                "there are %(found)d."
            )
            % {"needed": POOL, "found": len(complete)}
        )
    pool, errors = {model: table[model] for model in complete}, main_errors(matrix, means)
    rule = rule_of(matrix, dict.fromkeys(matrix.weighable, 1.0))
    rates = exchange_rates(rule, pool, errors)
    # Rates that say nothing would be frozen for good.
    if len(matrix.weighable) > 1 and not any(rates.values[name] for name in rule.metrics[1:]):
        reasons = {"reasons": " ".join(rates.notices)}
        raise Refused(_("The complete models show no exchange rate: %(reasons)s") % reasons)
    names = {str(model.id): model.name for model in matrix.models}
    named_pool = sorted(names[model] for model in rates.pool)
    owners_rule = rule_of(matrix, opening_of(task, matrix).metrics)
    is_sensitive = bool(moved_by(owners_rule, pool, errors=errors))
    return PoolRates(Rates(rates.values, tuple(named_pool)), matrix.numbers.runner, is_sensitive)


def may_freeze(task: Task) -> bool:
    """Return whether rates may be frozen automatically: no result is expected soon.

    While evaluations are running, a metric that no model has yet would get no rate. Before a set
    has a weight, the examples are not those that will count. If own workers report speed and memory
    about themselves, only owners may freeze.
    """
    matrix = score_matrix(task)
    if matrix.numbers.runner.startswith(OWN) or not matrix.has_weighted:
        return False
    weights = opening_of(task, matrix).metrics
    weighted = [place for place, name in enumerate(matrix.metrics) if weights.get(name)]
    is_unknown = np.isnan(matrix.numbers.values[..., weighted]).all(axis=(0, 1))
    if not is_unknown.any():
        return True
    under_way = EvaluationRun.objects.filter(
        submission__in=find_accepted_models(task), state__in=UNFINISHED
    )
    return not under_way.exists()


def _complete(matrix: Matrix, means: Means) -> list[str]:
    """Return the ids of the models that have every metric that any model has."""
    known = ~np.isnan(means.values).all(axis=0) & np.isin(matrix.metrics, matrix.weighable)
    is_whole = ~np.isnan(means.values[:, known]).any(axis=1) & known.any()
    return [str(matrix.models[place].id) for place in np.flatnonzero(is_whole)]
