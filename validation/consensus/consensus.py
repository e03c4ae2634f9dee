"""When do votes decide? Policies on plain values; never a clock, a database or an order of votes.

A vote is a label or a verdict. “Cannot tell” and “flagged” are verdicts in either mode and win like
any other choice, so that enough of them close an example without verifying it.
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

_POLICY = re.compile(
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
            raise ValueError(gettext_noop("A policy needs at least one vote."))
        if self.rule in ("n-equal", "at-least") and self.of and self.of < self.needed:
            raise ValueError(f"{self.needed} equal votes cannot come out of {self.of}.")
        # At one half two labels could reach it.
        if not 0.5 < self.threshold <= 1:
            raise ValueError(
                gettext_noop("The threshold of a posterior is above 0.5 and at most 1.")
            )

    @classmethod
    def from_votes(cls, votes: Votes) -> Self:
        """Build the policy that a task's configuration names."""
        return cls(votes.rule, votes.needed, votes.of)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse n-equal:3, at-least:3, strict, plurality or dawid-skene:0.8. Raises ValueError."""
        match = _POLICY.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{text!r} is no policy; write n-equal:3, at-least:3, strict, plurality or "
                "dawid-skene:0.8."
            )
        counted, needed, share, threshold = match.groups()
        if counted:
            return cls(cast(Rule, counted), int(needed))
        return cls(cast(Rule, share)) if share else cls("dawid-skene", threshold=float(threshold))

    @property
    def most(self) -> int | None:
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
    by_owner: bool = False

    @property
    def label(self) -> str | None:
        """Return the consensus label; None without one and if a verdict won."""
        return self.winner.label if self.winner else None

    @property
    def verdict(self) -> Verdict | None:
        """Return the consensus verdict; None without one and if a label won."""
        return self.winner.verdict if self.winner else None


def decide(
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
        Label to probability (0-1), for dawid-skene (`validation.consensus.dawid_skene.fitting`).

    Returns
    -------
    Decision
        Its state, and the choice that won.
    """
    counts = Counter(votes)
    if owner:
        return Decision("decided", owner, counts, by_owner=True)
    if policy.rule == "dawid-skene":
        winner = _most_probable(posterior or {}, policy.threshold)
    else:
        winner = _find_winner(counts, policy)
    if winner:
        return Decision("decided", winner, counts)
    possible = _could_win(*_count_leading_votes(counts), sum(counts.values()), policy)
    return Decision("undecided" if possible else "no_consensus", None, counts)


def votes_still_needed(
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
        As for `decide`.

    Notes
    -----
    For dawid-skene, whose posterior cannot be predicted: 1 while more votes may be asked for.
    """
    counts = Counter(votes)
    if decide(counts, policy, owner=owner, posterior=posterior).state != "undecided":
        return 0
    if policy.rule == "dawid-skene":
        return 1
    (first, second), total = _count_leading_votes(counts), sum(counts.values())
    # It ends: an undecided leader can still win, as `decide` has found.
    return next(n for n in count(1) if _wins(first + n, second, total + n, policy))


def is_verified(
    decision: Decision, author_label: str | None, confirms: Verdict | None = "correct"
) -> bool:
    """Return whether a consensus confirms the author.

    Parameters
    ----------
    decision
        The decision of the votes, or of an owner.
    author_label
        If known, the consensus label must equal it.
    confirms
        The verdict that agrees with the author; None if the author has claimed nothing.
    """
    if decision.label is not None:
        return author_label is None or decision.label == author_label
    return decision.verdict is not None and decision.verdict == confirms


def is_validated_error(
    decision: Decision,
    author_label: str | None,
    model_label: str | None,
    *,
    is_fooled: bool | None = None,
    confirms: Verdict | None = "correct",
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
    confirms
        As for `is_verified`.

    Notes
    -----
    The example must be verified and the target fooled. Without a stored outcome, the target was
    fooled if its label is not the consensus label (or the author's label found correct).
    """
    if not is_verified(decision, author_label, confirms):
        return False
    if is_fooled is not None:
        return is_fooled
    truth = author_label if decision.label is None else decision.label
    return None not in (truth, model_label) and truth != model_label


def _count_leading_votes(counts: Mapping[Vote, int]) -> tuple[int, int]:
    """Return the numbers of votes for the first and the second choice."""
    # Two zeros, as there may be fewer than two choices.
    first, second, *_ = sorted((*counts.values(), 0, 0), reverse=True)
    return first, second


def _find_winner(counts: Mapping[Vote, int], policy: Policy) -> Vote | None:
    """Return the choice that wins; None if none does.

    If verdicts tie with N equal votes each, the first in Dynabench's order wins, which is correct.
    Such a tie needs votes beyond those asked for; without this order the (3N-2)th vote would not
    decide.
    """
    first, second = _count_leading_votes(counts)
    leaders = [vote for vote, votes in counts.items() if votes == first]
    if _wins(first, second, sum(counts.values()), policy):
        return leaders[0]
    verdicts = [vote.verdict for vote in leaders if vote.verdict]
    if policy.rule == "n-equal" and first >= policy.needed and len(verdicts) == len(leaders):
        return Vote(verdict=min(verdicts, key=get_args(Verdict).index))
    return None


def _wins(first: int, second: int, total: int, policy: Policy) -> bool:
    """Return whether the leader has enough votes, and no other choice has or can get as many.

    N equal votes decide at once. The other rules are about all votes, so they decide early only if
    further votes cannot change the result.
    """
    to_come = 0 if policy.rule == "n-equal" else max(0, (policy.most or 0) - total)
    return first >= _threshold(total, policy) and first > second + to_come


def _could_win(first: int, second: int, total: int, policy: Policy) -> bool:
    """Return whether the leader would win if all further votes were for it."""
    # Without a limit further votes may always decide.
    if policy.most is None:
        return True
    to_come = max(0, policy.most - total)
    # Nobody knows beforehand what a vote will do to the posterior.
    if policy.rule == "dawid-skene":
        return to_come > 0
    return _wins(first + to_come, second, total + to_come, policy)


def _threshold(total: int, policy: Policy) -> int:
    """Return the number of equal votes that a choice needs of `total` votes."""
    if policy.rule == "plurality":
        return 1
    if policy.rule == "strict":
        # Of the votes that will be asked for, so that an early majority does not win.
        return max(total, policy.most or 0) // 2 + 1
    return policy.needed


def _most_probable(posterior: Mapping[str, float], threshold: float) -> Vote | None:
    """Return the label that reaches the threshold; above one half there is at most one."""
    for label, probability in posterior.items():
        if probability >= threshold:
            return Vote(label=label)
    return None
