"""The decision on an answer that people judge criterion by criterion. Pure.

Each criterion is decided by the policy from all judgements of it. Only then the verdict follows
from the score. So the verdict may differ from that of most voters: each of three criteria may be
found not met by one person of three, and is then met by the votes of the two others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tasks.config.criteria import Criterion, Judgement
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import ByCriteria, list_criteria, score_answer
from validation.consensus.claims import is_about_model
from validation.consensus.consensus import (
    Decision,
    Policy,
    Verdict,
    Vote,
    count_votes_still_needed,
    decide_by_votes,
)

_VERDICTS: Mapping[str, Verdict] = {
    "met": "correct",
    "not_met": "incorrect",
    "cannot_tell": "cannot_tell",
}
_JUDGEMENTS: Mapping[Verdict, Judgement] = {
    "correct": "met",
    "incorrect": "not_met",
    "cannot_tell": "cannot_tell",
}


class Ballot(NamedTuple):
    """A person's vote, with their judgements of the criteria if they were asked for them."""

    vote: Vote
    judgements: Sequence[str] | None = None


class ExampleDecision(NamedTuple):
    """The decision on an example.

    still_needed: the minimum number of further votes. judgements: what was decided about each
    criterion, None where nothing was. score: by these, None if it is open. Both are empty for
    examples without criteria.
    """

    decision: Decision
    still_needed: int
    judgements: tuple[Judgement | None, ...] = ()
    score: float | None = None


def list_judged_criteria(
    config: TaskConfig, outcome: str, inputs: Mapping[str, Any]
) -> tuple[Criterion, ...]:
    """Return the criteria that judges of an example are asked about; mostly there are none."""
    if config.verdict.type != "criteria" or not is_about_model(config, outcome):
        return ()
    return list_criteria(config.verdict, inputs)


def build_criteria_vote(
    rule: ByCriteria, criteria: Sequence[Criterion], judgements: Sequence[str]
) -> Vote:
    """Return the vote on the answer that follows from one person's judgements."""
    return Vote(verdict=score_answer(rule, criteria, judgements)[1])


def decide_example(
    config: TaskConfig,
    criteria: Sequence[Criterion],
    ballots: Iterable[Ballot],
    policy: Policy,
    *,
    owner: Vote | None = None,
    posterior: Mapping[str, float] | None = None,
) -> ExampleDecision:
    """Decide an example by all its votes, criterion by criterion if it has criteria.

    Parameters
    ----------
    config
        The task's configuration.
    criteria
        The criteria of the example (`list_judged_criteria`).
    ballots
        In any order.
    policy
        The rule that decides. It is applied to each criterion.
    owner
        The owner's decision on the whole answer, if any. It wins; the criteria keep what the votes
        say of them.
    posterior
        As for `decide_by_votes`.

    Notes
    -----
    A flag is a flag of each criterion, and if it wins for one, the example is flagged. Imported
    votes without judgements decide only where nobody has judged criteria.
    """
    # They are read once for each criterion.
    ballots = list(ballots)
    votes = [ballot.vote for ballot in ballots]
    if not criteria or not any(ballot.judgements for ballot in ballots):
        return ExampleDecision(
            decide_by_votes(votes, policy, owner=owner, posterior=posterior),
            count_votes_still_needed(votes, policy, owner=owner, posterior=posterior),
        )
    assert config.verdict.type == "criteria"
    tallies = [_count_judgements(ballots, number) for number in range(len(criteria))]
    decisions = [decide_by_votes(tally, policy) for tally in tallies]
    judgements = tuple(_JUDGEMENTS.get(decision.verdict or "flagged") for decision in decisions)
    # One more vote judges all criteria, so the one that needs most decides.
    still_needed = max(count_votes_still_needed(tally, policy) for tally in tallies)
    score, verdict = score_answer(config.verdict, criteria, judgements)
    counts = Counter(votes)
    if owner:
        decision = Decision("decided", owner, counts, is_by_owner=True)
    else:
        decision = _decide(decisions, verdict, counts)
    # An example that is flagged needs no vote, whatever is open about its other criteria.
    is_open = decision.state == "undecided"
    return ExampleDecision(decision, still_needed if is_open else 0, judgements, score.value)


def _count_judgements(ballots: Iterable[Ballot], number: int) -> Counter[Vote]:
    """Count the judgements of one criterion as votes; a flag of the example counts, too."""
    tally: Counter[Vote] = Counter()
    for ballot in ballots:
        if ballot.judgements:
            tally[Vote(verdict=_VERDICTS[ballot.judgements[number]])] += 1
        # An imported vote without judgements says nothing about a single criterion.
        elif ballot.vote.verdict == "flagged":
            tally[ballot.vote] += 1
    return tally


def _decide(
    decisions: Sequence[Decision], verdict: Verdict, counts: Mapping[Vote, int]
) -> Decision:
    """Return the decision on the answer. verdict: the one that follows from the criteria."""
    if any(decision.verdict == "flagged" for decision in decisions):
        return Decision("decided", Vote(verdict="flagged"), counts)
    # Even if the verdict is clear already: each criterion has its own number in releases.
    states = {decision.state for decision in decisions}
    if "undecided" in states:
        return Decision("undecided", None, counts)
    # A criterion on which people don't agree need not matter for the verdict.
    if verdict == "cannot_tell" and "no_consensus" in states:
        return Decision("no_consensus", None, counts)
    return Decision("decided", Vote(verdict=verdict), counts)
