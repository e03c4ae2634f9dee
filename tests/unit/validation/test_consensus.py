"""When votes decide: each rule by cases, what holds for all of them, and the published numbers."""

import gzip
import json
from collections import Counter
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasks.config.judging import Votes
from validation.consensus.consensus import (
    Decision,
    Policy,
    Vote,
    count_votes_still_needed,
    decide_by_votes,
    is_validated_error,
    is_verified,
)

VERDICTS = ("correct", "incorrect", "flagged")
RULES = ("n-equal", "at-least", "strict", "plurality")

verdict_votes = st.sampled_from([Vote(verdict=name) for name in (*VERDICTS, "cannot_tell")])
any_votes = st.one_of(verdict_votes, st.sampled_from([Vote(label=name) for name in "ABC"]))
policies = st.builds(
    lambda rule, needed, more: Policy(rule, needed, None if more is None else needed + more),
    st.sampled_from(RULES),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(0, 4)),
)


def labels(text: str) -> list[Vote]:
    """One vote a letter; ? is “cannot tell”."""
    return [Vote(verdict="cannot_tell") if c == "?" else Vote(label=c) for c in text]


def outcome(decision: Decision) -> str:
    if decision.state != "decided":
        return decision.state
    return decision.label or decision.verdict or ""


@pytest.mark.parametrize(
    ("text", "policy", "expected"),
    [
        ("AA", Policy("n-equal", 3), "undecided"),
        ("AABBA", Policy("n-equal", 3), "A"),
        ("AABBCC", Policy("n-equal", 3), "undecided"),
        ("AABBCCD", Policy("n-equal", 3), "no_consensus"),
        ("AABB", Policy("n-equal", 3, 4), "no_consensus"),
        ("ABC", Policy("n-equal", 3, 4), "no_consensus"),
        ("AAABBB", Policy("n-equal", 3), "undecided"),
        ("AABB?", Policy("at-least", 3, 5), "no_consensus"),
        ("AAA", Policy("at-least", 3, 5), "A"),
        ("AABB", Policy("at-least", 3, 5), "undecided"),
        ("AABC", Policy("at-least", 2, 5), "undecided"),
        ("AABCD", Policy("at-least", 2, 5), "A"),
        ("AABBC", Policy("at-least", 2, 5), "no_consensus"),
        ("AABB", Policy("at-least", 2), "undecided"),
        ("AB", Policy("at-least", 5, 5), "no_consensus"),
        ("AAAAA", Policy("at-least", 5), "A"),
        ("AA", Policy("strict", of=5), "undecided"),
        ("AAA", Policy("strict", of=5), "A"),
        ("AABB", Policy("strict", of=4), "no_consensus"),
        ("AAABBB?", Policy("strict", of=5), "no_consensus"),
        ("AAB", Policy("strict"), "A"),
        ("AAB?", Policy("strict"), "undecided"),
        ("AABC", Policy("plurality", of=4), "A"),
        ("AA", Policy("plurality", of=4), "undecided"),
        ("AAA", Policy("plurality", of=5), "A"),
        ("AABBC", Policy("plurality", of=5), "no_consensus"),
        ("AAB", Policy("plurality"), "A"),
        ("", Policy("plurality"), "undecided"),
        ("???", Policy("n-equal", 3), "cannot_tell"),
    ],
)
def test_rules(text, policy, expected):
    assert outcome(decide_by_votes(labels(text), policy)) == expected


def test_equal_numbers_of_verdicts_beyond_those_asked_for_go_by_dynabenchs_order():
    votes = [Vote(verdict=v) for v in ("flagged", "incorrect", "incorrect", "flagged")]
    assert outcome(decide_by_votes(votes, Policy("n-equal", 2))) == "incorrect"
    mixed = [*labels("AA"), *votes[1:3]]
    assert outcome(decide_by_votes(mixed, Policy("n-equal", 2))) == "no_consensus"


def test_a_posterior_decides_from_its_threshold_on():
    policy, votes = Policy("dawid-skene", of=3, threshold=0.8), labels("AB")
    assert outcome(decide_by_votes(votes, policy, posterior={"B": 0.2, "A": 0.8})) == "A"
    assert outcome(decide_by_votes(votes, policy, posterior={"A": 0.79})) == "undecided"
    assert outcome(decide_by_votes(votes, policy)) == "undecided"
    assert outcome(decide_by_votes(labels("ABC"), policy, posterior={"A": 0.79})) == "no_consensus"
    assert outcome(decide_by_votes(votes, Policy("dawid-skene"))) == "undecided"
    assert count_votes_still_needed(votes, policy) == 1
    assert count_votes_still_needed(labels("ABC"), policy) == 0


