"""Shares as people read them."""

from collections.abc import Mapping

from django import template
from django.utils.translation import gettext

from core.charts import percent
from validation.rates.rates import Rate, Undefined
from validation.statistics.definitions import DEFINITIONS, Definition
from validation.statistics.report import Number

register = template.Library()
HEADLINE_DECIDED, HEADLINE_AUTHORS = 20, 3
"""Numbers of fewer decided examples, or fewer authors, are no headlines."""
register.filter("percent", percent)


@register.filter
def definition(name: str) -> Definition | None:
    """Return the definition of the share called `name`; None if it has none."""
    return DEFINITIONS.get(name)


@register.filter
def known(number: Number) -> Number | str:
    """Return a count, or a text that it is unknown."""
    return gettext("unknown") if isinstance(number, Undefined) else number


@register.filter
def missing(numbers: Mapping[str, Number]) -> str:
    """Describe what a round lacks before its vMER can be a headline; empty if nothing."""
    vmer, decided_count = numbers["vmer"], numbers["decided"]
    if not isinstance(decided_count, int) or decided_count < HEADLINE_DECIDED:
        message = gettext("Error rate after %(needed)d decided examples (%(number)s so far)")
        return message % {"number": decided_count, "needed": HEADLINE_DECIDED}
    if not isinstance(vmer, Rate):
        return gettext(vmer.reason) if isinstance(vmer, Undefined) else ""
    if vmer.clusters is not None and vmer.clusters < HEADLINE_AUTHORS:
        message = gettext("Error rate after %(needed)d authors (%(number)d so far)")
        return message % {"number": vmer.clusters, "needed": HEADLINE_AUTHORS}
    return ""
