"""Careless judges, copiers and rings, by votes alone; and campaigns that are played."""

from collections import Counter

import pytest

from dynabench.campaigns.rules.evidence import (
    MIN_JUDGEMENTS,
    CastVote,
    estimate_accuracies,
    find_copiers,
    propose_judges,
)
from dynabench.campaigns.simulation import Plan, simulate
from validation.consensus.consensus import Policy

ITEMS = range(40)


def truth(item):
    return item % 3


def said(judge, answer, *, items=ITEMS, at=0.0):
    return [CastVote(item, judge, answer(item), item + at) for item in items]


def errs(every, start):
    """Right but on each so many-th item."""
    return lambda item: truth(item) if item % every != start else (truth(item) + 1) % 3


CROWD = [vote for judge in range(5) for vote in said(judge, errs(7, judge))]


def test_a_judge_near_chance_is_proposed_and_a_good_one_is_not():
    votes = [*CROWD, *said(8, lambda item: 0)]
    [found] = propose_judges(votes, {}, 3)
    assert (found.judge, found.judged, found.copies) == (8, 40, ())
    assert found.accuracy < found.bound < 0.6
    shares = estimate_accuracies(CROWD, {}, 3)
    assert all(0.8 < shares[judge] < 0.95 for judge in range(5))


def test_nothing_is_said_of_few_judgements_or_without_votes():
    few = said(8, lambda item: 0, items=range(MIN_JUDGEMENTS - 1))
    assert propose_judges([*CROWD, *few], {}, 3) == []
    assert propose_judges(few, {}, 3) == []
    assert propose_judges([], {}, 3) == []
    assert estimate_accuracies([], {}, 3) == {}


def test_gold_outweighs_the_others():
    """Two of three agree on wrong answers; gold says who is right."""
    votes = [*said(0, truth)]
    votes += [vote for judge in (1, 2) for vote in said(judge, lambda item: (item + 1) % 3)]
    gold = {item: truth(item) for item in ITEMS[::2]}
    shares = estimate_accuracies(votes, gold, 3)
    assert shares[0] > 0.9 > 0.3 > shares[1]


def test_who_answers_later_copies():
    source = said(5, errs(4, 1))
    copy = [CastVote(vote.item, 6, vote.answer, vote.at + 0.5) for vote in source]
    assert find_copiers([*CROWD, *source, *copy], {}, 3) == {6: {5}}
    before = [vote._replace(at=vote.at - 1) for vote in copy]
    assert find_copiers([*CROWD, *source, *before], {}, 3) == {5: {6}}
    [found] = propose_judges([*CROWD, *source, *copy], {}, 3)
    assert (found.judge, found.copies, found.accuracy) == (6, [5], None)


def test_a_ring_that_answers_alike_is_found_even_where_it_outvotes_the_others():
    ring = [
        CastVote(item, judge, (item * 7 // 5) % 3, item + (judge + item) % 4)
        for judge in range(20, 24)
        for item in ITEMS
    ]
    found = find_copiers([*CROWD[:120], *ring], {}, 3)
    assert set(found) == {20, 21, 22, 23}


def test_two_who_are_always_right_are_no_copiers():
    votes = [*CROWD, *said(8, truth), *said(9, truth, at=0.5)]
    assert find_copiers(votes, {}, 3) == {}


@pytest.mark.parametrize(
    ("labels", "policy"),
    [("abc", Policy("n-equal", 3)), ("abcde", Policy("at-least", 2, 3)), ("", Policy())],
)
def test_played_campaigns_find_the_careless_and_spare_the_honest(labels, policy):
    plan = Plan(120, 18, 6, labels, policy, 40, 15, 100)
    all_of = Counter()
    for seed in range(3):
        all_of.update(vars(simulate(plan, seed)))
    assert (all_of["careless"], all_of["honest"], all_of["ring"]) == (54, 288, 18)
    assert all_of["careless_found"] >= 0.8 * all_of["careless"]
    assert all_of["honest_proposed"] <= 0.04 * all_of["honest"]
    assert all_of["ring_found"] >= 0.5 * all_of["ring"]
    assert 0.6 < all_of["vmer"] / all_of["vmer_true"] < 1
    assert all_of["cost"] > 0


def test_the_same_seed_plays_the_same_campaign():
    plan = Plan(20, 3, 0, "ab", Policy("n-equal", 2))
    assert simulate(plan, 4) == simulate(plan, 4) != simulate(plan, 5)
    assert simulate(plan, 4).cost == 0


def test_where_two_disagree_the_authors_label_tells_who_is_careless():
    answers = [(item, item % 2) for item in range(30)]
    votes = [CastVote(item, 0, right, 0.0) for item, right in answers]
    votes += [CastVote(item, 1, 0, 0.0) for item, _right in answers]
    votes += [CastVote(item, 2, right, 0.0) for item, right in answers[20:]]
    assert propose_judges(votes, {}, 2, dict(answers))[0].judge == 1
    assert [one.judge for one in propose_judges(votes, {}, 2, dict.fromkeys(range(30), 0))] == [0]
