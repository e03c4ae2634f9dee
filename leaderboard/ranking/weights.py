"""Weights of a leaderboard's metrics and sets, as a URL states them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from urllib.parse import urlencode

from core.errors import Refused
from core.text.words import gettext_noop

MAX_WEIGHT = 8.0
SET_WEIGHT = 5.0
"""The opening weight of each set; all have the same, because only ratios matter."""
METRIC_PREFIX, SET_PREFIX = "w_", "d_"
"""The prefixes of the fields of metrics and sets: `?w_accuracy=4&d_round-1=5`."""


class WeightsError(Refused):
    """Raised for invalid weights; the message says how to correct them.

    fields: the names of the invalid fields of the URL.
    """

    code = "weights"
    status = 422

    def __init__(self, message: str, *fields: str) -> None:
        super().__init__(message, field=fields[0])
        self.fields = fields


@dataclass(frozen=True)
class Weighting:
    """The weights of metrics and of sets, from 0 to MAX_WEIGHT.

    Only ratios within each group matter.
    """

    metrics: Mapping[str, float]
    sets: Mapping[str, float]

    def __hash__(self) -> int:
        return hash(self.query)

    @cached_property
    def query(self) -> str:
        """Return all weights as a query string."""
        fields = {METRIC_PREFIX + name: f"{weight:g}" for name, weight in self.metrics.items()}
        fields |= {SET_PREFIX + name: f"{weight:g}" for name, weight in self.sets.items()}
        return urlencode(fields)


def build_opening_weights(
    metrics: Iterable[str], owner_weights: Mapping[str, float], sets: Iterable[str]
) -> Weighting:
    """Return the weights that a board opens with.

    Parameters
    ----------
    metrics : iterable of str
        The metrics of the board.
    owner_weights : mapping of str to float
        The owner's weights, 0 for metrics they do not name. They may be any numbers: all are
        scaled down if one is above MAX_WEIGHT.
    sets : iterable of str
        The sets, which all have the same weight.
    """
    # Only scaled down, because small weights are what the owner wrote.
    scale = min(1.0, MAX_WEIGHT / (max(owner_weights.values(), default=0) or MAX_WEIGHT))
    return Weighting(
        {name: owner_weights.get(name, 0.0) * scale for name in metrics},
        dict.fromkeys(sets, SET_WEIGHT),
    )


def restore_saved_weights(
    metrics: Mapping[str, float], sets: Mapping[str, float], start: Weighting
) -> Weighting:
    """Return saved weights for the current metrics and sets; new ones get their opening weight."""
    return Weighting(
        {name: metrics.get(name, weight) for name, weight in start.metrics.items()},
        {name: sets.get(name, weight) for name, weight in start.sets.items()},
    )


def read_weights(query: Mapping[str, str], start: Weighting) -> Weighting:
    """Read the weights in a query; missing ones keep their opening weight. Raises WeightsError."""
    weighting = Weighting(
        {
            name: _read_weight(query, METRIC_PREFIX + name, opening_weight)
            for name, opening_weight in start.metrics.items()
        },
        {
            name: _read_weight(query, SET_PREFIX + name, opening_weight)
            for name, opening_weight in start.sets.items()
        },
    )
    check_weights(weighting)
    return weighting


def check_weight_names(fields: Collection[str], start: Weighting) -> None:
    """Raise WeightsError if a weight names a metric or set that the board does not have."""
    for kind, prefix, names in (
        ("metric", METRIC_PREFIX, start.metrics),
        ("set", SET_PREFIX, start.sets),
    ):
        for field in sorted(fields):
            name = field.removeprefix(prefix)
            if field.startswith(prefix) and name not in names:
                message = f"Unknown {kind} {name[:60]!r}. Use one of: {', '.join(names)}."
                raise WeightsError(message, field)


def _read_weight(query: Mapping[str, str], field: str, start: float) -> float:
    """Read one weight; an empty field keeps its opening weight. Raises WeightsError."""
    text = query.get(field, "").strip()
    if not text:
        return start
    name = field.partition("_")[2]
    try:
        weight = float(text)
    except ValueError:
        # A text that is not a number is refused like a number out of range.
        weight = inf
    if not 0 <= weight <= MAX_WEIGHT:
        raise WeightsError(
            f"{name}: “{text[:20]}” is not a number from 0 to {MAX_WEIGHT:g}.", field
        )
    return weight


def check_weights(weighting: Weighting) -> None:
    """Raise WeightsError if all metrics, or all sets, have the weight 0."""
    if not any(weighting.metrics.values()):
        fields = [METRIC_PREFIX + name for name in weighting.metrics]
        raise WeightsError(gettext_noop("Give at least one metric a weight above 0."), *fields)
    if weighting.sets and not any(weighting.sets.values()):
        fields = [SET_PREFIX + name for name in weighting.sets]
        raise WeightsError(gettext_noop("Give at least one test set a weight above 0."), *fields)
