"""How often the interval of a judge's agreement with people holds the truth."""

import random

from evaluation.judges.llm_judges.agreement import JudgedPair, compute_agreement


def test_the_interval_holds_the_truth():
    """Authors who are judged well or badly; true κ by a very long run."""
    chance = random.Random(1)

    def pairs(authors, each):
        for author in range(authors):
            skill = chance.betavariate(8, 2)
            for _ in range(each):
                by_people = chance.random() < 0.6
                agrees = chance.random() < skill
                yield JudgedPair(author, by_people, by_people == agrees)

    truth = compute_agreement(pairs(20_000, 5)).kappa
    held = 0
    for _ in range(400):
        found = compute_agreement(pairs(20, 6))
        held += found.low <= truth <= found.high
    assert held / 400 >= 0.93
