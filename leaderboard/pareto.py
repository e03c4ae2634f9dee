"""Which models no other one beats in everything."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def front(
    points: Mapping[str, Mapping[str, float | None]], signs: Mapping[str, Literal[1, -1]]
) -> set[str]:
    """The models that are not dominated. signs: of each metric, 1 where more is better, else -1.

    A model is dominated by one that is at least as good in every metric and better in one, so equal
    models stay together. A model that lacks a value is not compared. Values are finite.
    """
    import numpy as np

    whole = [model for model, row in points.items() if all(row.get(m) is not None for m in signs)]
    values = np.array([[points[model][m] for m in signs] for model in whole], dtype=float)
    values = values.reshape(len(whole), len(signs)) * [*signs.values()]

    def is_dominated(row: "NDArray[np.float64]") -> bool:
        return bool(((values >= row).all(axis=1) & (values > row).any(axis=1)).any())

    return {model for model, row in zip(whole, values, strict=True) if not is_dominated(row)}
