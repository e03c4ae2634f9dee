"""The Pareto front: the models that no other one beats in everything."""

from collections.abc import Mapping
from typing import Literal

BLOCK_MODELS = 256
"""The number of models that are compared with all others at once."""


def find_pareto_front(
    points: Mapping[str, Mapping[str, float | None]], signs: Mapping[str, Literal[1, -1]]
) -> set[str]:
    """Return the models that are not dominated.

    A model is dominated by one that is at least as good in every metric and better in one, so equal
    models are either all returned or none. A model that lacks a value is not compared. Values are
    finite.

    signs: for each metric, 1 if higher is better, else -1.
    """
    import numpy as np

    complete_models, rows = [], []
    for model, row in points.items():
        values_of_model = [row.get(metric) for metric in signs]
        if None not in values_of_model:
            complete_models.append(model)
            rows.append(values_of_model)
    values = np.array(rows, dtype=float).reshape(len(complete_models), len(signs))
    values *= list(signs.values())

    is_dominated = np.zeros(len(complete_models), dtype=bool)
    # In blocks, so that memory grows linearly with the number of models.
    for begin in range(0, len(complete_models), BLOCK_MODELS):
        block = values[begin : begin + BLOCK_MODELS]
        is_as_good = np.ones((len(block), len(complete_models)), dtype=bool)
        # False everywhere: no metric was compared yet.
        is_better = ~is_as_good
        for column, of_block in zip(values.T, block.T, strict=True):
            is_as_good &= column >= of_block[:, None]
            is_better |= column > of_block[:, None]
        is_dominated[begin : begin + BLOCK_MODELS] = (is_as_good & is_better).any(axis=1)
    return {model for model, out in zip(complete_models, is_dominated, strict=True) if not out}
