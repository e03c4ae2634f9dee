"""Which slices a catch is in, and which catch was the first in each."""

from dynabench.catches.rules import MAX_VALUE_CHARS, SliceKey, find_first_catches, list_slices

NAMES = ("tag", "challenge", "label", "text", "language")


def test_slices_stand_in_the_order_of_the_configuration():
    found = list_slices(
        NAMES,
        ["label"],
        challenge="irony",
        tag="sport",
        values={"label": "positive", "text": "Every text is the first of its kind."},
    )
    assert found == [("tag", "sport"), ("challenge", "irony"), ("label", "positive")]


def test_what_an_example_lacks_is_no_slice():
    assert list_slices(NAMES, ["label"], challenge=None, tag="", values={}) == []
    several = {"label": ["one", "two"]}
    assert list_slices(NAMES, ["label"], challenge=None, tag="", values=several) == []


def test_long_values_fit_their_column():
    ((_, value),) = list_slices(["tag"], [], challenge=None, tag="x" * 999, values={})
    assert len(value) == MAX_VALUE_CHARS


def test_the_first_decided_is_the_first():
    irony, sport = SliceKey(1, "challenge", "irony"), SliceKey(1, "tag", "sport")
    later_round = irony._replace(round=2)
    catches = [(irony, 7), (sport, 7), (irony, 3), (later_round, 9)]
    assert find_first_catches(catches) == {irony: 7, sport: 7, later_round: 9}
