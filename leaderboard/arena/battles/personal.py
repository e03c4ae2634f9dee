"""Which kinds of personal data a text may hold. Pure patterns, which err to the safe side."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

_MAIL = re.compile(r"[^\s@<>()\[\],;:]+@[^\W_][\w-]*(?:\.[\w-]+)+")
_NUMBER = re.compile(r"(?<![\w.,])[+(]?\d(?:[ \u00a0()/.–-]{0,2}\d){6,18}(?![\w])")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{4}\s?[–-]\s?\d{4}"
)
_ADDRESS = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)"
)
KINDS = ("mail", "phone", "card", "ip")


def personal_data(texts: Iterable[str]) -> list[str]:
    """Return the kinds of personal data that the texts may contain, in the order of KINDS.

    mail: addresses. phone: numbers of 7 to 15 digits that begin with + or 0 or are grouped. card:
    13 to 19 digits with the check digit of payment cards (Luhn). ip: addresses of both versions.
    """
    found = {kind for text in texts for kind in _kinds(text)}
    return [kind for kind in KINDS if kind in found]


def _kinds(text: str) -> Iterator[str]:
    if _MAIL.search(text):
        yield "mail"
    if any(_is_address(one) for one in _ADDRESS.findall(text)):
        yield "ip"
    for number in _NUMBER.findall(text):
        digits = re.sub(r"\D", "", number)
        if len(digits) >= 13 and _has_check_digit(digits):
            yield "card"
        elif len(digits) <= 15 and not _DATE.fullmatch(number) and _looks_dialled(number, digits):
            yield "phone"


def _looks_dialled(number: str, digits: str) -> bool:
    if re.fullmatch(r"\d+\.\d+", number) or _is_address(number):  # a decimal, a version
        return False
    return number[0] in "+(0" or number != digits


def _is_address(text: str) -> bool:
    try:
        found = ip_address(text.rstrip(".:") if "::" not in text else text.rstrip("."))
    except ValueError:
        return False
    return not found.is_loopback and not found.is_unspecified


def _has_check_digit(digits: str) -> bool:
    """Return whether the digits pass Luhn's check.

    With every second digit from the right doubled, the sum of all digits ends in 0.
    """
    doubled = [int(one) * (1 + n % 2) for n, one in enumerate(reversed(digits))]
    return sum(one - 9 * (one > 9) for one in doubled) % 10 == 0