@pytest.mark.parametrize(
    ("text", "policy", "needed"),
    [
        ("", Policy("n-equal", 3), 3),
        ("AAB", Policy("n-equal", 3), 1),
        ("AAA", Policy("n-equal", 3), 0),
        ("AABBCCD", Policy("n-equal", 3), 0),
        ("", Policy("at-least", 3, 5), 3),
        ("AAB", Policy("at-least", 2, 5), 1),
        ("A", Policy("strict"), 0),
        ("AB", Policy("strict"), 1),
        ("AABBC", Policy("strict"), 2),
        ("AABB", Policy("plurality"), 1),
        ("A", Policy("plurality", of=5), 2),
    ],
)
def test_votes_still_needed(text, policy, needed):
    assert count_votes_still_needed(labels(text), policy) == needed


@given(st.lists(any_votes, max_size=9), policies, st.randoms())
def test_the_order_of_votes_never_matters(votes, policy, random):
    shuffled = random.sample(votes, len(votes))
    assert decide_by_votes(shuffled, policy) == decide_by_votes(votes, policy)
    assert count_votes_still_needed(shuffled, policy) == count_votes_still_needed(votes, policy)


@given(st.lists(any_votes, max_size=9), policies)
def test_an_added_equal_vote_never_undoes_a_decision(votes, policy):
    before = decide_by_votes(votes, policy)
    assume(before.winner)
    after = decide_by_votes([*votes, before.winner], policy)
    assert after.winner == before.winner


def test_an_owner_decides_without_votes():
    decision = decide_by_votes([], Policy("n-equal", 3), owner=Vote(label="A"))
    assert (outcome(decision), decision.is_by_owner) == ("A", True)


@given(st.lists(any_votes, max_size=9), policies, any_votes)
def test_the_owner_wins_and_can_withdraw(votes, policy, owner):
    before = decide_by_votes(votes, policy)
    overruled = decide_by_votes(votes, policy, owner=owner)
    assert (overruled.winner, overruled.is_by_owner) == (owner, True)
    assert overruled.counts == before.counts
    assert count_votes_still_needed(votes, policy, owner=owner) == 0
    assert decide_by_votes(votes, policy) == before
    assert not before.is_by_owner


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_the_last_of_3n_minus_2_verdicts_always_decides_and_may_be_needed(needed):
    policy = Policy("n-equal", needed)
    assert policy.max_votes == 3 * needed - 2
    for verdicts in product(VERDICTS, repeat=policy.max_votes):
        assert decide_by_votes([Vote(verdict=v) for v in verdicts], policy).state == "decided"
    one_less = [Vote(verdict=v) for v in VERDICTS] * (needed - 1)
    assert decide_by_votes(one_less, policy).state == "undecided"


@given(st.lists(any_votes, max_size=9), policies)
def test_the_votes_still_needed_decide_and_one_less_does_not(votes, policy):
    missing = count_votes_still_needed(votes, policy)
    decision = decide_by_votes(votes, policy)
    assert (missing > 0) == (decision.state == "undecided")
    assume(missing)
    leaders = set(votes) or {Vote(label="A")}
    assert any(decide_by_votes(votes + [v] * missing, policy).winner == v for v in leaders)
    others = [*leaders, Vote(label="new")]
    assert all(decide_by_votes(votes + [v] * (missing - 1), policy).winner is None for v in others)


@given(st.data(), st.sampled_from(RULES[1:]), st.integers(1, 3), st.integers(0, 3))
def test_an_early_word_is_what_all_votes_would_say(data, rule, needed, more):
    policy = Policy(rule, needed, needed + more)
    everyone = data.draw(st.lists(any_votes, min_size=policy.of, max_size=policy.of))
    early = decide_by_votes(everyone[: data.draw(st.integers(0, policy.of))], policy)
    final = decide_by_votes(everyone, policy)
    assert final.state != "undecided"
    assert early.state == "undecided" or (early.state, early.winner) == (final.state, final.winner)


