"""Weights as they stand in a URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.ranking.weights import (
    MAX_WEIGHT,
    SET_WEIGHT,
    Weighting,
    WeightsError,
    build_opening_weights,
    check_weights,
    read_weights,
    restore_saved_weights,
)

START = Weighting({"accuracy": 4.0, "memory": 1.0}, {"round-1": 5.0, "round-2": 5.0})


def test_the_board_opens_with_the_owners_weights_and_equal_sets():
    assert build_opening_weights(
        ["accuracy", "macro_f1", "memory"], {"accuracy": 4, "memory": 1}, ["dev"]
    ) == (Weighting({"accuracy": 4.0, "macro_f1": 0.0, "memory": 1.0}, {"dev": SET_WEIGHT}))
    assert build_opening_weights(["accuracy"], {}, []) == Weighting({"accuracy": 0.0}, {})
    large = build_opening_weights(["accuracy", "memory"], {"accuracy": 80, "memory": 20}, [])
    assert large.metrics == {"accuracy": MAX_WEIGHT, "memory": 2.0}


def test_a_url_changes_what_it_names():
    found = read_weights(
        {"w_accuracy": "2.5", "d_round-2": "0", "w_memory": "", "other": "x"}, START
    )
    assert found == Weighting({"accuracy": 2.5, "memory": 1.0}, {"round-1": 5.0, "round-2": 0.0})
    assert read_weights({}, START) == START


@given(
    st.fixed_dictionaries({"accuracy": st.integers(1, 80), "memory": st.integers(0, 80)}),
    st.fixed_dictionaries({"round-1": st.integers(0, 80), "round-2": st.integers(1, 80)}),
)
def test_a_query_is_read_as_it_was_written(metrics, sets):
    weighting = Weighting(
        {name: tenths / 10 for name, tenths in metrics.items()},
        {name: tenths / 10 for name, tenths in sets.items()},
    )
    query = dict(part.split("=") for part in weighting.query.split("&"))
    assert read_weights(query, START) == weighting


@pytest.mark.parametrize("text", ["9", "-1", "nan", "inf", "much", "8.01", "1e999"])
def test_what_is_no_weight_is_refused_in_words(text):
    with pytest.raises(WeightsError) as refused:
        read_weights({"d_round-1": text}, START)
    assert text in str(refused.value)
    assert refused.value.fields == ("d_round-1",)


@pytest.mark.parametrize(
    ("query", "words", "fields"),
    [
        (
            {"w_accuracy": "0", "w_memory": "0"},
            "Give at least one metric a weight above 0.",
            ("w_accuracy", "w_memory"),
        ),
        (
            {"d_round-1": "0", "d_round-2": "0"},
            "Give at least one test set a weight above 0.",
            ("d_round-1", "d_round-2"),
        ),
    ],
)
def test_all_zero_is_refused_in_words(query, words, fields):
    with pytest.raises(WeightsError, match=words) as refused:
        read_weights(query, START)
    assert refused.value.fields == fields


def test_a_board_without_sets_has_no_set_to_weigh():
    check_weights(Weighting({"accuracy": 1.0}, {}))


def test_saved_weights_serve_todays_metrics_and_sets():
    found = restore_saved_weights({"accuracy": 1.0, "gone": 3.0}, {"round-2": 0.0}, START)
    assert found == Weighting({"accuracy": 1.0, "memory": 1.0}, {"round-1": 5.0, "round-2": 0.0})
