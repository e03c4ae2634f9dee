"""Models that no other one dominates."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.ranking.pareto import find_pareto_front

SIGNS = {"perf": 1, "memory": -1}
POINTS = {
    "large": {"perf": 90, "memory": 8},
    "small": {"perf": 80, "memory": 2},
    "wasteful": {"perf": 79, "memory": 3},
    "copy": {"perf": 90, "memory": 8},
    "greedy": {"perf": 90, "memory": 9},
    "unmeasured": {"perf": 99, "memory": None},
    "unknown": {"memory": 1},
}


def test_only_a_model_that_another_one_beats_is_left_out():
    assert find_pareto_front(POINTS, SIGNS) == {"large", "copy", "small"}


def test_directions_decide():
    assert find_pareto_front(POINTS, {"perf": 1, "memory": 1}) == {"greedy"}
    assert find_pareto_front(POINTS, {"perf": -1}) == {"wasteful"}


def test_nobody_is_nobody():
    assert find_pareto_front({}, SIGNS) == set()
    assert find_pareto_front({"a": {"perf": None, "memory": 1}}, SIGNS) == set()


values = st.lists(st.integers(0, 4), min_size=3, max_size=3)


@given(st.lists(values, min_size=1, max_size=12))
def test_the_front_is_what_its_definition_says(rows):
    points = {str(n): dict(zip("abc", row, strict=True)) for n, row in enumerate(rows)}

    def beats(one: list[int], other: list[int]) -> bool:
        return one != other and all(x >= y for x, y in zip(one, other, strict=True))

    beaten = {str(n) for (n, row), other in product(enumerate(rows), rows) if beats(other, row)}
    found = find_pareto_front(points, {"a": 1, "b": 1, "c": 1})
    assert found == points.keys() - beaten
    assert found
