"""Rounds in one line stall where hierarchies go on, and neither exceeds its bound."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.rounds.treadmill import (
    World,
    collect_texts,
    compute_hierarchy_bound,
    compute_path_bound,
    find_majority,
    simulate_treadmill,
)
from leaderboard.treadmill import main

POPULATION = 8000
CORE = 0.1**2 / 4


def simulate(learner, noise=0.0, rounds=9, error=0.1):
    return simulate_treadmill(World(error, noise, learner, POPULATION), rounds)


@settings(max_examples=30)
@given(
    st.sampled_from(["random", "stubborn"]),
    st.floats(0.005, 0.3),
    st.floats(0, 0.2),
    st.integers(1, 1000),
)
def test_no_error_exceeds_its_bound(learner, error, noise, seed):
    treadmill = simulate_treadmill(World(error, noise, learner, POPULATION), 3, seed)
    # Of a population of 8,000, a share of mislabelled texts differs a little from the noise.
    assert treadmill.path[0] <= error + 1e-9
    assert treadmill.path[2] <= compute_path_bound(error, noise + 0.02)
    assert treadmill.hierarchy[0] <= compute_path_bound(error, noise + 0.02)
    assert treadmill.hierarchy[2] <= compute_hierarchy_bound(error, noise + 0.02)


def test_the_bounds_have_the_published_orders():
    """Squared on a path and cubed in a hierarchy of depth two: Shirali, Abebe and Hardt 2023."""
    for small in (1e-3, 1e-4):
        assert compute_path_bound(small, 0) == pytest.approx(11 * small**2)
        assert compute_hierarchy_bound(small, 0) == pytest.approx(271.5 * small**3)
    # With wrong labels, the errors that nobody can notice stay.
    assert compute_path_bound(0.1, 0.05) == pytest.approx(0.11 + 0.04 + 0.05)


def test_a_path_stalls_after_three_rounds_for_a_stubborn_learner():
    path = simulate("stubborn", rounds=25).path
    assert path[2] < path[0] / 10
    assert min(path) >= CORE
    assert path[24] == pytest.approx(path[2], rel=0.05)


def test_a_hierarchy_gets_below_where_the_path_stalls():
    treadmill = simulate("stubborn")
    assert treadmill.hierarchy[2] < treadmill.path[8] / 5
    assert treadmill.path[8] >= CORE


def test_wrong_labels_stall_the_hierarchy_too():
    """People who collect find mostly their own wrong labels, not the few errors that are left."""
    treadmill = simulate("stubborn", noise=0.1)
    assert treadmill.hierarchy[2] >= CORE / 2


def test_independent_errors_fall_with_each_pair_of_rounds():
    path = simulate("random", rounds=7).path
    assert path[0] > 2 * path[2] > 4 * path[4] > 0


def test_what_both_get_wrong_is_not_collected():
    model = np.array([True, True, False, False])
    is_mislabelled = np.array([True, False, True, False])
    assert collect_texts(model, is_mislabelled).tolist() == [0, 0.5, 0.5, 0]
    assert collect_texts(model, model).tolist() == [0.25] * 4


def test_the_last_of_an_even_number_of_models_has_no_vote():
    first, second, third = (np.array(row, bool) for row in ([1, 1, 0], [1, 0, 0], [0, 1, 0]))
    assert find_majority([first, second]).tolist() == first.tolist()
    assert find_majority([first, second, third]).tolist() == [True, True, False]


@pytest.mark.parametrize("values", [{"error": 0}, {"error": 0.5}, {"noise": -0.1}, {"rounds": 0}])
def test_impossible_worlds_are_refused(values):
    with pytest.raises(ValueError):
        simulate("random", **values)


def test_the_command_prints_and_draws(tmp_path, capsys):
    figure = tmp_path / "rounds.svg"
    assert main(["--worlds", "2", "--rounds", "3", "--json", "--figure", str(figure)]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [len(body["path"]), len(body["hierarchy"])] == [3, 3]
    assert body["path"][0]["mean"] == pytest.approx(0.1, abs=0.001)
    assert body["bounds"] == pytest.approx({"path": 0.11, "hierarchy": 0.2715})
    assert figure.read_text().startswith("<svg")
    assert main(["--worlds", "2", "--rounds", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9


@pytest.mark.parametrize(
    "arguments", [["--error", "0.7"], ["--worlds", "0"], ["--figure", "/nowhere/at/all.svg"]]
)
def test_the_command_names_what_cannot_be_used(arguments, capsys):
    assert main(["--rounds", "3", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")
