"""What a browser tells of typing is bounded, and unknown where it tells nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.rules.typing_evidence import (
    MAX_SECONDS,
    contains_contact_details,
    read_typing_evidence,
)

TOLD = {"pasted": "12", "first_input": "1.5", "active": "30.25"}


def test_what_was_told():
    found = read_typing_evidence(TOLD, 40)
    assert found == {"pasted": 12, "characters": 40, "first_input": 1.5, "active": 30.25}


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("value", [None, "", "much", "-1", "nan", "inf"])
def test_nonsense_is_unknown(name, value):
    told = {**TOLD, name: value}
    if value is None:
        del told[name]
    assert read_typing_evidence(told, 40) is None


@given(st.floats(0, 1e300), st.integers(0, 10_000))
def test_nothing_is_larger_than_it_can_be(value, characters):
    found = read_typing_evidence(dict.fromkeys(TOLD, str(value)), characters)
    assert found["pasted"] <= characters
    assert found["first_input"] <= MAX_SECONDS
    assert found["active"] <= MAX_SECONDS


@pytest.mark.parametrize(
    "text",
    [
        "Write to ada.b+c@mill.example.org.",
        "Call +44 20 7946 0958 now",
        "Ring (030) 123 456 789",
        "0161.496.0000",
        "030.12345678",
        "Pi is 3.14159265, call +44.2079460958",
    ],
)
def test_what_looks_personal(text):
    assert contains_contact_details(text)


@pytest.mark.parametrize(
    "text",
    [
        *("In 1840 and 1850.", "It cost 12,000,000 in all.", "3 @ 4", "Room 12-34", "1 2 3 4"),
        *("Pi is 3.14159265358979.", "-0.333333333333", "3.14159265 2.718281828", "7.000000001e-9"),
        "100,333333333",
    ],
)
def test_what_does_not(text):
    assert not contains_contact_details(text)
