"""Numbers and percentages in the language of the reader."""

import pytest
from django.template import Context, Template
from django.utils.translation import override

from core.numbers import (
    format_decimal,
    format_percent,
    format_percent_axis,
    format_percent_number,
    format_points,
    format_short_number,
)


@pytest.mark.parametrize(
    ("language", "percent", "number"),
    [
        ("en", "50.0%", "50.0"),
        ("de", "50,0\u00a0%", "50,0"),
        ("de-at", "50,0\u00a0%", "50,0"),
        ("es", "50,0\u00a0%", "50,0"),
        ("fr", "50,0\u202f%", "50,0"),
        ("ar", "50.0%", "50.0"),
    ],
)
def test_percent_by_language(language, percent, number):
    with override(language):
        assert format_percent(0.5) == percent
        assert format_percent_number(0.5) == number


def test_thousands_are_separated_where_asked():
    assert format_decimal(12345.67, is_grouped=True) == "12,345.7"
    with override("de"):
        assert format_decimal(12345.67, is_grouped=True) == "12.345,7"


def test_numbers_are_rounded_not_cut():
    assert format_percent_number(0.3409) == "34.1"
    assert format_percent(0.996, 0) == "100%"
    assert format_decimal(2.96) == "3.0"


def test_signs_are_real_and_zero_has_none():
    assert format_percent(-0.123) == "−12.3%"
    assert format_percent(-0.0001) == "0.0%"
    assert (format_points(3.46), format_points(-3.46)) == ("+3.5", "−3.5")


def test_signs_stay_in_front_of_their_number_in_arabic():
    with override("ar"):
        assert format_points(3.46) == "\u200e+3.5"
        assert format_decimal(-0.14, 2) == "\u200e−0.14"


def test_a_short_number_has_the_decimals_that_it_needs():
    assert [format_short_number(number) for number in (0.5, 1200, 2_000_000, 1e-7)] == [
        "0.5", "1,200", "2,000,000", "0.0000001",
    ]  # fmt: skip
    assert format_short_number(0.04123, 2) == "0.041"
    with override("de"):
        assert format_short_number(1200.5) == "1.200,5"


@pytest.mark.parametrize(
    ("share", "text"), [(1, "100%"), (0.15, "15%"), (0.025, "2.5%"), (0.00125, "0.125%"), (0, "0%")]
)
def test_axes_have_only_the_digits_that_they_need(share, text):
    assert format_percent_axis(share) == text


def test_filters_of_pages_use_the_language():
    page = Template(
        "{% load numbers %}{{ share|percent }} {{ share|percent_number }} {{ share|whole_percent }}"
    )
    with override("de"):
        assert page.render(Context({"share": 0.256})) == "25,6\u00a0% 25,6 26\u00a0%"
