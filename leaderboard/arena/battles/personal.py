"""Detection of personal data in texts, by patterns that rather report too much. Pure."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

_MAIL_PATTERN = re.compile(r"[^\s@<>()\[\],;:]+@[^\W_][\w-]*(?:\.[\w-]+)+")
_NUMBER_PATTERN = re.compile(r"(?<![\w.,])[+(]?\d(?:[ \u00a0()/.–-]{0,2}\d){6,18}(?![\w])")
_DATE_PATTERN = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{4}\s?[–-]\s?\d{4}"
)
_ADDRESS_PATTERN = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)"
)
PERSONAL_DATA_KINDS = ("mail", "phone", "card", "ip")


def find_personal_data(texts: Iterable[str]) -> list[str]:
    """Return the kinds of personal data in the texts, in the order of PERSONAL_DATA_KINDS.

    mail: email addresses. phone: numbers of 7 to 15 digits that begin with + or 0 or are grouped.
    card: 13 to 19 digits with the check digit of payment cards (Luhn). ip: IPv4 and IPv6 addresses.
    """
    kinds: set[str] = set()
    for text in texts:
        kinds.update(_iter_kinds(text))
    return [kind for kind in PERSONAL_DATA_KINDS if kind in kinds]


def _iter_kinds(text: str) -> Iterator[str]:
    """Yield the kinds of personal data in one text."""
    if _MAIL_PATTERN.search(text):
        yield "mail"
    if any(_is_address(address) for address in _ADDRESS_PATTERN.findall(text)):
        yield "ip"
    # Long numbers can only be cards, short ones only telephones, unless they are dates.
    for number in _NUMBER_PATTERN.findall(text):
        digits = re.sub(r"\D", "", number)
        if len(digits) >= 13 and _has_check_digit(digits):
            yield "card"
        elif (
            len(digits) <= 15
            and not _DATE_PATTERN.fullmatch(number)
            and _looks_like_phone_number(number, digits)
        ):
            yield "phone"


def _looks_like_phone_number(number: str, digits: str) -> bool:
    """Return whether a number is formatted like a telephone number."""
    if re.fullmatch(r"\d+\.\d+", number) or _is_address(number):  # a decimal number or a version
        return False
    return number[0] in "+(0" or number != digits


def _is_address(text: str) -> bool:
    """Return whether a text is an IP address that could belong to a person."""
    try:
        # A colon at the end belongs to the sentence, unless it is part of the address (`fe80::`).
        address = ip_address(text.rstrip("." if "::" in text else ".:"))
    except ValueError:
        return False
    return not address.is_loopback and not address.is_unspecified


def _has_check_digit(digits: str) -> bool:
    """Return whether the digits pass the Luhn check.

    The sum of all digits, with every second digit from the right doubled, must end in 0.
    """
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit)
        if place % 2:
            value *= 2
            if value > 9:  # the sum of its two digits
                value -= 9
        total += value
    return total % 10 == 0
