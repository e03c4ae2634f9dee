"""Amounts of money on pages and in files."""

import pytest
from django.utils import translation

from core.text.money import format_money, format_smallest_units


@pytest.mark.parametrize(
    ("amount", "currency", "expected"),
    [(1.5, "EUR", "1.50 EUR"), (1234.5, "", "1,234.50 EUR"), (7, "JPY", "7 JPY")],
)
def test_a_number_never_stands_without_its_currency(amount, currency, expected):
    assert format_money(amount, currency) == expected.replace(" ", "\xa0")


def test_the_reader_s_language_writes_the_number():
    with translation.override("de"):
        assert format_smallest_units(123456, "EUR") == "1.234,56\xa0EUR"
        assert format_money(0.00125, places=4) == "0,0013\xa0EUR"
