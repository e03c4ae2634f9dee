"""The exchange rates that a board's complete models show, to be frozen.

It loads numpy (see `leaderboard.board.matrix`).
"""

from typing import NamedTuple

import numpy as np
from django.utils.translation import gettext as _

from core.errors import Refused
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import accepted
from leaderboard.board.columns import OWN
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.means import Means, main_errors, means_over_sets, means_table
from leaderboard.board.opening import opening_of
from leaderboard.board.scales import rule_of
from leaderboard.scoring.dynascore import Rates, exchange_rates, moved_by
from leaderboard.scoring.weights import OF_SET
from tasks.models import Task

State = EvaluationRun.State


POOL = 3
"""Complete models that exchange rates are frozen on, at least."""


class PoolRates(NamedTuple):
    """Rates, whose costs they rest on, and whether one of the models decides the order."""

    rates: Rates
    runner: str
    is_sensitive: bool


def read_rates(task: Task) -> PoolRates:
    """Compute the exchange rates of the complete public models as if nothing was frozen.

    The pool has the names that are shown, and all sets weigh alike. Raises Refused when the models
    show too little.
    """
    matrix = score_matrix(task, is_frozen=False)
    means = means_over_sets(matrix, dict.fromkeys((one.name for one in matrix.counting), OF_SET))
    complete, table = _complete(matrix, means), means_table(matrix, means)
    if len(complete) < POOL:
        raise Refused(
            _(
                "Exchange rates need %(needed)d published models with every result; "
                "there are %(found)d."
            )
            % {"needed": POOL, "found": len(complete)}
        )
    pool, errors = {one: table[one] for one in complete}, main_errors(matrix, means)
    rule = rule_of(matrix, dict.fromkeys(matrix.weighable, 1.0))
    rates = exchange_rates(rule, pool, errors)
    if len(matrix.weighable) > 1 and not any(rates.values[name] for name in rule.metrics[1:]):
        reasons = {"reasons": " ".join(rates.notices)}
        raise Refused(_("The complete models show no exchange rate: %(reasons)s") % reasons)
    owners = rule_of(matrix, opening_of(task, matrix).metrics)
    names = {str(model.id): model.name for model in matrix.models}
    shown = Rates(rates.values, tuple(sorted(names[one] for one in rates.pool)))
    is_sensitive = bool(moved_by(owners, pool, errors=errors))
    return PoolRates(shown, matrix.numbers.runner, is_sensitive)


def may_freeze(task: Task) -> bool:
    """Return whether rates may be frozen automatically: nothing more is to come soon.

    While evaluations are under way, a metric that no model has yet would stay without a rate.
    Before there is a set with a weight, the examples are not those that will count. Speed and
    memory that own workers report about themselves are frozen only by owners.
    """
    under_way = EvaluationRun.objects.filter(
        submission__in=accepted(task), state__in=[State.QUEUED, State.RUNNING]
    )
    matrix = score_matrix(task)
    weights = opening_of(task, matrix).metrics
    wanted = [place for place, name in enumerate(matrix.metrics) if weights.get(name)]
    is_unknown = np.isnan(matrix.numbers.values[..., wanted]).all(axis=(0, 1))
    is_told = matrix.numbers.runner.startswith(OWN)
    return not is_told and matrix.has_weighted and not (is_unknown.any() and under_way.exists())


def _complete(matrix: Matrix, means: Means) -> list[str]:
    """Return ids of the models that have each metric that any model has."""
    known = ~np.isnan(means.values).all(axis=0) & np.isin(matrix.metrics, matrix.weighable)
    is_whole = ~np.isnan(means.values[:, known]).any(axis=1) & known.any()
    return [str(matrix.models[place].id) for place in np.flatnonzero(is_whole)]
