"""Which examples are judged, and in what order."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from validation.consensus.sampling import (
    compute_order_key,
    is_in_share,
    is_judged,
    is_sampled_for_review,
)

KEY = "the site's"
UUIDS = [UUID(int=number) for number in range(4000)]


@given(st.uuids())
def test_the_key_fits_the_column_and_stays(uuid):
    assert 0 <= compute_order_key(uuid, KEY) < 2**63
    assert compute_order_key(uuid, KEY) == compute_order_key(UUID(str(uuid)), KEY)


@given(st.uuids(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_the_smaller_one(uuid, a, b):
    smaller, larger = sorted((a, b))
    assert is_in_share(uuid, larger, KEY) or not is_in_share(uuid, smaller, KEY)


@given(st.uuids())
def test_none_and_all(uuid):
    assert not is_in_share(uuid, 0, KEY)
    assert is_in_share(uuid, 1, KEY)


def test_the_share_is_kept():
    found = sum(is_in_share(uuid, 0.2, KEY) for uuid in UUIDS) / len(UUIDS)
    assert 0.18 < found < 0.22


def test_the_share_has_no_place_of_its_own_in_the_order():
    middle = sorted(compute_order_key(uuid, KEY) for uuid in UUIDS)[len(UUIDS) // 2]
    early = sum(
        compute_order_key(uuid, KEY) < middle for uuid in UUIDS if is_in_share(uuid, 0.2, KEY)
    )
    assert 0.42 < early / sum(is_in_share(uuid, 0.2, KEY) for uuid in UUIDS) < 0.58


def test_what_is_no_error_is_judged_only_in_its_share():
    assert is_judged(UUIDS[0], "fooled", 0, KEY)
    assert is_judged(UUIDS[0], "not_fooled", 1, KEY)
    assert not is_judged(UUIDS[0], "not_fooled", 0, KEY)


@given(st.uuids(), st.sampled_from(["fooled", "undecided", "no_model", "unknown"]))
def test_all_that_may_be_an_error_is_judged(uuid, outcome):
    assert is_judged(uuid, outcome, 0, KEY)
    assert not is_judged(uuid, "not_fooled", 0, KEY)


@given(st.uuids())
def test_nobody_foresees_a_place_without_the_secret(uuid):
    assert compute_order_key(uuid, KEY) != compute_order_key(uuid, "another site's")


def test_with_another_secret_others_are_in_the_share_and_in_the_sample():
    for drawn in (lambda uuid, key: is_in_share(uuid, 0.5, key), is_sampled_of_half):
        same = sum(drawn(uuid, KEY) == drawn(uuid, "another site's") for uuid in UUIDS)
        assert 0.45 < same / len(UUIDS) < 0.55


def is_sampled_of_half(uuid, key):
    return is_sampled_for_review(uuid, key, 0.5)
