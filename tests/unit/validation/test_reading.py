"""What nobody can have read: votes right after the hand-out, and faster than anybody reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.consensus import reading
from validation.consensus.reading import count_words, has_read_too_little, is_too_soon

SECONDS = st.floats(0, 1e6)


@pytest.mark.own_pace
@pytest.mark.parametrize(
    ("seconds", "items", "found"), [(0, 1, True), (0.59, 1, True), (0.6, 1, False), (1, 2, True)]
)
def test_a_verdict_that_was_meant_for_what_stood_there_before(seconds, items, found):
    assert reading.MIN_READING_SECONDS == 0.6
    assert is_too_soon(seconds, items) is found


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", 0),
        ("  Ada   left\nTarn. ", 3),
        ("我们喜欢北京。", 3),
        ("Ada 我们", 2),
        ({"text": "the mill", "start": 4, "end": 12}, 2),
        ([{"role": "user", "text": "Are you sure?"}, {"role": "assistant", "text": "No."}], 4),
        ({"digest": "9f86", "alt": "Two squares"}, 0),
        (7, 0),
        (None, 0),
        (("a", ["b c"]), 3),
    ],
)
def test_the_words_that_are_read(value, words):
    assert count_words(value) == words


@pytest.mark.parametrize(
    ("unread", "timed", "found"), [(11, 20, True), (10, 20, False), (19, 19, False), (0, 0, False)]
)
def test_a_minority_or_a_few_votes_are_no_sign(unread, timed, found):
    assert has_read_too_little(unread, timed) is found


@given(st.integers(0, 500), st.integers(0, 500))
def test_only_a_majority_of_enough_votes_is_a_sign(unread, more):
    found = has_read_too_little(unread, unread + more)
    assert found == (unread + more >= 20 and unread > more)


@given(st.text(), st.text())
def test_more_text_has_no_fewer_words(one, other):
    assert count_words([one, other]) == count_words(one) + count_words(other) >= count_words(one)
