"""Counts of a round's examples and votes: alike ones together, added up by author."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from operator import add
from typing import NamedTuple

from validation.rates.rates import Collected, Compared

Choice = tuple[str, str]
"""Label and verdict of a vote."""


class Cell(NamedTuple):
    """The properties shared by the examples of one count. A tuple, because there are many cells."""

    author: int | None
    outcome: str
    judged: bool
    decided: bool
    winner: str  # label or verdict, where decided
    verified: bool
    validated_error: bool

    def counted(self, times: int) -> Collected:
        """Return `times` examples of this cell as input for `rates.round_rates`."""
        is_known = self.outcome in ("fooled", "not_fooled")
        return Collected(
            collected=times,
            with_outcome=times * is_known,
            fooled=times * (self.outcome == "fooled"),
            with_model=times * (self.outcome != "no_model"),
            judged=times * self.judged,
            decided=times * self.decided,
            verified=times * self.verified,
            verified_fooled=times * self.validated_error,
        )


@dataclass
class Part:
    """All counts of a round, of a part of it, or of several rounds.

    Examples by people and the votes on these; of examples by programs only their number.
    """

    cells: Counter[Cell] = field(default_factory=Counter)
    votes_by: Counter[tuple[int | None, Choice]] = field(default_factory=Counter)
    patterns: Counter[tuple[int, ...]] = field(default_factory=Counter)
    """How many examples have so many votes for each choice."""
    unanimous: Counter[tuple[int | None, bool]] = field(default_factory=Counter)
    """How many examples of an author have votes that are all equal, and how many not."""
    compared: Counter[tuple[int | None, Compared]] = field(default_factory=Counter)
    """How many examples of an author compare so."""
    program_examples: int = 0
    program_votes: int = 0
    """On what people wrote."""

    def __iadd__(self, other: "Part") -> "Part":
        self.cells += other.cells
        self.votes_by += other.votes_by
        self.patterns += other.patterns
        self.unanimous += other.unanimous
        self.compared += other.compared
        self.program_examples += other.program_examples
        self.program_votes += other.program_votes
        return self

    def authors(self) -> list[Collected]:
        """Return the counts of each known author; each example by an unknown author is separate."""
        counts_by_author: dict[int, Collected] = {}
        unknown_authors: list[Collected] = []
        for cell, times in self.cells.items():
            if cell.author is None:
                # Any two unknown authors may be different people.
                unknown_authors += [cell.counted(1)] * times
            else:
                counted, before = cell.counted(times), counts_by_author.get(cell.author)
                counts_by_author[cell.author] = (
                    Collected(*map(add, before, counted)) if before else counted
                )
        return [*unknown_authors, *counts_by_author.values()]

    def authors_compared(self) -> Iterator[Compared]:
        """Yield each known author's votes that are compared with others.

        Votes on examples of unknown authors are yielded separately.
        """
        sums_by_author: dict[int, list[int]] = {}
        for (author, comparison), times in self.compared.items():
            if author is None:
                yield from repeat(comparison, times)
                continue
            sums = sums_by_author.setdefault(author, [0, 0, 0])
            sums[0] += comparison.votes * times
            sums[1] += comparison.human * times
            sums[2] += comparison.model * times
        yield from (Compared(*sums) for sums in sums_by_author.values())


def sum_of(authors: Iterable[Collected]) -> Collected:
    """Sum the counts of several authors."""
    return Collected(*map(sum, zip(*authors, strict=True)))
