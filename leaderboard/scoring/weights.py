"""What counts how much on a leaderboard: weights of metrics and of sets, as they stand in a URL."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from urllib.parse import urlencode

from core.errors import Refused
from core.text.words import gettext_noop

MOST = 8.0
OF_SET = 5.0
"""Each set's weight at first; as only ratios matter, all the same."""
METRIC, SET = "w_", "d_"
"""What the fields of metrics and of sets begin with: `?w_accuracy=4&d_round-1=5`."""


class WeightsError(Refused):
    """Weights that cannot be used; the message says how to mend them. fields: of the URL."""

    code = "weights"
    status = 422

    def __init__(self, message: str, *fields: str) -> None:
        super().__init__(message, field=fields[0])
        self.fields = fields


@dataclass(frozen=True)
class Weighting:
    """Weights from 0 to MOST; only ratios matter, among metrics and among sets."""

    metrics: Mapping[str, float]
    sets: Mapping[str, float]

    def __hash__(self) -> int:
        return hash(self.query)

    @cached_property
    def query(self) -> str:
        """All of them as a URL has them."""
        fields = {METRIC + name: f"{weight:g}" for name, weight in self.metrics.items()}
        return urlencode(fields | {SET + name: f"{each:g}" for name, each in self.sets.items()})


def opening(metrics: Iterable[str], owners: Mapping[str, float], sets: Iterable[str]) -> Weighting:
    """The owner's weights of metrics, 0 for those they do not name; all sets alike.

    Owners may write any numbers: those beyond MOST are scaled down to it.
    """
    scale = min(1.0, MOST / (max(owners.values(), default=0) or MOST))
    return Weighting(
        {name: owners.get(name, 0.0) * scale for name in metrics}, dict.fromkeys(sets, OF_SET)
    )


def saved(metrics: Mapping[str, float], sets: Mapping[str, float], start: Weighting) -> Weighting:
    """Weights that somebody saved, on the metrics and sets of today; new ones keep their start."""
    return Weighting(
        {name: metrics.get(name, weight) for name, weight in start.metrics.items()},
        {name: sets.get(name, weight) for name, weight in start.sets.items()},
    )


def read(query: Mapping[str, str], start: Weighting) -> Weighting:
    """The weights in a URL; what it does not name keeps its start. Raises WeightsError."""
    found = Weighting(
        {name: _read(query, METRIC + name, each) for name, each in start.metrics.items()},
        {name: _read(query, SET + name, each) for name, each in start.sets.items()},
    )
    check(found)
    return found


def check_names(fields: Collection[str], start: Weighting) -> None:
    """Raises WeightsError for the weight of a metric or set that the board does not have."""
    for what, prefix, known in (("metric", METRIC, start.metrics), ("set", SET, start.sets)):
        for field in sorted(one for one in fields if one.startswith(prefix)):
            name = field.removeprefix(prefix)
            if name not in known:
                message = f"There is no {what} {name[:60]!r}. Choose among: {', '.join(known)}."
                raise WeightsError(message, field)


def _read(query: Mapping[str, str], field: str, start: float) -> float:
    text = query.get(field, "").strip()
    if not text:
        return start
    name = field.partition("_")[2]
    try:
        weight = float(text)
    except ValueError:
        weight = inf
    if not 0 <= weight <= MOST:
        raise WeightsError(f"{name}: give a number from 0 to {MOST:g}, not “{text[:20]}”.", field)
    return weight


def check(weighting: Weighting) -> None:
    """Raises WeightsError where all metrics, or all sets, have the weight 0."""
    if not any(weighting.metrics.values()):
        fields = [METRIC + name for name in weighting.metrics]
        raise WeightsError(gettext_noop("Give at least one weight above 0."), *fields)
    if weighting.sets and not any(weighting.sets.values()):
        fields = [SET + name for name in weighting.sets]
        raise WeightsError(gettext_noop("Give at least one dataset a weight above 0."), *fields)
