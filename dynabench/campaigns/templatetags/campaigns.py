"""How pages show the money of a campaign."""

from django.template import Library

from dynabench.campaigns.rules.pay import units

register = Library()


@register.simple_tag
def money(amount: int, currency: str) -> str:
    """An amount of the smallest unit, with its currency."""
    return f"{units(amount, currency)}\u00a0{currency}"


@register.simple_tag
def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{share:.0%}"
