"""Convert amounts of money to the smallest unit, and format them with their currency."""

from decimal import Decimal

from django.conf import settings
from django.utils.formats import number_format

CURRENCIES_WITHOUT_DECIMALS = frozenset(
    ["CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"]
)
"""Currencies whose amounts have no decimals."""
CURRENCIES_WITH_THREE_DECIMALS = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])
"""Currencies whose amounts have three decimals."""


def get_decimals(currency: str) -> int:
    """Return the number of decimal places of a currency."""
    if currency in CURRENCIES_WITHOUT_DECIMALS:
        return 0
    if currency in CURRENCIES_WITH_THREE_DECIMALS:
        return 3
    return 2


def convert_to_smallest_units(amount: Decimal, currency: str) -> int:
    """Return an amount in a currency's smallest unit; further decimals are cut off.

    >>> convert_to_smallest_units(Decimal("4.25"), "EUR")
    425
    """
    return int(amount * 10 ** get_decimals(currency))


def format_units(amount: int, currency: str) -> str:
    """Format an amount given in a currency's smallest unit, with ISO 4217's decimals.

    Programs read it in files; pages show `format_money`.

    >>> format_units(425, "EUR"), format_units(425, "JPY"), format_units(425, "KWD")
    ('4.25', '425', '0.425')
    """
    places = get_decimals(currency)
    return f"{amount / 10**places:.{places}f}"


def format_money(amount: float, currency: str = "", places: int | None = None) -> str:
    """Format an amount in whole units, with its currency, in the reader's language.

    currency: an ISO code; the site's by default. places: the number of decimal places; by default
    those of the currency.
    """
    code = currency or settings.CURRENCY
    if places is None:
        places = get_decimals(code)
    number = number_format(f"{amount:.{places}f}", decimal_pos=places, force_grouping=True)
    # The space does not break, so that no number stands without its currency.
    return f"{number}\u00a0{code}"


def format_smallest_units(amount: float, currency: str = "") -> str:
    """Format an amount given in the currency's smallest unit, as `format_money` does."""
    code = currency or settings.CURRENCY
    return format_money(amount / 10 ** get_decimals(code), code)