@pytest.mark.parametrize(
    ("decision", "author", "model", "fooled", "verified", "error"),
    [
        ("A", "A", "B", None, True, True),
        ("A", "A", "A", None, True, False),
        ("A", "B", "B", None, False, False),
        ("A", None, "B", None, True, True),
        ("A", None, "A", None, True, False),
        ("A", "A", None, None, True, False),
        ("A", "A", "A", True, True, True),
        ("A", "A", "B", False, True, False),
        ("A", "B", "B", True, False, False),
        ("correct", "A", "B", None, True, True),
        ("correct", "A", "A", None, True, False),
        ("correct", None, "A", None, True, False),
        ("correct", None, None, True, True, True),
        ("incorrect", "A", "B", None, False, False),
        ("flagged", "A", "B", True, False, False),
        (None, "A", "B", True, False, False),
    ],
)
def test_verified_and_validated_error(decision, author, model, fooled, verified, error):
    winner = (
        Vote(verdict=decision)
        if decision in VERDICTS
        else Vote(label=decision)
        if decision
        else None
    )
    decided = Decision("decided" if winner else "undecided", winner)
    assert is_verified(decided, author) is verified
    assert is_validated_error(decided, author, model, is_fooled=fooled) is error


def test_policies_from_a_configuration_and_from_words():
    assert Policy.from_votes(Votes()) == Policy("n-equal", 3)
    strict = Policy.from_votes(Votes.model_validate({"rule": "strict", "of": 5}))
    assert (strict.rule, strict.of) == ("strict", 5)
    assert Policy.parse("n-equal:2") == Policy("n-equal", 2)
    assert Policy.parse("at-least:5") == Policy("at-least", 5)
    assert Policy.parse("strict") == Policy("strict")
    assert Policy.parse("plurality") == Policy("plurality")
    assert Policy.parse("dawid-skene:0.9") == Policy("dawid-skene", threshold=0.9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n-equal", "Write n-equal:3"),
        ("strict:2", "Write n-equal:3"),
        ("majority", "Write n-equal:3"),
        ("at-least:0", "at least 1 vote"),
        ("dawid-skene:0.5", "above 0.5"),
        ("dawid-skene:2", "at most 1"),
    ],
)
def test_bad_policies_say_what_to_write(text, message):
    with pytest.raises(ValueError, match=message):
        Policy.parse(text)


def test_impossible_policies_and_votes():
    with pytest.raises(ValueError, match="2"):
        Policy("at-least", 3, 2)
    with pytest.raises(ValueError, match="vote"):
        Policy("strict", of=0)
    for both_or_none in ({}, {"label": "A", "verdict": "correct"}):
        with pytest.raises(ValueError, match="exactly one"):
            Vote(**both_or_none)


def vmer_and_labels(path, policy):
    """Validated model errors ÷ all rows, and how many rows have which consensus label."""
    errors, found = 0, Counter()
    for row in map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines()):
        decision = decide_by_votes(
            [Vote(label=vote["label"]) for vote in row["validations"]], policy
        )
        found[decision.label] += 1
        model = row["model_prediction"] and row["model_prediction"]["label"]
        errors += is_validated_error(decision, row["author_label"], model)
    return errors / found.total(), found


@pytest.mark.data
@pytest.mark.parametrize("given_of", [None, 5])
@pytest.mark.parametrize(
    ("name", "each", "unanimous_vmer"),
    [
        ("r1-dev", 1200, 0.214167),
        ("r1-test", 1200, 0.217778),
        ("r2-dev", 240, 0.230556),
        ("r2-test", 240, 0.222222),
    ],
)
def test_dynasents_published_numbers(data, name, each, unanimous_vmer, given_of):
    path = data / f"dynasent-{name}.jsonl.gz"
    vmer, found = vmer_and_labels(path, Policy("at-least", 3, given_of))
    assert vmer == pytest.approx(2 / 3)
    assert found == {"positive": each, "negative": each, "neutral": each}
    vmer, _ = vmer_and_labels(path, Policy("at-least", 5, given_of))
    assert vmer == pytest.approx(unanimous_vmer, abs=5e-7)


@pytest.mark.data
def test_ssts_published_majorities(data):
    path = data / "dynasent-sst-dev.jsonl.gz"
    vmer, found = vmer_and_labels(path, Policy("at-least", 3))
    assert vmer == 0
    assert found == {"positive": 433, "negative": 421, "mixed": 108, "neutral": 75, None: 64}
    assert 1 - found[None] / found.total() == pytest.approx(0.941871, abs=5e-7)


@pytest.mark.data
def test_every_row_of_the_anli_sample_is_a_validated_error(data):
    vmer, found = vmer_and_labels(data / "anli-dev-sample.jsonl.gz", Policy("n-equal", 2))
    assert vmer == 1
    assert found == {"contradiction": 290, "entailment": 296, "neutral": 314}
