"""The score of a board in one sentence: with its shares, and its anchors or exchange rates."""

from collections.abc import Callable, Mapping
from typing import Any

from core.text.words import gettext_noop

SENTENCE = gettext_noop(
    "Score = 100 × q × (%(shares)s): q is the place of %(main)s, and each place is from 0 to 1 on "
    "a fixed scale: %(places)s (reference pool %(version)s); so nothing counts without "
    "understanding, and no other model moves a score."
)
PLAIN = gettext_noop(
    "Score = 100 × q × (%(shares)s): q is the place of %(main)s, and each place is from 0 to 1: "
    "%(places)s; so nothing counts without understanding, and no other model moves a score."
)
PRICED = gettext_noop(
    "Score = %(terms)s. The numbers after ÷ say how much of a metric one unit of %(main)s is worth."
)
PLACE = gettext_noop("%(metric)s from %(low)s to %(high)s")
"""Of a metric the values at which its place is 0 and 1."""


def _plain(name: str) -> str:
    return name.replace("_", " ")


def formula(
    weights: Mapping[str, float],
    main: str,
    anchors: Mapping[str, Any] | None,
    *,
    say: Callable[[str], str] = str,
    words: Callable[[str], str] = _plain,
) -> str:
    """Of a board, or of a snapshot of one; empty where it is not anchored.

    anchors: as of `leaderboard.board.tables`: versions, and by metric the values at 0 and 1. say:
    translates a sentence; words: names a metric. In English unless told.
    """
    if anchors is None:
        return ""
    scales = anchors["scales"]
    used = {name: weight for name, weight in weights.items() if weight and name in scales}
    total = sum(used.values()) or 1
    shares = (
        f"{weight / total:.3g}" + ("" if name == main else f" × {words(name)}")
        for name, weight in used.items()
    )
    places = (
        say(PLACE)
        % {
            "metric": words(name),
            "low": f"{scales[name]['low']:.4g}",
            "high": f"{scales[name]['high']:.4g}",
        }
        for name in dict.fromkeys([main, *used])
    )
    return say(SENTENCE if anchors["version"] else PLAIN) % {
        "shares": " + ".join(shares),
        "main": words(main),
        "places": "; ".join(places),
        "version": f"{anchors['version']}.{anchors.get('costs', 0)}",
    }


def priced_formula(
    weights: Mapping[str, float],
    main: str,
    rates: Mapping[str, float | None],
    budgets: Mapping[str, float],
    *,
    say: Callable[[str], str] = str,
    words: Callable[[str], str] = _plain,
) -> str:
    """Return the formula of a board that has exchange rates; empty where no metric has one.

    budgets: see `leaderboard.scoring.dynascore.Rule`. say, words: see `formula`.
    """
    used = {name: w for name, w in weights.items() if w and rates.get(name)}
    total = sum(used.values())
    terms = []
    for name, weight in used.items():
        value = f"({budgets[name]:g} − {words(name)})" if name in budgets else words(name)
        price = "" if name == main else f" ÷ {rates[name]:.4g}"
        terms.append(f"{weight / total:.3g} × {value}{price}")
    return say(PRICED) % {"terms": " + ".join(terms), "main": words(main)} if terms else ""
