"""The titles of the dashboard's charts, and the parts that they count."""

from hypothesis import given
from hypothesis import strategies as st

from dynabench.manage.activity import find_deciding_share
from dynabench.manage.findings import describe_agreement, describe_days, describe_steps
from validation.consensus.consensus import Policy
from validation.decisions.counted import TryParts

counts = st.integers(0, 999)


@given(counts, counts, counts, counts)
def test_no_part_exceeds_its_whole(held, waiting, catches, refuted):
    parts = TryParts(held, waiting, catches, refuted)
    assert parts.tries >= parts.wrong >= parts.decided >= parts.catches
    assert parts.tries == held + parts.wrong
    title = describe_steps(parts)
    if parts.tries:
        assert f"{catches} of {parts.tries}" in title


def test_what_the_days_say():
    assert not any(map(str.isdigit, describe_steps(TryParts())))
    waiting = describe_days(TryParts(3, 2, 1, 0), 7)
    assert waiting.startswith("6 tries in 7 days")
    assert "2" in waiting
    assert describe_days(TryParts(1, 0, 0, 0), 7) == "1 try in 7 days"
    for parts in (TryParts(3, 2, 1, 0), TryParts(3, 0, 1, 0)):
        assert "days" not in describe_days(parts, 1)


def test_agreement_below_the_policy_is_named():
    high = describe_agreement(0.834, 0.9, 0.6)
    assert "83%" in high
    assert "60%" not in high
    assert describe_agreement(0.834, 0.9, None) == high
    low = describe_agreement(0.4, 0.5, 0.6)
    assert "40%" in low
    assert "60%" in low


def test_the_share_that_decides():
    assert find_deciding_share(Policy("n-equal", 3, 5)) == 0.6
    assert find_deciding_share(Policy("n-equal", 3)) is None
    assert find_deciding_share(Policy("strict")) == 0.5
    assert find_deciding_share(Policy("dawid-skene")) is None
