"""Whose run comes next."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from evaluation.runs.services import OwnerShare, WaitingRun, order_by_turn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def waiting(text, **priorities):
    """Runs named by owner and number, in the order in which they were queued: "a1 a2 b1"."""
    return [
        WaitingRun(name, ord(name[0]), priorities.get(name, 0), NOON + timedelta(minutes=minute))
        for minute, name in enumerate(text.split())
    ]


def order(runs, **served):
    return " ".join(run.pk for run in order_by_turn(runs, {ord(k): v for k, v in served.items()}))


def test_one_run_of_each_in_turn():
    assert order(waiting("a1 a2 a3 b1 c1")) == "a1 b1 c1 a2 a3"


def test_who_has_fewer_runs_under_way_comes_first():
    busy = OwnerShare(2, NOON)
    assert order(waiting("a1 a2 b1"), a=busy) == "b1 a1 a2"


def test_among_equals_who_was_served_longest_ago_comes_first():
    """So one worker, which never sees a run under way, still takes turns."""
    assert order(waiting("a1 a2 b1"), a=OwnerShare(0, NOON)) == "b1 a1 a2"


def test_priority_comes_before_all():
    assert order(waiting("a1 b1 a2", a2=1)) == "a2 b1 a1"


def test_the_platform_is_an_owner_like_others():
    runs = [WaitingRun("t1", None, 0, NOON), *waiting("a1")]
    assert [run.pk for run in order_by_turn(runs, {None: OwnerShare(1, NOON)})] == ["a1", "t1"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.integers(0, 9)), max_size=30),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
)
def test_nobody_gets_ahead_by_many_runs(rows, running):
    runs = [
        WaitingRun(n, owner, priority, NOON + timedelta(minutes=minute))
        for n, (owner, priority, minute) in enumerate(rows)
    ]
    found = order_by_turn(runs, {owner: OwnerShare(n) for owner, n in running.items()})
    assert sorted(run.pk for run in found) == list(range(len(runs)))
    had = Counter(running)
    for place, run in enumerate(found):
        later = [other for other in found[place:] if other.priority == run.priority]
        assert all(had[run.owner_id] <= had[other.owner_id] for other in later)
        assert all(run.priority >= other.priority for other in found[place:])
        assert all(run.queued_at <= o.queued_at for o in later if o.owner_id == run.owner_id)
        had[run.owner_id] += 1
