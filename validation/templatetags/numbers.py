"""Template filters for shares and counts."""

from collections.abc import Iterable, Mapping

from django import template
from django.utils.translation import gettext

from core.numbers import add_percent_sign, format_decimal, format_percent, format_percent_number
from tasks.models import Round
from validation.rates.rates import Rate, Undefined
from validation.statistics.definitions import DEFINITIONS, Definition
from validation.statistics.report import Number

register = template.Library()
HEADLINE_DECIDED, HEADLINE_AUTHORS = 20, 3
"""The fewest decided examples, and the fewest authors, for a catch rate that is a headline."""
register.filter("percent", format_percent)
register.filter("percent_number", format_percent_number)
register.filter("decimal", format_decimal)
register.filter("with_percent_sign", add_percent_sign)


@register.filter
def whole_percent(share: float) -> str:
    """Format a share from 0 to 1 as a percentage without decimals."""
    return format_percent(share, 0)


@register.simple_tag
def percent_sign() -> str:
    """Return the percent sign of the reader's language, with its space."""
    return add_percent_sign("")


@register.filter
def in_unit(share: float, definition: Definition | None) -> str:
    """Format a share in the unit of its definition: in percent, or in points."""
    if definition is None or definition.unit == "%":
        return format_percent(share)
    return gettext("%(number)s points") % {"number": format_percent_number(share)}


@register.filter
def definition(name: str) -> Definition | None:
    """Return the definition of the share called `name`; None if it has none."""
    return DEFINITIONS.get(name)


@register.filter
def explanation(name: str) -> str:
    """Explain the share called `name` in a column's tooltip, with its symbol and formula."""
    meaning = DEFINITIONS[name]
    formula = gettext(meaning.formula)
    return f"{meaning.symbol}: {formula}" if meaning.symbol else formula


@register.filter
def find_weighted_rate(
    numbers_by_round: Iterable[tuple[Round, Mapping[str, Number]]],
) -> Rate | None:
    """Return a weighted error rate of one of the rounds; None if none is weighted."""
    for _round, numbers in numbers_by_round:
        rate = numbers["mer"]
        if isinstance(rate, Rate) and rate.method == "hajek":
            return rate
    return None


@register.filter
def describe_missing(numbers: Mapping[str, Number]) -> str:
    """Describe what a round lacks before its catch rate can be a headline; empty if nothing."""
    vmer, decided_count = numbers["vmer"], numbers["decided"]
    if not isinstance(decided_count, int) or decided_count < HEADLINE_DECIDED:
        counted = decided_count if isinstance(decided_count, int) else 0
        message = gettext("too few examples so far (%(number)d of %(needed)d)")
        return message % {"number": counted, "needed": HEADLINE_DECIDED}
    if not isinstance(vmer, Rate):
        return gettext(vmer.reason) if isinstance(vmer, Undefined) else ""
    if vmer.clusters is not None and vmer.clusters < HEADLINE_AUTHORS:
        message = gettext("too few authors so far (%(number)d of %(needed)d)")
        return message % {"number": vmer.clusters, "needed": HEADLINE_AUTHORS}
    return ""
