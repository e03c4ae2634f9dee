"""The shares of a mixed round: the urn's ratios, and how many texts machines may write."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.arms import (
    ARMS,
    MACHINE_LEAD,
    MACHINES,
    MAX_PARTS,
    PEOPLE_ARMS,
    compute_shares,
    count_allowed_machine_texts,
    reduce_shares,
)

SHARES = st.fixed_dictionaries(dict.fromkeys(ARMS, st.integers(0, MAX_PARTS))).filter(
    lambda shares: any(shares[arm] for arm in PEOPLE_ARMS)
)


@given(SHARES)
def test_reduced_shares_keep_their_ratio_in_the_smallest_urn(shares):
    reduced = reduce_shares(shares)
    people_total, reduced_total = sum(shares[arm] for arm in PEOPLE_ARMS), sum(reduced.values())
    for arm in PEOPLE_ARMS:
        assert shares[arm] * reduced_total == reduced.get(arm, 0) * people_total
    assert reduced_total <= people_total
    assert any(parts % 2 for parts in reduced.values())


def test_shares_are_of_all_four_arms():
    shares = {"people": 2, "helped": 1, "drafts": 0, "machines": 1}
    assert compute_shares(shares) == {
        "people": 0.5, "helped": 0.25, "drafts": 0, "machines": 0.25
    }  # fmt: skip


@given(SHARES, st.integers(0, 100_000))
def test_machines_are_never_further_ahead_than_their_lead(shares, people_texts):
    allowed = count_allowed_machine_texts(shares, people_texts)
    if not shares[MACHINES]:
        assert allowed == 0
        return
    people_parts = sum(shares[arm] for arm in PEOPLE_ARMS)
    exact = people_texts * shares[MACHINES] / people_parts
    assert exact - 1 < allowed - MACHINE_LEAD <= exact
