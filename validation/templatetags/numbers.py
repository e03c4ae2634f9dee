"""Shares as people read them."""

from django import template
from django.utils.translation import gettext

from dynabench.lib.charts import percent
from validation.rules.rates import Undefined
from validation.statistics.definitions import DEFINITIONS, Definition
from validation.statistics.report import Number

register = template.Library()
register.filter("percent", percent)


@register.filter
def definition(name: str) -> Definition | None:
    """What the share called `name` means; None for a name without a definition."""
    return DEFINITIONS.get(name)


@register.filter
def known(number: Number) -> Number | str:
    """A count, or that it is unknown."""
    return gettext("unknown") if isinstance(number, Undefined) else number
