"""The decision on an answer that people judge criterion by criterion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.criteria import CLEAR_JUDGEMENTS, JUDGEMENTS, compute_score
from tasks.config.loading import load_config
from tests.support.criteria import CRITERIA, build_text
from validation.consensus.consensus import Policy, Vote
from validation.consensus.criteria import (
    Ballot,
    build_criteria_vote,
    decide_example,
    list_judged_criteria,
)

CONFIG = load_config(build_text())
ASKED = list_judged_criteria(CONFIG, "fooled", {"checks": CRITERIA})
TWO = Policy(needed=2)
FLAG = Ballot(Vote(verdict="flagged"))
POLICIES = st.sampled_from(
    [
        Policy(needed=1),
        Policy(needed=2),
        Policy(),
        Policy("at-least", 2, 3),
        Policy("strict", 2, 3),
        Policy("plurality", 2, 3),
    ]
)


def ballot(*judgements):
    return Ballot(build_criteria_vote(CONFIG.verdict, ASKED, judgements), judgements)


def decide(*ballots, policy=TWO, **options):
    return decide_example(CONFIG, ASKED, ballots, policy, **options)


BALLOTS = st.lists(
    st.one_of(
        st.just(FLAG),
        st.tuples(*[st.sampled_from(JUDGEMENTS)] * 3).map(lambda judgements: ballot(*judgements)),
    ),
    max_size=7,
)


def test_each_criterion_is_decided_and_the_verdict_follows():
    # Nobody finds all of them met, and yet each is met for two of three.
    found = decide(
        ballot("met", "met", "met"),
        ballot("met", "not_met", "not_met"),
        ballot("not_met", "met", "not_met"),
    )
    assert found.judgements == ("met", "met", "not_met")
    assert (found.decision.state, found.decision.verdict, found.score) == ("decided", "correct", 1)
    votes = [vote.verdict for vote in found.decision.counts.elements()]
    assert votes.count("correct") == 1


def test_it_waits_for_the_criterion_that_needs_most_votes():
    found = decide(ballot("met", "met", "not_met"), ballot("met", "not_met", "not_met"))
    assert (found.decision.state, found.still_needed) == ("undecided", 1)
    assert found.judgements == ("met", None, "not_met")
    assert found.score is None


def test_a_criterion_that_nobody_can_tell_matters_only_if_the_verdict_hangs_on_it():
    doubt = ballot("met", "cannot_tell", "not_met")
    found = decide(doubt, doubt)
    assert (found.decision.verdict, found.score) == ("correct", None)  # 3 of 5 points at least
    assert found.judgements == ("met", "cannot_tell", "not_met")
    doubt = ballot("cannot_tell", "met", "not_met")
    assert decide(doubt, doubt).decision.verdict == "cannot_tell"


def test_people_who_never_agree_reach_no_consensus():
    policy = Policy("at-least", 2, 2)
    votes = ballot("met", "met", "not_met"), ballot("not_met", "met", "not_met")
    found = decide(*votes, policy=policy)
    assert (found.decision.state, found.still_needed) == ("no_consensus", 0)
    votes = ballot("met", "met", "not_met"), ballot("met", "not_met", "not_met")
    assert decide(*votes, policy=policy).decision.verdict == "correct"


def test_flags_and_owners_decide_the_whole_example():
    found = decide(ballot("met", "met", "not_met"), FLAG, FLAG)
    assert (found.decision.verdict, found.still_needed) == ("flagged", 0)
    found = decide(ballot("met", "met", "not_met"), owner=Vote(verdict="incorrect"))
    assert (found.decision.verdict, found.decision.is_by_owner) == ("incorrect", True)
    assert (found.still_needed, found.judgements) == (0, (None, None, None))


def test_votes_without_judgements_decide_as_in_other_tasks():
    imported = Ballot(Vote(verdict="incorrect"))
    found = decide(imported, imported)
    assert (found.decision.verdict, found.judgements, found.score) == ("incorrect", (), None)
    # Beside people who judged the criteria they say nothing.
    assert decide(imported, imported, ballot("met", "met", "not_met")).decision.winner is None


def test_other_rules_and_examples_have_no_criteria():
    assert list_judged_criteria(CONFIG, "no_model", {"checks": CRITERIA}) == ()
    assert list_judged_criteria(CONFIG, "fooled", {"checks": "?"}) == ()
    assert list_judged_criteria(CONFIG, "unknown", {"checks": CRITERIA}) == ASKED


@given(BALLOTS, POLICIES, st.randoms(use_true_random=False))
def test_the_order_of_votes_does_not_matter(ballots, policy, chance):
    shuffled = [*ballots]
    chance.shuffle(shuffled)
    assert decide(*ballots, policy=policy) == decide(*shuffled, policy=policy)


@given(BALLOTS, POLICIES)
def test_what_is_undecided_can_still_be_decided_and_nothing_else_asks_for_votes(ballots, policy):
    found = decide(*ballots, policy=policy)
    assert (found.decision.state == "undecided") == (found.still_needed > 0)


@given(BALLOTS, POLICIES)
def test_the_score_is_that_of_what_was_decided(ballots, policy):
    found = decide(*ballots, policy=policy)
    if found.judgements:
        assert found.score == compute_score(ASKED, found.judgements, "share").value
    verdict = found.decision.verdict
    if verdict in ("correct", "incorrect") and found.score is not None:
        assert (verdict == "correct") == (found.score >= 0.6)


@given(st.tuples(*[st.sampled_from(CLEAR_JUDGEMENTS)] * 3), POLICIES)
def test_equal_judgements_decide_as_one_person_does(judgements, policy):
    one = ballot(*judgements)
    found = decide(*[one] * max(policy.needed, policy.of or 0), policy=policy)
    assert (found.decision.winner, found.judgements) == (one.vote, judgements)


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_votes_that_are_asked_for_always_end(needed):
    """The most that one criterion can need is the most that the example is asked for."""
    policy, ballots = Policy(needed=needed), []
    turns = [("met", "not_met", "cannot_tell"), ("not_met", "cannot_tell", "met"),
             ("cannot_tell", "met", "not_met")]  # fmt: skip
    while decide(*ballots, policy=policy).decision.state == "undecided":
        ballots.append(ballot(*turns[len(ballots) % 3]))
    assert len(ballots) <= policy.max_votes
