"""Verdicts of a judge that reads each battle twice, and what they say about the judge. Pure.

A language model may prefer whichever answer it reads first. So it is asked twice, with the sides
swapped, and its choice counts only if it is the same both times (Zheng et al. 2023).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evaluation.judges.llm_judges.agreement import KappaInterval, compute_kappa
from validation.rates.rates import Rate, compute_clustered_rate

Choice = Literal["first", "second", "tie"]
Vote = Literal["left", "right", "tie"]
Verdict = Literal["left", "right", "tie", "undecided"]
CHOICES: tuple[Choice, ...] = ("first", "second", "tie")
VOTES: tuple[Vote, ...] = ("left", "right", "tie")
VERDICTS: tuple[Verdict, ...] = ("left", "right", "tie", "undecided")
MIN_BATTLES = 50
"""The minimum number of battles for an agreement with people to count as a calibration."""


def combine_orders(shown: Choice, swapped: Choice) -> Verdict:
    """Return the verdict of a judge from its choices in both orders.

    shown: the choice when the left side came first. swapped: when the right side came first.

    >>> combine_orders("first", "second"), combine_orders("first", "first")
    ('left', 'undecided')
    """
    if shown == "first" and swapped == "second":
        return "left"
    if shown == "second" and swapped == "first":
        return "right"
    if shown == swapped == "tie":
        return "tie"
    return "undecided"


class JudgedPair(NamedTuple):
    """Two answers of a battle that a person and the judge compared.

    A ranking has several such pairs. voter: the person. by_person: the side that they preferred, or
    "tie".
    """

    battle: Hashable
    voter: Hashable
    by_person: Vote
    shown: Choice
    swapped: Choice

    @property
    def verdict(self) -> Verdict:
        """Return the judge's verdict of both orders."""
        return combine_orders(self.shown, self.swapped)

    @property
    def winner(self) -> Vote:
        """Return the verdict as a vote. Undecided counts as a tie."""
        verdict = self.verdict
        return "tie" if verdict == "undecided" else verdict

    @property
    def prefers_first(self) -> bool:
        """Return whether an undecided judge chose what it read first, at least once.

        An undecided judge never chose both positions, because that would be one answer twice.
        """
        return "first" in (self.shown, self.swapped)


@dataclass(frozen=True)
class JudgeMeasures:
    """What both orders of many pairs of answers say about a judge.

    consistency: the share of pairs with the same choice in both orders. first_share: among the
    others, the share in which the judge preferred what it read first. counts: the pairs by the
    person's vote, then by the judge's verdict. None: no pair tells it.
    """

    battles: int
    voters: int
    consistency: Rate | None
    first_share: Rate | None
    agreement: KappaInterval
    counts: Mapping[str, Mapping[str, int]]

    @property
    def is_calibrated(self) -> bool:
        """Return whether enough battles support the agreement for it to count as a calibration."""
        return self.battles >= MIN_BATTLES and self.agreement.low is not None


def measure_judge(pairs: Iterable[JudgedPair]) -> JudgeMeasures:
    """Return a judge's consistency, its position bias and its agreement with people.

    Intervals are clustered by voter, because one person's conversations are alike, and so are the
    pairs of a ranking. In the agreement "undecided" counts as a tie.
    """
    pairs = list(pairs)
    undecided_pairs = [pair for pair in pairs if pair.verdict == "undecided"]
    counts = Counter((pair.by_person, pair.verdict) for pair in pairs)
    table: dict[str, dict[str, int]] = {}
    for vote in VOTES:
        table[vote] = {str(verdict): counts[vote, verdict] for verdict in VERDICTS}
    return JudgeMeasures(
        # Not the pairs, because those of a ranking depend on one another.
        battles=len({pair.battle for pair in pairs}),
        voters=len({pair.voter for pair in pairs}),
        consistency=_compute_share(pairs, lambda pair: pair.verdict != "undecided"),
        first_share=_compute_share(undecided_pairs, lambda pair: pair.prefers_first),
        agreement=compute_kappa((pair.voter, pair.by_person, pair.winner) for pair in pairs),
        counts=table,
    )


def _compute_share(
    pairs: Sequence[JudgedPair], has_property: Callable[[JudgedPair], bool]
) -> Rate | None:
    """Return the share of pairs with a property, clustered by voter; None without pairs."""
    successes: Counter[Hashable] = Counter()
    sizes: Counter[Hashable] = Counter()
    for pair in pairs:
        successes[pair.voter] += has_property(pair)
        sizes[pair.voter] += 1
    rate = compute_clustered_rate([(successes[voter], size) for voter, size in sizes.items()])
    return rate if isinstance(rate, Rate) else None
