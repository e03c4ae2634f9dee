"""The exchange rates that a board's complete models show, to be frozen.

It loads numpy (see `leaderboard.board.matrix`).
"""

from typing import NamedTuple

import numpy as np
from django.utils.translation import gettext as _

from core.errors import Refused
from evaluation.models import EvaluationRun
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.runs.selectors import find_accepted_models
from leaderboard.board.columns import OWN_RUNNER_PREFIX
from leaderboard.board.matrix import Matrix, read_matrix
from leaderboard.board.means import Means, build_means_table, compute_main_errors, compute_means
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.scales import build_rule
from leaderboard.ranking.dynascore import Rates, compute_exchange_rates, find_order_changing_models
from leaderboard.ranking.weights import SET_WEIGHT
from tasks.models import Task

MIN_POOL_MODELS = 3
"""The fewest complete models for which exchange rates are frozen."""


class PoolRates(NamedTuple):
    """Exchange rates of a pool. runner: the runner that measured the costs.

    is_sensitive: leaving out one of the models changes the order of the others.
    """

    rates: Rates
    runner: str
    is_sensitive: bool


def compute_pool_rates(task: Task) -> PoolRates:
    """Compute the exchange rates of the complete public models as if none were frozen.

    The pool uses the models' public names, and all sets have the same weight. Raises Refused if too
    few models have all results, or if they show no exchange rate.
    """
    matrix = read_matrix(task, is_frozen=False)
    # The owner's weights of sets must not move rates that all readers share.
    set_names = [each.name for each in matrix.counting_sets]
    means = compute_means(matrix, dict.fromkeys(set_names, SET_WEIGHT))
    complete_models, table = _find_complete_models(matrix, means), build_means_table(matrix, means)
    if len(complete_models) < MIN_POOL_MODELS:
        raise Refused(
            _(
                "Exchange rates need %(needed)d published models with all results. So "
                "far: %(found)d."
            )
            % {"needed": MIN_POOL_MODELS, "found": len(complete_models)}
        )
    pool, errors = (
        {model: table[model] for model in complete_models},
        compute_main_errors(matrix, means),
    )
    rule = build_rule(matrix, dict.fromkeys(matrix.weighable_metrics, 1.0))
    rates = compute_exchange_rates(rule, pool, errors)
    # Otherwise meaningless rates would be frozen permanently.
    if len(matrix.weighable_metrics) > 1 and not any(
        rates.values[name] for name in rule.metrics[1:]
    ):
        reasons = {"reasons": " ".join(rates.notices)}
        raise Refused(
            _("We can't compute exchange rates from the models with all results: %(reasons)s")
            % reasons
        )
    names = {str(model.id): model.name for model in matrix.models}
    named_pool = sorted(names[model] for model in rates.pool)
    owners_rule = build_rule(matrix, choose_opening_weights(task, matrix).metrics)
    is_sensitive = bool(find_order_changing_models(owners_rule, pool, errors=errors))
    return PoolRates(Rates(rates.values, tuple(named_pool)), matrix.numbers.runner, is_sensitive)


def may_freeze_rates(task: Task) -> bool:
    """Return whether rates may be frozen automatically, because no missing result is on its way.

    While evaluations are running, a metric that no model has yet would get no rate. Before a set
    has a weight, the examples are not those that will count. If own workers report speed and memory
    about themselves, only owners may freeze.
    """
    matrix = read_matrix(task)
    if matrix.numbers.runner.startswith(OWN_RUNNER_PREFIX) or not matrix.has_weighted_set:
        return False
    weights = choose_opening_weights(task, matrix).metrics
    weighted = [place for place, name in enumerate(matrix.metrics) if weights.get(name)]
    is_unknown = np.isnan(matrix.numbers.values[..., weighted]).all(axis=(0, 1))
    if not is_unknown.any():
        return True
    unfinished_runs = EvaluationRun.objects.filter(
        submission__in=find_accepted_models(task), state__in=UNFINISHED_STATES
    )
    return not unfinished_runs.exists()


def _find_complete_models(matrix: Matrix, means: Means) -> list[str]:
    """Return the ids of the models that have every metric that any model has."""
    known = ~np.isnan(means.values).all(axis=0) & np.isin(matrix.metrics, matrix.weighable_metrics)
    is_whole = ~np.isnan(means.values[:, known]).any(axis=1) & known.any()
    return [str(matrix.models[place].id) for place in np.flatnonzero(is_whole)]
