"""Policies that decide examples by votes. Pure: the clock and the order of votes don't matter.

A vote is a label or a verdict. “Cannot tell” and “flagged” are verdicts in either mode and win like
any other choice. So enough of these votes close an example without verifying it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, Self, cast, get_args

from core.text.words import gettext_noop
from tasks.config.judging import Votes

Verdict = Literal["correct", "incorrect", "flagged", "cannot_tell"]
Rule = Literal["n-equal", "at-least", "strict", "plurality", "dawid-skene"]
State = Literal["undecided", "decided", "no_consensus"]

_POLICY_PATTERN = re.compile(
    r"(n-equal|at-least):([0-9]+)|(strict|plurality)|dawid-skene:([0-9]*\.?[0-9]+)"
)


@dataclass(frozen=True, slots=True)
class Vote:
    """One validator's answer: a label of their own, or a verdict on the author's.

    Raises ValueError unless exactly one is given.
    """

    label: str | None = None
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        if (self.label is None) == (self.verdict is None):
            raise ValueError("A vote is either a label or a verdict; give exactly one.")


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule that decides an example from its votes.

    needed: equal votes that decide (n-equal, at-least). of: the maximum number of votes; None for
    no limit. threshold: the posterior (0-1) that decides (dawid-skene). Raises ValueError.
    """

    rule: Rule = "n-equal"
    needed: int = 3
    of: int | None = None
    threshold: float = 0.8

    def __post_init__(self) -> None:
        if self.needed < 1 or (self.of is not None and self.of < 1):
            raise ValueError(gettext_noop("Enter at least 1 vote."))
        if self.rule in ("n-equal", "at-least") and self.of and self.of < self.needed:
            raise ValueError(f"{self.needed} equal votes cannot come out of {self.of}.")
        # At one half, two labels could reach it.
        if not 0.5 < self.threshold <= 1:
            raise ValueError(gettext_noop("Enter a threshold above 0.5 and at most 1."))

    @classmethod
    def from_votes(cls, votes: Votes) -> Self:
        """Build the policy that a task's configuration names."""
        return cls(votes.rule, votes.needed, votes.of)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse n-equal:3, at-least:3, strict, plurality or dawid-skene:0.8. Raises ValueError."""
        match = _POLICY_PATTERN.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{text!r} isn't a policy. Write n-equal:3, at-least:3, strict, plurality or "
                "dawid-skene:0.8."
            )
        vote_match, needed, share_match, threshold = match.groups()
        if vote_match:
            return cls(cast(Rule, vote_match), int(needed))
        return (
            cls(cast(Rule, share_match))
            if share_match
            else cls("dawid-skene", threshold=float(threshold))
        )

    @property
    def max_votes(self) -> int | None:
        """Return the maximum number of votes to ask for; None for no limit.

        N equal votes of three verdicts need at most 3N-2.
        """
        return 3 * self.needed - 2 if self.rule == "n-equal" and self.of is None else self.of


@dataclass(frozen=True, slots=True)
class Decision:
    """The state of the votes on an example; `winner` is None unless decided."""

    state: State
    winner: Vote | None = None
    counts: Mapping[Vote, int] = field(default_factory=dict)
    is_by_owner: bool = False

    @property
    def label(self) -> str | None:
        """Return the consensus label; None without a consensus, or if a verdict won."""
        return self.winner.label if self.winner else None

    @property
    def verdict(self) -> Verdict | None:
        """Return the consensus verdict; None without a consensus, or if a label won."""
        return self.winner.verdict if self.winner else None


def decide_by_votes(
    votes: Iterable[Vote],
    policy: Policy,
    *,
    owner: Vote | None = None,
    posterior: Mapping[str, float] | None = None,
) -> Decision:
    """Decide one example by all its votes.

    Parameters
    ----------
    votes
        In any order; also a mapping of choices to numbers of votes.
    policy
        The rule that decides.
    owner
        The owner's current decision, if any; it overrides all votes.
    posterior
        Probability of each label, for dawid-skene (`validation.consensus.dawid_skene.fitting`).

    Returns
    -------
    Decision
        The state of the example, and the choice that won.
    """
    counts = Counter(votes)
    if owner:
        return Decision("decided", owner, counts, is_by_owner=True)
    if policy.rule == "dawid-skene":
        winner = _find_most_probable(posterior or {}, policy.threshold)
    else:
        winner = _find_winner(counts, policy)
    if winner:
        return Decision("decided", winner, counts)
    # If not even the leading answer can win any more, no further votes are requested.
    can_be_decided = _can_win(*_count_leading_votes(counts), sum(counts.values()), policy)
    return Decision("undecided" if can_be_decided else "no_consensus", None, counts)


def count_votes_still_needed(
    votes: Iterable[Vote],
    policy: Policy,
    *,
    owner: Vote | None = None,
    posterior: Mapping[str, float] | None = None,
) -> int:
    """Return the minimum number of further votes that could decide; 0 if decided or impossible.

    Parameters
    ----------
    votes, policy, owner, posterior
        As for `decide_by_votes`.

    Notes
    -----
    For dawid-skene, whose posterior cannot be predicted: 1 while more votes may be asked for.
    """
    counts = Counter(votes)
    if decide_by_votes(counts, policy, owner=owner, posterior=posterior).state != "undecided":
        return 0
    if policy.rule == "dawid-skene":
        return 1
    (first, second), total = _count_leading_votes(counts), sum(counts.values())
    # Terminates, because `decide_by_votes` has found that the leading answer can still win.
    return next(
        extra_votes
        for extra_votes in count(1)
        if _is_winner(first + extra_votes, second, total + extra_votes, policy)
    )


def is_verified(
    decision: Decision, author_label: str | None, confirming_verdict: Verdict | None = "correct"
) -> bool:
    """Return whether a consensus confirms the author.

    Parameters
    ----------
    decision
        The decision of the votes, or of an owner.
    author_label
        If known, the consensus label must equal it.
    confirming_verdict
        The verdict that agrees with the author; None if the author has claimed nothing.
    """
    if decision.label is not None:
        return author_label is None or decision.label == author_label
    return decision.verdict is not None and decision.verdict == confirming_verdict


def is_validated_error(
    decision: Decision,
    author_label: str | None,
    model_label: str | None,
    *,
    is_fooled: bool | None = None,
    confirming_verdict: Verdict | None = "correct",
) -> bool:
    """Return whether validators confirm a model error, as counted in the numerator of vMER.

    Parameters
    ----------
    decision
        The decision of the votes, or of an owner.
    author_label, model_label
        None if unknown.
    is_fooled
        The stored outcome; None if unknown.
    confirming_verdict
        As for `is_verified`.

    Notes
    -----
    The example must be verified and the target fooled. Without a stored outcome, the target was
    fooled if its label differs from the consensus label. If the decision has no label, the author's
    label is compared instead.
    """
    if not is_verified(decision, author_label, confirming_verdict):
        return False
    if is_fooled is not None:
        return is_fooled
    true_label = author_label if decision.label is None else decision.label
    # An unknown label does not prove an error.
    return None not in (true_label, model_label) and true_label != model_label


def _count_leading_votes(counts: Mapping[Vote, int]) -> tuple[int, int]:
    """Return the numbers of votes for the first and the second choice."""
    # Padded with two zeros, because there may be fewer than two choices.
    first, second, *_ = sorted((*counts.values(), 0, 0), reverse=True)
    return first, second


def _find_winner(counts: Mapping[Vote, int], policy: Policy) -> Vote | None:
    """Return the choice that wins; None if none does.

    If verdicts tie with N equal votes each, the first in Dynabench's order wins: `correct`. Such a
    tie needs more votes than are asked for. Without this order, the (3N-2)th vote would not decide.
    """
    first, second = _count_leading_votes(counts)
    leaders = [vote for vote, votes in counts.items() if votes == first]
    if _is_winner(first, second, sum(counts.values()), policy):
        return leaders[0]
    verdicts = [vote.verdict for vote in leaders if vote.verdict]
    if policy.rule == "n-equal" and first >= policy.needed and len(verdicts) == len(leaders):
        return Vote(verdict=min(verdicts, key=get_args(Verdict).index))
    return None


def _is_winner(first: int, second: int, total: int, policy: Policy) -> bool:
    """Return whether the leader has enough votes, and no other choice has or can get as many.

    N equal votes decide at once. The other rules are about all votes, so they decide early only if
    further votes cannot change the result.
    """
    remaining_votes = 0 if policy.rule == "n-equal" else max(0, (policy.max_votes or 0) - total)
    return first >= _compute_threshold(total, policy) and first > second + remaining_votes


def _can_win(first: int, second: int, total: int, policy: Policy) -> bool:
    """Return whether the leader would win if all further votes were for it."""
    # Without a limit, further votes may always decide.
    if policy.max_votes is None:
        return True
    remaining_votes = max(0, policy.max_votes - total)
    # The effect of a vote on the posterior cannot be known in advance.
    if policy.rule == "dawid-skene":
        return remaining_votes > 0
    return _is_winner(first + remaining_votes, second, total + remaining_votes, policy)


def _compute_threshold(total: int, policy: Policy) -> int:
    """Return the number of equal votes that a choice needs out of `total` votes."""
    if policy.rule == "plurality":
        return 1
    if policy.rule == "strict":
        # A share of all requested votes, so that an early majority does not win.
        return max(total, policy.max_votes or 0) // 2 + 1
    return policy.needed


def _find_most_probable(posterior: Mapping[str, float], threshold: float) -> Vote | None:
    """Return the label that reaches the threshold, or None. At most one can exceed one half."""
    for label, probability in posterior.items():
        if probability >= threshold:
            return Vote(label=label)
    return None
