"""Find the models that a short evaluation can't tell apart from the evaluated one. Pure."""

from collections.abc import Mapping
from typing import TypeVar

Model = TypeVar("Model")


def find_inseparable(
    interval: tuple[float, float, float], share_by_model: Mapping[Model, float | None]
) -> list[Model]:
    """Return the models whose share of right answers on the whole set lies in the interval.

    interval: low end, value and high end of the estimate. The share of a model that answered the
    whole set is exact there, so the difference of both has the interval of the estimate alone.
    The nearest models come first.
    """
    low, value, high = interval
    distances = {
        model: abs(share - value)
        for model, share in share_by_model.items()
        if share is not None and low <= share <= high
    }
    return sorted(distances, key=lambda model: distances[model])
