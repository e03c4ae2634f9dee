"""Shares as people read them."""

from django import template

from dynabench.lib.svg import percent
from validation.definitions import DEFINITIONS, Definition

register = template.Library()
register.filter("percent", percent)


@register.filter
def definition(name: str) -> Definition | None:
    """What the share called `name` means; None for a name without a definition."""
    return DEFINITIONS.get(name)
