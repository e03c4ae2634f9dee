"""The score of a board in one sentence: with its shares, and its anchors or exchange rates."""

from collections.abc import Callable, Mapping
from typing import Any

from core.text.words import gettext_noop

SENTENCE = gettext_noop(
    "Score = 100 × q × (%(shares)s). q is %(main)s, rescaled to 0–1 like all metrics. "
    "Scales: %(places)s (reference pool %(version)s). A model without any understanding "
    "scores 0, and other models don't change a score."
)
PLAIN_SENTENCE = gettext_noop(
    "Score = 100 × q × (%(shares)s). q is %(main)s, rescaled to 0–1 like all metrics. "
    "Scales: %(places)s. A model without any understanding scores 0, and other models don't "
    "change a score."
)
PRICED_SENTENCE = gettext_noop(
    "Score = %(terms)s. The number after ÷ is the exchange rate. This much of the metric is worth "
    "one unit of %(main)s."
)
SCALE_TERM = gettext_noop("%(metric)s from %(low)s to %(high)s")
"""A metric with its values at positions 0 and 1."""


def _format_plain(name: str) -> str:
    return name.replace("_", " ")


def _format_plain_number(number: float, digits: int) -> str:
    return f"{number:.{digits}g}"


def describe_formula(
    weights: Mapping[str, float],
    main_metric: str,
    anchors: Mapping[str, Any] | None,
    *,
    translate: Callable[[str], str] = str,
    name_metric: Callable[[str], str] = _format_plain,
    format_number: Callable[[float, int], str] = _format_plain_number,
) -> str:
    """Describe in a sentence the anchored score of a board or a snapshot.

    Parameters
    ----------
    weights : mapping of str to float
        The weights of the metrics.
    main_metric : str
        The main metric.
    anchors : mapping, optional
        As `leaderboard.board.tables.describe_anchors` returns them: versions, and for each metric
        the values at positions 0 and 1.
    translate : callable
        Translates a sentence. English by default.
    name_metric : callable
        Names a metric.
    format_number : callable
        Formats a number with so many significant digits.

    Returns
    -------
    str
        Empty for a board that is not anchored.
    """
    if anchors is None:
        return ""
    scales = anchors["scales"]
    used_weights = {name: weight for name, weight in weights.items() if weight and name in scales}
    total = sum(used_weights.values()) or 1
    shares = []
    for name, weight in used_weights.items():
        share = format_number(weight / total, 3)
        shares.append(share if name == main_metric else f"{share} × {name_metric(name)}")
    terms = []
    for name in dict.fromkeys([main_metric, *used_weights]):
        low, high = (format_number(scales[name][end], 4) for end in ("low", "high"))
        terms.append(
            translate(SCALE_TERM) % {"metric": name_metric(name), "low": low, "high": high}
        )
    # A task without reference models has version 0 of the plain anchors.
    sentence = SENTENCE if anchors["version"] else PLAIN_SENTENCE
    return translate(sentence) % {
        "shares": " + ".join(shares),
        "main": name_metric(main_metric),
        "places": "; ".join(terms),
        "version": f"{anchors['version']}.{anchors.get('costs', 0)}",
    }


def describe_priced_formula(
    weights: Mapping[str, float],
    main_metric: str,
    rates: Mapping[str, float | None],
    budgets: Mapping[str, float],
    *,
    translate: Callable[[str], str] = str,
    name_metric: Callable[[str], str] = _format_plain,
    format_number: Callable[[float, int], str] = _format_plain_number,
) -> str:
    """Describe in a sentence the score of a board that has exchange rates.

    Parameters
    ----------
    weights : mapping of str to float
        The weights of the metrics.
    main_metric : str
        The main metric.
    rates : mapping of str to float or None
        The exchange rates.
    budgets : mapping of str to float
        See `leaderboard.ranking.dynascore.Rule`.
    translate, name_metric, format_number : callable
        See `describe_formula`.

    Returns
    -------
    str
        Empty where no metric with a weight has a rate.
    """
    used_weights = {name: weight for name, weight in weights.items() if weight and rates.get(name)}
    total = sum(used_weights.values())
    terms = []
    for name, weight in used_weights.items():
        value = name_metric(name)
        if name in budgets:
            value = f"({format_number(budgets[name], 6)} − {value})"
        term = f"{format_number(weight / total, 3)} × {value}"
        rate = rates[name]
        if name != main_metric and rate:
            term += f" ÷ {format_number(rate, 4)}"
        terms.append(term)
    if not terms:
        return ""
    return translate(PRICED_SENTENCE) % {
        "terms": " + ".join(terms),
        "main": name_metric(main_metric),
    }
