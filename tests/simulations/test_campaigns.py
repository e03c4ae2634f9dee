"""How many careless judges the evidence of campaigns finds, and how many honest ones it accuses."""

from collections import Counter

import pytest

from dynabench.campaigns.simulation import Plan, simulate
from validation.consensus.consensus import Policy

SEEDS = 20


@pytest.mark.parametrize("labels", ["abc", "abcde", "ab", ""], ids=["3", "5", "2", "verdicts"])
def test_proposals(labels):
    plan, all_of = Plan(200, 30, 6, labels, Policy("n-equal", 3)), Counter()
    for seed in range(SEEDS):
        all_of.update(vars(simulate(plan, seed)))
    shares = [all_of["careless_found"] / all_of["careless"], all_of["ring_found"] / all_of["ring"]]
    wrongly = all_of["honest_proposed"] / all_of["honest"]
    print(f"{len(labels) or 'verdicts'}: {shares[0]:.3f} found, {shares[1]:.3f} of rings, "
          f"{wrongly:.4f} accused; vMER {all_of['vmer'] / SEEDS:.3f} of "
          f"{all_of['vmer_true'] / SEEDS:.3f}")  # fmt: skip
    assert shares[0] >= 0.9
    assert wrongly <= 0.02
