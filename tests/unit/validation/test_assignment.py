"""Which examples are judged, and in what order."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from validation.assignment import is_in_share, is_judged, order_key

UUIDS = [UUID(int=number) for number in range(4000)]


@given(st.uuids())
def test_the_key_fits_the_column_and_stays(uuid):
    assert 0 <= order_key(uuid) < 2**63
    assert order_key(uuid) == order_key(UUID(str(uuid)))


@given(st.uuids(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_the_smaller_one(uuid, a, b):
    smaller, larger = sorted((a, b))
    assert is_in_share(uuid, larger) or not is_in_share(uuid, smaller)


@given(st.uuids())
def test_none_and_all(uuid):
    assert not is_in_share(uuid, 0)
    assert is_in_share(uuid, 1)


def test_the_share_is_kept():
    found = sum(is_in_share(uuid, 0.2) for uuid in UUIDS) / len(UUIDS)
    assert 0.18 < found < 0.22


def test_the_share_has_no_place_of_its_own_in_the_order():
    middle = sorted(map(order_key, UUIDS))[len(UUIDS) // 2]
    early = sum(order_key(uuid) < middle for uuid in UUIDS if is_in_share(uuid, 0.2))
    assert 0.42 < early / sum(is_in_share(uuid, 0.2) for uuid in UUIDS) < 0.58


@given(st.uuids(), st.sampled_from(["fooled", "undecided", "no_model", "unknown"]))
def test_all_that_may_be_an_error_is_judged(uuid, outcome):
    assert is_judged(uuid, outcome, 0)
    assert not is_judged(uuid, "not_fooled", 0)
