"""How pages show the money of a campaign."""

from django.template import Library
from django.utils.translation import gettext

from dynabench.campaigns.rules.pay import units

register = Library()


@register.simple_tag
def money(amount: int, currency: str) -> str:
    """An amount of the smallest unit, with its currency."""
    return f"{units(amount, currency)}\u00a0{currency}"


@register.simple_tag
def money_or_unknown(amount: int | None, currency: str) -> str:
    """As `money`, where the amount is known."""
    return gettext("unknown") if amount is None else money(amount, currency)


@register.simple_tag
def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{share:.0%}"
