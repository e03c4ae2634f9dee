"""The board across tasks: points, means, intervals, shared ranks, what is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.communities.rules import (
    Entrant,
    MeasuredScore,
    average_points,
    rank_entrants,
    rescale_to_points,
)

FLOORS = {"a": 0.0, "b": 50.0}
EVEN = {"a": 1.0, "b": 1.0}


def entrant(name, **scores):
    return Entrant(
        name, name, "", "", {task: MeasuredScore(*one) for task, one in scores.items()}, {}
    )


def test_points_are_0_where_nothing_is_known_and_100_where_all_is_right():
    assert rescale_to_points(MeasuredScore(75, 70, 100), 50) == (50, 40, 100)
    assert rescale_to_points(MeasuredScore(40, None, None), 50) == (0, None, None)
    assert rescale_to_points(MeasuredScore(None), 50) == (None, None, None)


def test_the_mean_adds_the_ends_as_squares():
    points = {"a": MeasuredScore(60, 57, 64), "b": MeasuredScore(40, 36, 43)}
    assert average_points(points, EVEN) == pytest.approx((50, 47.5, 52.5))
    assert average_points(points, {"a": 3, "b": 1}).value == 55
    assert average_points({**points, "b": MeasuredScore(40)}, EVEN) == (50, None, None)
    assert average_points(points, {"a": 0, "b": 0}).value is None


def test_a_task_without_a_weight_is_not_missed():
    assert average_points({"a": MeasuredScore(60)}, {"a": 1, "b": 0}).value == 60
    assert average_points({"a": MeasuredScore(60)}, EVEN).value is None


def test_who_lacks_a_task_has_no_rank_and_it_is_said():
    lines = rank_entrants(
        [entrant("half", a=(100,)), entrant("both", a=(10,), b=(55,)), entrant("none", b=(None,))],
        EVEN,
        FLOORS,
    )
    assert [(one.entrant.name, one.rank, one.missing) for one in lines] == [
        ("both", "1", ()),
        ("half", "", ("b",)),
        ("none", "", ("a", "b")),
    ]
    assert lines[0].score.value == 10


def test_equal_scores_share_a_rank_and_intervals_leave_ranks_open():
    lines = rank_entrants(
        [
            entrant("x", a=(80, 79, 81)),
            entrant("y", a=(80, 79, 81)),
            entrant("z", a=(79, 76, 82)),
            entrant("w", a=(20, 19, 21)),
        ],
        {"a": 1},
        FLOORS,
    )
    assert [(one.entrant.name, one.rank, one.first, one.last) for one in lines] == [
        ("x", "1=", 1, 3),
        ("y", "1=", 1, 3),
        ("z", "3", 1, 3),
        ("w", "4", 4, 4),
    ]


def test_without_an_interval_no_rank_is_said_to_be_sure():
    lines = rank_entrants([entrant("x", a=(80,)), entrant("y", a=(10, 9, 11))], {"a": 1}, FLOORS)
    found = [(one.rank, one.first, one.last) for one in lines]
    assert found == [("1", None, None), ("2", None, None)]


SHARE = st.floats(0, 100)


@given(st.lists(st.tuples(SHARE, SHARE), min_size=1, max_size=6), st.floats(0.1, 8))
def test_a_weight_of_both_changes_nothing_and_nobody_moves_another(pairs, weight):
    found = [entrant(f"m{n}", a=(a, a, a), b=(b, b, b)) for n, (a, b) in enumerate(pairs)]
    once = rank_entrants(found, EVEN, FLOORS)
    scaled = rank_entrants(found, dict.fromkeys(EVEN, weight), FLOORS)
    alone = {
        line.entrant.key: line.score.value
        for one in found
        for line in rank_entrants([one], EVEN, FLOORS)
    }
    for one, other in zip(once, scaled, strict=True):
        assert one.score.value == pytest.approx(alone[one.entrant.key])
        assert one.rank == other.rank or one.score.value == pytest.approx(other.score.value)
