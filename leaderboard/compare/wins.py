"""How surely each model is better than each other one. It loads numpy."""

from collections.abc import Iterator

import numpy as np
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.charts import Heat
from core.charts import matrix as heat_matrix
from leaderboard.board.matrix import Matrix

MAX_MODELS = 10
"""Models in the matrix: those with the best mean over the sets that count."""


def draw_win_matrix(matrix: Matrix, more: str = "") -> SafeString:
    """Draw the share of resamples in which a model's main metric exceeds another's.

    Returns "" for fewer than two models. Each number links to that comparison; `more` is added to
    its query string.
    """
    numbers, metric = matrix.numbers, matrix.metrics.index(matrix.main)
    if matrix.main not in matrix.drawn:
        return SafeString()
    values = numbers.values[:, : len(numbers.draws), metric]
    is_run = ~np.isnan(values)
    mean = np.nan_to_num(values).sum(axis=1) / np.maximum(is_run.sum(axis=1), 1)
    best_first = np.argsort(-mean, kind="stable").tolist()
    best = [model for model in best_first if is_run[model].any()][:MAX_MODELS]
    if len(best) < 2:
        return SafeString()
    names = [matrix.models[model].name for model in best]
    cells = [list(_iter_win_cells(matrix, model, best, more)) for model in best]
    rows = list(zip(names, cells, strict=True))
    return heat_matrix(names, rows, title=_("Wins"), corner=_("Model"))


def _iter_win_cells(matrix: Matrix, model: int, others: list[int], more: str) -> Iterator[Heat]:
    """Yield a model's shares of wins against each of the others."""
    for other in others:
        share = _compute_win_share(matrix, model, other) if model != other else None
        if share is None:
            yield Heat("–")
            continue
        first, second = matrix.models[model], matrix.models[other]
        values = {"first": first.name, "second": second.name, "share": f"{share:.0%}"}
        # Translators: first, second: models; share: how often the first one won
        words = _("%(first)s against %(second)s: %(share)s") % values
        yield Heat(values["share"], share, f"?a={first.id}&b={second.id}{more}", words)


def _compute_win_share(matrix: Matrix, model: int, other: int) -> float | None:
    """Return the share of resamples with a higher mean over the shared sets; ties count half."""
    numbers, metric = matrix.numbers, matrix.metrics.index(matrix.main)
    pair = numbers.values[[model, other], : len(numbers.draws), metric]
    # Only sets of both: a set that one of them lacks would favour the other.
    places = np.flatnonzero(~np.isnan(pair).any(axis=0))
    if not len(places):
        return None
    draws = numbers.draws[places, matrix.drawn.index(matrix.main)]
    gains = (draws[:, model] - draws[:, other]).mean(axis=0)
    return float((gains > 0).mean() + (gains == 0).mean() / 2)
