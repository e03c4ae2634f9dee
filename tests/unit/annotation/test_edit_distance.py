"""The edit distance of a draft and the text that a person made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.rules.edit_distance import compute_edit_distance

WORDS = st.text(alphabet="abcä😀", max_size=12)


def fill_table(first, second):
    """The textbook's table, row by row (Wagner and Fischer 1974)."""
    row = list(range(len(second) + 1))
    for number, one in enumerate(first, 1):
        former, row = row, [number]
        for place, other in enumerate(second):
            row.append(min(former[place + 1] + 1, row[-1] + 1, former[place] + (one != other)))
    return row[-1]


@given(WORDS, WORDS)
def test_it_is_the_distance_of_the_textbook(first, second):
    assert compute_edit_distance(first, second) == fill_table(first, second)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [("kitten", "sitting", 3), ("Saturday", "Sunday", 3), ("", "abc", 3), ("abc", "", 3)],
)
def test_published_distances(first, second, distance):
    assert compute_edit_distance(first, second) == distance


def test_other_spacing_is_no_change():
    assert compute_edit_distance(" We  loved\nit. ", "We loved it.") == 0
