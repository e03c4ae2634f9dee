"""The share of resamples in which each model is better than each of the others. Loads numpy."""

from collections.abc import Iterator

import numpy as np
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.figures.wins import WinCell, draw_wins
from core.numbers import format_percent
from leaderboard.board.matrix import Matrix

MAX_MODELS = 10
"""The most models in the matrix: those with the best mean over the sets that count."""


def draw_win_matrix(matrix: Matrix, extra_query: str = "") -> SafeString:
    """Draw the share of resamples in which a model's main metric exceeds another's.

    Returns "" for fewer than two models, or if the main metric is not resampled. Each number links
    to the comparison of its two models; `extra_query` is added to the link's query string.
    """
    numbers, metric = matrix.numbers, matrix.metrics.index(matrix.main)
    if matrix.main not in matrix.drawn_metrics:
        return SafeString()
    values = numbers.values[:, : len(numbers.draws), metric]
    is_run = ~np.isnan(values)
    mean = np.nan_to_num(values).sum(axis=1) / np.maximum(is_run.sum(axis=1), 1)
    best_first = np.argsort(-mean, kind="stable").tolist()
    best_models = [model for model in best_first if is_run[model].any()][:MAX_MODELS]
    if len(best_models) < 2:
        return SafeString()
    names = [matrix.models[model].name for model in best_models]
    cells = [
        list(_iter_win_cells(matrix, model, best_models, extra_query)) for model in best_models
    ]
    return draw_wins(names, cells, title=_("Wins"), corner=_("Model"))


def _iter_win_cells(
    matrix: Matrix, model: int, opponents: list[int], extra_query: str
) -> Iterator[WinCell]:
    """Yield a model's shares of wins against each opponent."""
    for opponent in opponents:
        share = _compute_win_share(matrix, model, opponent) if model != opponent else None
        if share is None:
            yield WinCell(None)
            continue
        first, second = matrix.models[model], matrix.models[opponent]
        values = {"first": first.name, "second": second.name, "share": format_percent(share, 0)}
        # Translators: first, second: models; share: how often the first one won
        words = _("%(first)s against %(second)s: %(share)s") % values
        yield WinCell(share, f"?a={first.id}&b={second.id}{extra_query}", words)


def _compute_win_share(matrix: Matrix, model: int, opponent: int) -> float | None:
    """Return the share of resamples with a higher mean over the shared sets; ties count half.

    None if the models share no set.
    """
    numbers, metric = matrix.numbers, matrix.metrics.index(matrix.main)
    pair = numbers.values[[model, opponent], : len(numbers.draws), metric]
    # Only sets of both models: a set that one of them lacks would favour the other.
    shared_set_indices = np.flatnonzero(~np.isnan(pair).any(axis=0))
    if not len(shared_set_indices):
        return None
    draws = numbers.draws[shared_set_indices, matrix.drawn_metrics.index(matrix.main)]
    gains = (draws[:, model] - draws[:, opponent]).mean(axis=0)
    return float((gains > 0).mean() + (gains == 0).mean() / 2)
