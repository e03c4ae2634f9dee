"""Format decimal numbers and percentages in the language of the reader.

Every percentage on pages and in charts, mails and files for people is formatted here. Formats for
programs (API, CSV, JSON) have plain numbers.
"""

from decimal import Decimal
from functools import lru_cache

from django.utils.formats import number_format
from django.utils.translation import get_language

PERCENT_SIGNS = {"de": "\u00a0%", "es": "\u00a0%", "fr": "\u202f%"}
"""The percent sign with its space, by language, as in Unicode's CLDR. Others have no space.

Neither space can break, so that a number and its sign stay on one line.
"""

MIN_SHOWN_P = 1e-4
"""The smallest p-value that is shown. Smaller ones are shown as smaller than it."""
SIGN_MARKS = {"ar": "\u200e"}
"""The invisible mark in front of a sign, by language, as in CLDR.

Without it, the sign would stand behind its number in a text that is written from right to left.
"""


def format_decimal(number: float, decimals: int = 1, *, is_grouped: bool = False) -> str:
    """Format a number with a fixed number of decimals, such as 15.6, or 15,6 in German.

    is_grouped: whether thousands are separated, as in 1,234.5.
    """
    # A value that rounds to zero has no sign. Django cuts decimals off instead of rounding them.
    rounded = round(number, decimals) or 0.0
    return _format_rounded(rounded, decimals, is_grouped, get_language())


# A board repeats few different numbers some thousand times, in the languages of all its readers.
@lru_cache(maxsize=8192)
def _format_rounded(rounded: float, decimals: int, is_grouped: bool, _language: str | None) -> str:
    """Format a number that is rounded already. _language: the active one, which decides how."""
    text = number_format(rounded, decimals, use_l10n=True, force_grouping=is_grouped)
    return text.replace("-", f"{_get_sign_mark()}−")


def format_short_number(number: float, digits: int = 6) -> str:
    """Format a number with at most so many significant digits and no more decimals than it needs.

    >>> format_short_number(0.50), format_short_number(1200), format_short_number(0.0412345, 2)
    ('0.5', '1,200', '0.041')
    """
    rounded = Decimal(f"{number:.{digits}g}")
    exponent = rounded.as_tuple().exponent
    # Infinity and "not a number" have a letter instead of an exponent.
    decimals = max(0, -exponent) if isinstance(exponent, int) else 0
    return format_decimal(float(rounded), decimals, is_grouped=True)


def format_p(p: float) -> str:
    """Format a p-value with two significant digits.

    >>> format_p(0.0412), format_p(0.5), format_p(1.0), format_p(1e-9)
    ('0.041', '0.5', '1', '< 0.0001')
    """
    text = format_short_number(max(p, MIN_SHOWN_P), 2)
    return text if p >= MIN_SHOWN_P else f"< {text}"


def format_percent(share: float, decimals: int = 1) -> str:
    """Format a share from 0 to 1 with the percent sign.

    >>> format_percent(0.156)
    '15.6%'
    """
    return add_percent_sign(format_percent_number(share, decimals))


def format_percent_number(share: float, decimals: int = 1) -> str:
    """Format a share from 0 to 1 as a percentage without the sign.

    For intervals, and for table columns whose title has the sign.

    >>> format_percent_number(0.156)
    '15.6'
    """
    return format_decimal(share * 100, decimals)


def format_points(points: float, decimals: int = 1) -> str:
    """Format a difference in percentage points with its sign, such as +3.5 or −0.2."""
    number = format_decimal(points, decimals)
    return number if "−" in number else f"{_get_sign_mark()}+{number}"


def add_percent_sign(number: str) -> str:
    """Append the percent sign of the reader's language to a formatted number."""
    return f"{number}{PERCENT_SIGNS.get(_get_base_language(), '%')}"


def format_percent_axis(share: float) -> str:
    """Format a share for an axis with no more digits than it needs, such as 15% or 2.5%."""
    percent = float(f"{share * 100:.3g}")
    decimals = 0 if percent == int(percent) else len(f"{percent:g}".partition(".")[2])
    return format_percent(share, decimals)


def _get_sign_mark() -> str:
    return SIGN_MARKS.get(_get_base_language(), "")


def _get_base_language() -> str:
    """Return the code of the reader's language without the country, such as "de"."""
    return (get_language() or "en").partition("-")[0]
