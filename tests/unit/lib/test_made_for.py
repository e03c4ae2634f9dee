"""The name of a text says what its form was made for."""

from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from core.web.form_subjects import build_field_name, find_form_subject, rename_field

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@given(NAMES, st.integers(0) | st.from_regex(r"[0-9a-f]{32}", fullmatch=True), st.lists(st.text()))
def test_a_field_says_what_it_was_made_for_and_keeps_its_values(field, what, values):
    data = QueryDict(mutable=True)
    data.setlist(build_field_name(field, what), values)
    data["other--"] = "stays"
    if field != "other":
        assert find_form_subject(data, field) == str(what)
        plain = rename_field(data, field, field)
        assert plain.getlist(field) == values
        assert plain["other--"] == "stays"
        assert find_form_subject(plain, field) is None


def test_a_longer_name_is_another_field():
    data = {"support-challenge": "on", "support_start": "3", "text": "A line."}
    assert find_form_subject(data, "support") is None
    assert rename_field(data, "text", "text--7").dict() == {
        "support-challenge": "on",
        "support_start": "3",
        "text--7": "A line.",
    }
