"""A forecast counts every row once, and proposals lose no more than other sizes."""

from hypothesis import given
from hypothesis import strategies as st

from evaluation.dataset_releases.forecast import (
    MAX_LOST_SHARE,
    MIN_AUTHORS,
    Census,
    compute_forecast,
    propose_sizes,
)
from evaluation.dataset_releases.splits import (
    AUTHOR,
    HELD_SPLIT,
    PROGRAM_SPLIT,
    SIZE,
    RowAssigner,
    RowCounts,
    SplitSizes,
)

rows = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1, 9)), st.sampled_from("abc"), st.booleans()),
    max_size=120,
)
size = st.integers(0, 40)
sizes = st.builds(SplitSizes, st.one_of(st.none(), st.integers(0, 60)), size, size, size)


def counted(rows):
    counts = RowCounts()
    for author, label, is_verified in rows:
        counts.add(author, label, is_verified)
    return counts


@given(rows, sizes, st.integers(0, 5), st.integers(0, 3))
def test_every_row_is_in_a_split_or_has_a_reason(rows, wanted, seed, programs):
    counts = counted(rows)
    shown = compute_forecast(Census(counts, programs, {"flagged": 2}), wanted, seed=seed)
    assert shown.total + sum(shown.lost_by_reason.values()) == len(rows) + programs
    assert shown.left_out == {**shown.lost_by_reason, "flagged": 2}
    assert shown.rows.get(PROGRAM_SPLIT, 0) == programs
    dealer = RowAssigner(shown.plan, seed=seed)
    dealt = [dealer.assign_row(*row) for row in rows]
    for split in ("train", "dev", "test", HELD_SPLIT):
        assert dealt.count(split) == shown.rows.get(split, 0)
    assert dealt.count(None) == sum(shown.lost_by_reason.values())
    if wanted.train is None:
        assert SIZE not in shown.lost_by_reason
    if wanted[1:] == (0, 0, 0):
        assert AUTHOR not in shown.lost_by_reason


@given(rows)
def test_proposals_can_be_had_and_the_first_loses_little(rows):
    counts = counted(rows)
    found = propose_sizes(counts)
    lost = []
    for one in found:
        shown = compute_forecast(Census(counts), one, seed=0)
        assert (shown.rows["dev"], shown.rows["test"]) == (one.dev, one.test)
        lost.append(sum(shown.lost_by_reason.values()))
    assert bool(found) is bool(rows)
    assert lost[1:] == sorted(lost[1:])
    if rows:
        assert lost[0] <= MAX_LOST_SHARE * len(rows)
        assert SplitSizes(None, 0, 0) in found


def test_whole_authors_are_proposed_where_a_tenth_would_cut_them():
    """Three authors with 66 rows: dev 5 would take the one with 34 and lose 29."""
    counts = RowCounts()
    for author, verified, others in ((1, 8, 0), (2, 34, 10), (3, 9, 5)):
        counts.add(author, "a", True, verified)
        counts.add(author, "a", False, others)
    cut = compute_forecast(Census(counts), SplitSizes(None, 5, 8), seed=0)
    found = [compute_forecast(Census(counts), one, seed=0) for one in propose_sizes(counts)]
    assert SplitSizes(None, 0, 8) in propose_sizes(counts)
    assert all(one.total > cut.total for one in found)


def test_of_many_authors_a_tenth_is_proposed_and_less_where_that_loses_too_much():
    many = RowCounts()
    for author in range(MIN_AUTHORS + 20):
        many.add(author, "a", True, 4)
    assert propose_sizes(many)[0] == SplitSizes(None, 20, 20)
    for author in range(MIN_AUTHORS + 20):
        many.add(author, "a", False, 12)
    first = propose_sizes(many)[0]
    assert 0 < first.test < 80
    assert (
        sum(compute_forecast(Census(many), first, seed=0).lost_by_reason.values())
        <= 0.1 * many.total
    )
