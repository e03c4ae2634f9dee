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


class JudgedBattle(NamedTuple):
    """A battle that a person and the judge decided.

    voter: the person. by_person: the side that they chose, or "tie".
    """

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
    """What both orders of many battles say about a judge.

    consistency: the share of battles with the same choice in both orders. first_share: among the
    others, the share in which the judge preferred what it read first. counts: the battles by the
    person's vote, then by the judge's verdict. None: no battle tells it.
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


def measure_judge(battles: Iterable[JudgedBattle]) -> JudgeMeasures:
    """Return a judge's consistency, its position bias and its agreement with people.

    Intervals are clustered by voter, because one person's conversations are alike. In the agreement
    "undecided" counts as a tie.
    """
    battles = list(battles)
    undecided_battles = [battle for battle in battles if battle.verdict == "undecided"]
    counts = Counter((battle.by_person, battle.verdict) for battle in battles)
    table: dict[str, dict[str, int]] = {}
    for vote in VOTES:
        table[vote] = {str(verdict): counts[vote, verdict] for verdict in VERDICTS}
    return JudgeMeasures(
        battles=len(battles),
        voters=len({battle.voter for battle in battles}),
        consistency=_compute_share(battles, lambda battle: battle.verdict != "undecided"),
        first_share=_compute_share(undecided_battles, lambda battle: battle.prefers_first),
        agreement=compute_kappa(
            (battle.voter, battle.by_person, battle.winner) for battle in battles
        ),
        counts=table,
    )


def _compute_share(
    battles: Sequence[JudgedBattle], has_property: Callable[[JudgedBattle], bool]
) -> Rate | None:
    """Return the share of battles with a property, clustered by voter; None without battles."""
    successes: Counter[Hashable] = Counter()
    sizes: Counter[Hashable] = Counter()
    for battle in battles:
        successes[battle.voter] += has_property(battle)
        sizes[battle.voter] += 1
    rate = compute_clustered_rate([(successes[voter], size) for voter, size in sizes.items()])
    return rate if isinstance(rate, Rate) else None
