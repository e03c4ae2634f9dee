"""The request for a leaderboard, as its URL states it: weights, order, page and plot."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

from leaderboard.ranking.weights import (
    METRIC_PREFIX,
    SET_PREFIX,
    Weighting,
    WeightsError,
    check_weight_names,
    read_weights,
)

OPTIONS = ("fork", "mode", "mine", "sort", "page", "all", "x", "y", "open", "format", "ruler")
"""The names of the options in a URL, apart from weights."""
TRANSIENT_OPTIONS = ("page", "open", "format", "ruler")
"""Options that are not kept when the weights or the order change."""
Mode = Literal["anchored", "robust", "classic"]
MODES: tuple[Mode, ...] = ("anchored", "robust", "classic")
Query = Mapping[str, Sequence[str]]
"""All values of each field, as `QueryDict.lists` returns them."""


@dataclass(frozen=True)
class BoardRequest:
    """The weights and options of a board request. start: the owner's weights, or a fork's."""

    start: Weighting
    weighting: Weighting
    options: Mapping[str, str]

    @property
    def is_changed(self) -> bool:
        """Return whether the weights differ from the opening weights."""
        return self.weighting != self.start

    @property
    def mode(self) -> Mode | None:
        """Return the requested formula; None for the board's default."""
        for mode in MODES:
            if mode == self.options.get("mode"):
                return mode
        return None

    @property
    def lasting_options(self) -> Mapping[str, str]:
        """Return the options that are kept when weights or the order change."""
        return {name: text for name, text in self.options.items() if name not in TRANSIENT_OPTIONS}

    def link(self, **changes: str) -> str:
        """Return the query string of the same board with changed options; "" removes an option."""
        fields = {**self.lasting_options, **changes}
        options = urlencode({name: text for name, text in fields.items() if text})
        # Links of an unchanged board stay short, and follow the owner's weights when these change.
        weights = self.weighting.query if self.is_changed else ""
        return "?" + "&".join(filter(None, (weights, options)))


def read_request(query: Query, start: Weighting, modes: Sequence[Mode] = MODES) -> BoardRequest:
    """Read the weights and options in a query. modes: the board's formulas.

    Raises WeightsError, also for the weight of an unknown metric or set.
    """
    check_weight_names(query, start)
    options = {name: query[name][-1] for name in OPTIONS if any(query.get(name, ()))}
    if options.get("mode", modes[0]) not in modes:
        raise WeightsError(f"mode: use one of {', '.join(modes)}.", "mode")
    return BoardRequest(
        start,
        read_weights(_read_chosen_weights(query, start, choose_changed_value), start),
        options,
    )


def read_former_weighting(query: Query, start: Weighting) -> Weighting | None:
    """Return the weights that the board had when the form was sent; None without a form.

    Raises WeightsError.
    """
    # The form sends each weight more than once: its old value, the slider's and the box's.
    if not any(len(texts) > 1 for texts in query.values()):
        return None
    return read_weights(_read_chosen_weights(query, start, lambda texts: texts[0]), start)


def choose_changed_value(texts: Sequence[str]) -> str:
    """Choose the changed value among the former weight, the slider's and the text box's.

    Without JavaScript, slider and text box are not synchronised.

    >>> choose_changed_value(["4", "5", "4"]), choose_changed_value(["4", "4", "6"])
    ('5', '6')
    >>> choose_changed_value(["4"])
    '4'
    """
    for text in reversed(texts):
        if text != texts[0]:
            return text
    return texts[0]


def _read_chosen_weights(
    query: Query, start: Weighting, choose: Callable[[Sequence[str]], str]
) -> dict[str, str]:
    """Return the weights that a query sets, as text.

    A weight that equals the rounded opening weight keeps the exact one.
    """
    opening_weights = {
        METRIC_PREFIX + name: format_weight(weight) for name, weight in start.metrics.items()
    }
    opening_weights |= {
        SET_PREFIX + name: format_weight(weight) for name, weight in start.sets.items()
    }
    chosen_weights = {}
    for name, opening_text in opening_weights.items():
        if query.get(name):
            text = choose(query[name])
            # A slider shows one decimal, but unchanged weights must keep all their decimals.
            if text != opening_text:
                chosen_weights[name] = text
    return chosen_weights


def format_weight(weight: float) -> str:
    """Return a weight as a slider shows it, with one decimal."""
    return f"{round(weight, 1):g}"


@dataclass(frozen=True)
class Slider:
    """A weight in the form. total: the sum of all weights. share: this weight's share of the total.

    total is empty and share is None if the weights are invalid.
    """

    field: str
    name: str
    text: str
    step: str
    total: str = ""
    share: float | None = None


def build_sliders(prefix: str, weights: Mapping[str, float]) -> list[Slider]:
    """Return the sliders of metrics or of sets."""
    total = sum(weights.values())
    is_whole = all(weight.is_integer() for weight in weights.values())
    result = []
    for name, weight in weights.items():
        slider = Slider(
            field=prefix + name,
            name=name,
            text=format_weight(weight),
            step="1" if is_whole else "0.1",
            total=format_weight(total),
            share=weight / total,
        )
        result.append(slider)
    return result


def build_typed_sliders(query: Query, prefix: str, start: Mapping[str, float]) -> list[Slider]:
    """Return the sliders with the submitted values, for weights that are invalid."""
    result = []
    for name, weight in start.items():
        texts = query.get(prefix + name, [format_weight(weight)])
        result.append(Slider(prefix + name, name, choose_changed_value(texts), step="0.1"))
    return result
