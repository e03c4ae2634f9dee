"""The name of a text says what its form was made for."""

from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from core.web.made_for import made_for, name_for, renamed

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@given(NAMES, st.integers(0) | st.from_regex(r"[0-9a-f]{32}", fullmatch=True), st.lists(st.text()))
def test_a_field_says_what_it_was_made_for_and_keeps_its_values(field, what, values):
    data = QueryDict(mutable=True)
    data.setlist(name_for(field, what), values)
    data["other--"] = "stays"
    if field != "other":
        assert made_for(data, field) == str(what)
        plain = renamed(data, field, field)
        assert plain.getlist(field) == values
        assert plain["other--"] == "stays"
        assert made_for(plain, field) is None


def test_a_longer_name_is_another_field():
    data = {"support-challenge": "on", "support_start": "3", "text": "A line."}
    assert made_for(data, "support") is None
    assert renamed(data, "text", "text--7").dict() == {
        "support-challenge": "on",
        "support_start": "3",
        "text--7": "A line.",
    }
