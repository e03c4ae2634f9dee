"""Counts of a round's examples and votes, grouped by equal properties and summed by author."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from operator import add
from typing import NamedTuple

from validation.rates.criteria_counts import CriteriaCounts
from validation.rates.rates import CollectedCounts, ComparedCounts
from validation.rates.sampled_counts import SampledCounts
from validation.rates.step_counts import StepCounts

Choice = tuple[str, str]
"""Label and verdict of a vote."""


class Cell(NamedTuple):
    """The properties shared by the examples of one count. A tuple, because there are many cells."""

    author: int | None
    outcome: str
    judged: bool
    decided: bool
    winner: str  # label or verdict, if decided
    verified: bool
    validated_error: bool

    def count_collected(self, case_count: float) -> CollectedCounts:
        """Return `case_count` examples of this cell, or the sum of their weights."""
        is_known = self.outcome in ("fooled", "not_fooled")
        return CollectedCounts(
            collected=case_count,
            with_outcome=case_count * is_known,
            fooled=case_count * (self.outcome == "fooled"),
            with_model=case_count * (self.outcome != "no_model"),
            judged=case_count * self.judged,
            decided=case_count * self.decided,
            verified=case_count * self.verified,
            verified_fooled=case_count * self.validated_error,
        )


@dataclass
class Part:
    """All counts of a round, of a part of it, or of several rounds.

    They count examples by people and the votes on these. Of examples by programs, there is only the
    number.
    """

    cells: Counter[Cell] = field(default_factory=Counter)
    votes_by: Counter[tuple[int | None, Choice]] = field(default_factory=Counter)
    patterns: Counter[tuple[int, ...]] = field(default_factory=Counter)
    """The number of examples by their numbers of votes for each choice."""
    unanimous: Counter[tuple[int | None, bool]] = field(default_factory=Counter)
    """The number of examples by author, and by whether all their votes are equal."""
    compared: Counter[tuple[int | None, ComparedCounts]] = field(default_factory=Counter)
    """The number of examples by author and comparison."""
    excess_weights: dict[Cell, float] = field(default_factory=dict)
    """By how much the weights of a cell's examples exceed their number.

    Only of cells with examples whose contexts were drawn by expected information. Any other
    example has the weight 1.
    """
    program_examples: int = 0
    program_votes: int = 0
    """Votes by programs on people's examples."""
    steps: StepCounts | None = None
    """The steps of conversations; None if the task doesn't ask about them."""
    criteria: CriteriaCounts | None = None
    """The criteria of examples; None if the task has none."""
    sample: SampledCounts | None = None
    """The draws of examples for people; None if people judge everything in all rounds counted."""

    def __iadd__(self, other: "Part") -> "Part":
        self.cells += other.cells
        for cell, excess in other.excess_weights.items():
            self.excess_weights[cell] = self.excess_weights.get(cell, 0) + excess
        self.votes_by += other.votes_by
        self.patterns += other.patterns
        self.unanimous += other.unanimous
        self.compared += other.compared
        self.program_examples += other.program_examples
        self.program_votes += other.program_votes
        if other.steps is not None:
            self.steps = self.steps or StepCounts()
            self.steps += other.steps
        if other.criteria is not None:
            self.criteria = self.criteria or CriteriaCounts()
            self.criteria += other.criteria
        if other.sample is not None:
            self.sample = self.sample or SampledCounts()
            self.sample += other.sample
        return self

    def list_author_counts(self) -> list[CollectedCounts]:
        """Return the counts of each known author; each example by an unknown author is separate."""
        return self._sum_by_author(self.cells)

    def list_author_weights(self) -> list[CollectedCounts]:
        """Return the weights of the same authors' examples, in the same order.

        Empty if no context was drawn by expected information.
        """
        if not self.excess_weights:
            return []
        return self._sum_by_author(
            {cell: n + self.excess_weights.get(cell, 0) for cell, n in self.cells.items()}
        )

    def _sum_by_author(self, amounts: Mapping[Cell, float]) -> list[CollectedCounts]:
        counts_by_author: dict[int, CollectedCounts] = {}
        unknown_authors: list[CollectedCounts] = []
        for cell, case_count in self.cells.items():
            if cell.author is None:
                # Any two unknown authors may be different people. They are of imported history,
                # whose contexts nobody drew, so the weight of each example is 1.
                unknown_authors += [cell.count_collected(1)] * case_count
            else:
                new_counts, earlier_counts = (
                    cell.count_collected(amounts[cell]),
                    counts_by_author.get(cell.author),
                )
                counts_by_author[cell.author] = (
                    CollectedCounts(*map(add, earlier_counts, new_counts))
                    if earlier_counts
                    else new_counts
                )
        return [*unknown_authors, *counts_by_author.values()]

    def iterate_compared_authors(self) -> Iterator[ComparedCounts]:
        """Yield each known author's votes that are compared with others.

        Votes on examples of unknown authors are yielded separately.
        """
        sums_by_author: dict[int, list[int]] = {}
        for (author, comparison), case_count in self.compared.items():
            if author is None:
                yield from repeat(comparison, case_count)
                continue
            sums = sums_by_author.setdefault(author, [0, 0, 0])
            sums[0] += comparison.votes * case_count
            sums[1] += comparison.human * case_count
            sums[2] += comparison.model * case_count
        yield from (ComparedCounts(*sums) for sums in sums_by_author.values())


def sum_collected(authors: Iterable[CollectedCounts]) -> CollectedCounts:
    """Sum the counts of several authors."""
    return CollectedCounts(*map(sum, zip(*authors, strict=True)))
