"""The order of people."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.people.ranking import (
    NEIGHBOUR_LINES,
    TOP_LINES,
    Standing,
    rank_people,
    select_ranking_lines,
)

counts = st.integers(1, 60).flatmap(lambda tries: st.tuples(st.just(tries), st.integers(0, tries)))
people = st.lists(counts, max_size=40).map(
    lambda rows: [Standing(f"w-{n:03}", *row) for n, row in enumerate(rows)]
)


def test_few_tries_do_not_win():
    lucky, steady = Standing("w-a", 1, 1), Standing("w-b", 100, 60)
    assert 0.5 < steady.low < steady.rate < steady.high < 0.7
    assert [one for _, one in rank_people([lucky, steady])] == [steady, lucky]
    assert lucky.rate == 1 > steady.rate == 0.6


def test_ties_share_a_rank():
    rows = [("w-d", 10, 1), ("w-c", 10, 5), ("w-b", 10, 5), ("w-a", 10, 9)]
    found = [(rank, one.pseudonym) for rank, one in rank_people([Standing(*row) for row in rows])]
    assert found == [("1", "w-a"), ("2=", "w-b"), ("2=", "w-c"), ("4", "w-d")]


@given(people)
def test_ranks_follow_the_lower_end(standings):
    lines = rank_people(standings)
    assert sorted(one.pseudonym for _, one in lines) == [one.pseudonym for one in standings]
    for (rank, one), (next_rank, other) in pairwise(lines):
        assert one.low >= other.low
        assert (rank == next_rank) == (one.low == other.low)
        assert int(rank.strip("=")) <= int(next_rank.strip("="))


def test_a_person_far_down_is_shown_after_a_gap():
    standings = [Standing(f"w-{n:02}", 60, 60 - n) for n in range(40)]
    places = select_ranking_lines(standings, "w-20")
    assert [place.rank for place in places] == [str(n) for n in (*range(1, 11), *range(18, 25))]
    assert [place.rank for place in places if place.is_after_gap] == ["18"]
    assert [place.standing.pseudonym for place in places if place.is_mine] == ["w-20"]
    assert len(select_ranking_lines(standings, "nobody")) == TOP_LINES


@given(people, st.integers(0, 50))
def test_the_first_ten_and_ones_neighbours_are_shown(standings, number):
    mine = f"w-{number:03}"
    order = [one.pseudonym for _, one in rank_people(standings)]
    places = select_ranking_lines(standings, mine)
    seen = [place.standing.pseudonym for place in places]
    near = range(0)
    if mine in order:
        at = order.index(mine)
        near = range(max(0, at - NEIGHBOUR_LINES), at + NEIGHBOUR_LINES + 1)
    assert seen == [name for n, name in enumerate(order) if n < TOP_LINES or n in near]
    assert [p.standing.pseudonym for p in places if p.is_mine] == [mine] * (mine in order)
    gaps = [n for n, (a, b) in enumerate(pairwise(seen))
            if order.index(b) - order.index(a) > 1]  # fmt: skip
    assert [n for n, place in enumerate(places[1:]) if place.is_after_gap] == gaps
