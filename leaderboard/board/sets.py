"""The sets of examples that a board shows, and which of them it ranks by.

It loads numpy (see `leaderboard.board.matrix`).
"""

from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from evaluation.models import EvaluationSet, EvaluationSetVersion
from evaluation.scoring.metrics import METRICS
from evaluation.scoring.metrics.base import Mean
from evaluation.sets.harmless import rows_per_example
from evaluation.sets.selectors import newest_versions
from leaderboard.scoring.ranks import least_examples, minimum_detectable
from tasks.models import Task

Access = EvaluationSet.Access


@dataclass(frozen=True)
class BoardSet:
    """The newest version of a set of examples.

    Those with access `scoring` count, unless they are small. While there is none all others do: a
    new task has but a control set.
    """

    version_id: int
    name: str
    version: int
    access: str
    size: int  # examples
    date: date
    sha256: str
    round: int | None  # the number of the round whose examples these are
    held_of: int | None = None  # the number of the round from whose release these are held back
    is_sealed: bool = False  # its scores are rounded, and not all of them are there
    overlap: float | None = None  # the part that anybody may train on; None: not compared
    counts: bool = True  # it has a weight
    is_provisional: bool = False  # its round was still judged when it was taken
    judged: int | None = None  # how many of the round's examples had been judged then
    to_judge: int | None = None  # of so many
    least: int = 0  # with fewer examples it is shown and never ranked by
    detectable: float | None = None  # the least difference of two models that it shows, in percent

    @property
    def is_small(self) -> bool:
        """Return whether it has too few examples to rank by."""
        return self.size < self.least

    @property
    def title(self) -> str:
        """Return name and version."""
        return f"{self.name} v{self.version}"


def shown_sets(task: Task) -> tuple[BoardSet, ...]:
    """Return the newest versions of sets that are not hidden: counting ones first, then by name.

    One query.
    """
    versions = newest_versions(task).exclude(evaluation_set__access=Access.HIDDEN)
    versions = versions.select_related(
        "evaluation_set__round", "evaluation_set__held_of", "dataset"
    )
    sets = [_set(task, row) for row in versions.defer("slices", "dataset__numbers")]
    has_weighted = any(one.access == Access.SCORING and not one.is_small for one in sets)
    sets = [
        replace(
            one,
            counts=not one.is_small and (one.access == Access.SCORING or not has_weighted),
        )
        for one in sets
    ]
    return tuple(sorted(sets, key=lambda one: (not one.counts, one.round or 0, one.name)))


def _set(task: Task, row: EvaluationSetVersion) -> BoardSet:
    one = row.evaluation_set
    is_of_round = one.source in (EvaluationSet.Source.ROUND, EvaluationSet.Source.HELD)
    return BoardSet(
        version_id=row.pk,
        name=one.name,
        version=row.version,
        access=one.access,
        size=row.size,
        date=row.made_at.date(),
        sha256=row.sha256,
        round=one.round.number if one.round else None,
        held_of=one.held_of.number if one.held_of else None,
        is_sealed=row.is_sealed,
        overlap=row.overlap_with(),
        is_provisional=row.is_provisional,
        judged=row.judged,
        to_judge=row.to_judge,
        least=least_of(task) if is_of_round else 0,
    )


def least_of(task: Task) -> int:
    """Return how many rows a round's set needs to rank by: as its owners say, or the usual number.

    Owners count examples; a harmless question beside each makes twice as many rows.
    """
    own = task.config.leaderboard.min_examples
    return rows_per_example(task.config) * (own.n if own else least_examples())


def with_detectable(one: BoardSet, values: NDArray[np.float64], main: str) -> BoardSet:
    """Add the least difference that the set can show, between models as good as the median."""
    known = values[~np.isnan(values)]
    if not len(known) or not issubclass(METRICS[main], Mean):
        return one
    least = minimum_detectable(one.size, float(np.median(known)) / 100)
    return replace(one, detectable=None if least is None else 100 * least)
