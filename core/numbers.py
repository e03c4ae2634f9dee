"""Format decimal numbers and percentages in the language of the reader.

Every percentage on pages and in charts, mails and files for people is formatted here. Formats for
programs (API, CSV, JSON) have plain numbers.
"""

from django.utils.formats import number_format
from django.utils.translation import get_language

PERCENT_SIGNS = {"de": "\u00a0%", "es": "\u00a0%", "fr": "\u202f%"}
"""The percent sign with its space, by language, as in Unicode's CLDR. Others have no space.

Neither space can break, so that a number and its sign stay on one line.
"""


def format_decimal(number: float, decimals: int = 1, *, is_grouped: bool = False) -> str:
    """Format a number with a fixed number of decimals, such as 15.6, or 15,6 in German.

    is_grouped: whether thousands are separated, as in 1,234.5.
    """
    # A value that rounds to zero has no sign. Django cuts decimals off instead of rounding them.
    rounded = round(number, decimals) or 0.0
    text = number_format(rounded, decimals, use_l10n=True, force_grouping=is_grouped)
    return text.replace("-", "−")


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
    return number if number.startswith("−") else f"+{number}"


def add_percent_sign(number: str) -> str:
    """Append the percent sign of the reader's language to a formatted number."""
    language = (get_language() or "en").partition("-")[0]
    return f"{number}{PERCENT_SIGNS.get(language, '%')}"


def format_percent_axis(share: float) -> str:
    """Format a share for an axis with no more digits than it needs, such as 15% or 2.5%."""
    percent = float(f"{share * 100:.3g}")
    decimals = 0 if percent == int(percent) else len(f"{percent:g}".partition(".")[2])
    return format_percent(share, decimals)
