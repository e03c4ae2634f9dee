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
from evaluation.test_sets.harmless import count_rows_per_example
from evaluation.test_sets.items import MAX_ITEMS
from evaluation.test_sets.selectors import select_newest_versions
from leaderboard.ranking.ranks import compute_min_detectable, compute_min_examples
from tasks.models import Task

Access = EvaluationSet.Access


@dataclass(frozen=True)
class BoardSet:
    """The newest version of a set of examples.

    Sets with access `scoring` count, unless they are small. If no such set exists, all other sets
    count, because a new task has only a control set.
    """

    version_id: int
    name: str
    version: int
    access: str
    size: int  # examples
    date: date
    sha256: str
    round: int | None  # the number of the round whose examples these are
    held_of: int | None = None  # the number of the round whose release leaves these out
    is_sealed: bool = False  # its scores are rounded, and not all of them are shown
    overlap: float | None = None  # the share that is public training data; None: not compared
    counts: bool = True  # whether it has a weight
    is_provisional: bool = False  # whether its round was still being judged when it was made
    judged: int | None = None  # the number of the round's examples that had been judged then
    to_judge: int | None = None  # the number of examples to judge
    left_out: int | None = None  # about so many nobody was asked; None: people judged all
    is_whole_round: bool = False  # whether scores on the whole round can be estimated
    min_examples: int = 0  # with fewer examples it is shown, but not used for ranks
    detectable_difference: float | None = (
        None  # the smallest difference between two models that it can show, in percent
    )

    @property
    def is_small(self) -> bool:
        """Return whether the set has too few examples to rank by."""
        return self.size < self.min_examples

    @property
    def title(self) -> str:
        """Return the set's name and version."""
        return f"{self.name} v{self.version}"


def list_shown_sets(task: Task) -> tuple[BoardSet, ...]:
    """Return the newest versions of sets that are not hidden: counting sets first, then by name.

    One query.
    """
    versions = select_newest_versions(task).exclude(evaluation_set__access=Access.HIDDEN)
    versions = versions.select_related(
        "evaluation_set__round", "evaluation_set__held_of", "dataset"
    )
    # Slices and a dataset's numbers are large, and a board reads neither.
    sets = [_build_set(task, row) for row in versions.defer("slices", "dataset__numbers")]
    # A small set, which cannot count itself, must not prevent others from counting.
    large_sets = [board_set for board_set in sets if not board_set.is_small]
    has_weighted = any(board_set.access == Access.SCORING for board_set in large_sets)
    board_sets = []
    for board_set in sets:
        is_eligible = board_set.access == Access.SCORING or not has_weighted
        board_sets.append(replace(board_set, counts=is_eligible and not board_set.is_small))
    return tuple(
        sorted(
            board_sets,
            key=lambda board_set: (not board_set.counts, board_set.round or 0, board_set.name),
        )
    )


def _build_set(task: Task, row: EvaluationSetVersion) -> BoardSet:
    evaluation_set = row.evaluation_set
    sources_of_rounds = (EvaluationSet.Source.ROUND, EvaluationSet.Source.HELD)
    is_of_round = evaluation_set.source in sources_of_rounds
    return BoardSet(
        version_id=row.pk,
        name=evaluation_set.name,
        version=row.version,
        access=evaluation_set.access,
        size=row.size,
        date=row.made_at.date(),
        sha256=row.sha256,
        round=evaluation_set.round.number if evaluation_set.round else None,
        held_of=evaluation_set.held_of.number if evaluation_set.held_of else None,
        is_sealed=row.is_sealed,
        overlap=row.compute_overlap(),
        is_provisional=row.is_provisional,
        judged=row.judged,
        to_judge=row.to_judge,
        left_out=row.left_out,
        is_whole_round=row.is_whole_round and row.size <= MAX_ITEMS,
        min_examples=find_min_rows(task) if is_of_round else 0,
    )


def find_min_rows(task: Task) -> int:
    """Return the number of rows that a round's set needs to count in the ranking.

    This is the minimum number of examples that the owners set, or else the default. It is doubled
    if each example has a harmless question beside it.
    """
    own = task.config.leaderboard.min_examples
    return count_rows_per_example(task.config) * (own.n if own else compute_min_examples())


def add_detectable_difference(
    board_set: BoardSet, values: NDArray[np.float64], main_metric: str
) -> BoardSet:
    """Return the set with the smallest difference between two models that it can detect.

    Assumes that both models have the median accuracy. The set is returned unchanged without
    measured models, or if the main metric is not a mean over examples.
    """
    measured_values = values[~np.isnan(values)]
    if not len(measured_values) or not issubclass(METRICS[main_metric], Mean):
        return board_set
    least = compute_min_detectable(board_set.size, float(np.median(measured_values)) / 100)
    return replace(board_set, detectable_difference=None if least is None else 100 * least)
