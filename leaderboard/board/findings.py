"""The titles of a board's charts: their findings in words, derived from the numbers."""

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.numbers import format_percent


class RankedName(NamedTuple):
    """A ranked model's name, the best and the worst rank that the data allow, and its score."""

    name: str
    first: int
    last: int
    score: str


class MeasuredName(NamedTuple):
    """A model's name and its result with the interval, in percent. Ends are None if unknown."""

    name: str
    value: float
    low: float | None
    high: float | None


def find_possible_leaders(models: Sequence[MeasuredName]) -> list[str]:
    """Return the best model and those that the intervals can't tell apart from it, best first.

    A model without an interval can't be told apart from any other one.

    >>> find_possible_leaders([MeasuredName("a", 60, 55, 65), MeasuredName("b", 50, 45, 54)])
    ['a']
    """
    by_value = sorted(models, key=lambda model: -model.value)
    leaders = []
    for model in by_value:
        best_low = by_value[0].low
        is_clearly_worse = best_low is not None and model.high is not None and model.high < best_low
        if model is by_value[0] or not is_clearly_worse:
            leaders.append(model.name)
    return leaders


def describe_tie(names: Sequence[str]) -> str:
    """Return a sentence that says that the models can't be told apart. names: at least two."""
    if len(names) == 2:
        values = {"model": names[0], "other": names[1]}
        return _("%(model)s and %(other)s can't be told apart yet") % values
    return _("The first %(number)d models can't be told apart yet") % {"number": len(names)}


def describe_ranking(models: Sequence[RankedName]) -> str:
    """Return a sentence on who leads a ranking: one model clearly, or several that may be first.

    models: those with a score, in the order of the board.
    """
    if not models:
        return _("No model has a score yet")
    if len(models) == 1:
        values = {"model": models[0].name, "score": models[0].score}
        # Translators: title of a chart: a model and its score
        return _("%(model)s scores %(score)s") % values
    # By the best possible rank: several models may be first.
    leaders = [model for model in models if model.first == 1]
    if len(leaders) == 1:
        # It leads only if every other model is significantly worse.
        if leaders[0].last == 1:
            values = {"model": leaders[0].name, "score": leaders[0].score}
            return _("%(model)s leads with %(score)s") % values
        leaders = [model for model in models if model.first <= leaders[0].last]
    if len(leaders) < 2:
        return _("No model clearly leads yet")
    return describe_tie([model.name for model in leaders])


def is_clearly_better(first: MeasuredName, second: MeasuredName, *, is_less_better: bool) -> bool:
    """Return whether the first model is better, whatever values the intervals allow.

    A result without an interval, such as memory, is taken as exact.
    """
    low, high = first.low, first.high
    other_low, other_high = second.low, second.high
    if low is None or high is None:
        low = high = first.value
    if other_low is None or other_high is None:
        other_low = other_high = second.value
    return high < other_low if is_less_better else low > other_high


def describe_front(names: Sequence[str], x: str, y: str, *, is_clear: bool) -> str:
    """Return a sentence on the models that no other one beats in both measures.

    x, y: the names of the two measures, as text. is_clear: whether the only such model is clearly
    better than all others in both.
    """
    values = {"x": x, "y": y, "model": next(iter(names), "")}
    if not names:
        # Translators: title of a chart: two metrics
        return _("%(y)s and %(x)s") % values
    if len(names) == 1 and is_clear:
        return _("%(model)s is best in both %(y)s and %(x)s") % values
    if len(names) == 1:
        return _("%(model)s has the best measured %(y)s and %(x)s") % values
    sentence = ngettext(
        "%(number)d model has the best measured balance of %(y)s and %(x)s",
        "%(number)d models have the best measured balance of %(y)s and %(x)s",
        len(names),
    )
    return sentence % {**values, "number": len(names)}


def describe_trend(models: Sequence[MeasuredName], metric: str, set_name: str) -> str:
    """Return a sentence on the models that lead on the newest set, as far as intervals show it.

    models: those of the chart that have a result on this set.
    """
    values: dict[str, str | int] = {"metric": metric, "set": set_name}
    if not models:
        return _("%(metric)s of the top models by round") % values
    leaders = find_possible_leaders(models)
    best = max(models, key=lambda model: model.value)
    values |= {"model": leaders[0], "value": format_percent(best.value / 100, 0)}
    if len(models) == 1:
        return _("%(model)s reaches %(metric)s %(value)s on %(set)s") % values
    if len(leaders) == 1:
        return _("%(model)s leads on %(set)s with %(metric)s %(value)s") % values
    if len(leaders) == 2:
        values["other"] = leaders[1]
        return _("%(model)s and %(other)s can't be told apart on %(set)s yet") % values
    values["number"] = len(leaders)
    return _("%(number)d models can't be told apart on %(set)s yet") % values
