"""Forecast which rows a release contains and leaves out, by split and reason. Pure functions.

The owner's page shows the forecast before the release, and the release follows it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import NamedTuple

from evaluation.dataset_releases.splits import (
    HELD_SPLIT,
    PROGRAM_SPLIT,
    SPLITS,
    RowCounts,
    SplitPlan,
    SplitSizes,
    make_plan,
)

MIN_AUTHORS = 30
"""Up to this number of authors, only the row counts of one or two authors are tried as sizes."""
MAX_TRIED_SIZES = 6
"""The maximum number of sizes to try for a split."""
MAX_LOST_SHARE = 0.1
"""The share (0-1) of a round's rows that may be left out to make dev and test."""


@dataclass(frozen=True)
class Census:
    """Counts of a round's examples: those that a release contains, and excluded ones by reason."""

    counts: RowCounts
    """The numbers of rows written by people."""
    program_rows: int = 0
    """The number of rows written by programs."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """The number of examples that no release contains, by reason."""


@dataclass(frozen=True)
class Forecast:
    """The numbers of rows that a release with certain split sizes contains and leaves out."""

    plan: SplitPlan
    rows: Mapping[str, int]
    """Rows by split. The splits program and held are included only if they have rows."""
    lost_by_reason: Mapping[str, int]
    """Rows that do not fit into these splits, by reason. Other sizes might include them."""
    left_out: Mapping[str, int]
    """All examples that are not in the release, by reason."""

    @property
    def total(self) -> int:
        """The number of rows of all splits."""
        return sum(self.rows.values())


def compute_forecast(census: Census, sizes: SplitSizes, *, seed: int) -> Forecast:
    """Return the forecast of a release with these sizes. Equal arguments give equal results."""
    plan = make_plan(census.counts, sizes, seed=seed)
    plan_sizes = plan.sizes
    rows = {split: getattr(plan_sizes, split) or 0 for split in SPLITS}
    if census.program_rows:
        rows[PROGRAM_SPLIT] = census.program_rows
    if plan_sizes.held:
        rows[HELD_SPLIT] = plan_sizes.held
    lost = {reason: n for reason, n in plan.count_left_out(census.counts).items() if n}
    return Forecast(plan, rows, lost, {**lost, **census.left_out})


def propose_sizes(counts: RowCounts, *, seed: int = 0) -> list[SplitSizes]:
    """Return sizes that lose few rows: with dev and test, with test only, with train only.

    The first sizes are those with the most splits that lose at most MAX_LOST_SHARE of the rows.
    The others are sorted by the number of rows they lose. Empty without rows.
    """
    rows = counts.total
    if not rows:
        return []
    tenth = max(1, rows // 10)
    sizes_to_try = _choose_sizes_to_try(counts, tenth)
    # With few authors, dev and test may need different sizes. With many, equal ones suffice.
    if _has_few_authors(counts):
        pairs = list(product(sizes_to_try, sizes_to_try))
    else:
        pairs = list(zip(sizes_to_try, sizes_to_try, strict=True))
    best_choices = (
        _find_best_sizes(counts, [SplitSizes(None, dev, test) for dev, test in pairs], tenth, seed),
        _find_best_sizes(counts, [SplitSizes(None, 0, test) for test in sizes_to_try], tenth, seed),
        _find_best_sizes(counts, [SplitSizes(None, 0, 0)], tenth, seed),
    )
    proposals = [choice for choice in best_choices if choice]
    # A single train split loses nothing, so one candidate is always acceptable.
    first_choice = next(
        choice for choice in proposals if choice.lost_count <= MAX_LOST_SHARE * rows
    )
    proposals.remove(first_choice)
    proposals.sort(key=lambda choice: choice.lost_count)
    return [first_choice.sizes] + [choice.sizes for choice in proposals]


class _TriedSizes(NamedTuple):
    lost_count: int
    sizes: SplitSizes


def _has_few_authors(counts: RowCounts) -> bool:
    return len(counts.verified) <= MIN_AUTHORS


def _choose_sizes_to_try(counts: RowCounts, tenth: int) -> Sequence[int]:
    """Return the split sizes to try: a tenth of the rows, and fractions of that.

    If there are few authors, return sizes near a tenth that match the verified rows of one or two
    authors.
    """
    if not _has_few_authors(counts):
        return sorted({max(1, tenth // divisor) for divisor in (1, 2, 4, 8, 16)}, reverse=True)
    author_row_counts = [
        rows.total() for author, rows in counts.verified.items() if author is not None
    ]
    sizes = {tenth}
    sizes.update(author_row_counts)
    sizes.update(map(sum, combinations(author_row_counts, 2)))
    return sorted(sizes, key=lambda size: (abs(size - tenth), size))[:MAX_TRIED_SIZES]


def _find_best_sizes(
    counts: RowCounts, sizes_to_try: Iterable[SplitSizes], tenth: int, seed: int
) -> _TriedSizes | None:
    """Return the sizes that lose the fewest rows; with many authors, the first tolerated sizes.

    tenth: a tenth of the round's rows; among equal losses, sizes near it are preferred. None if no
    possible sizes leave enough rows for train.
    """
    candidates = []
    for sizes in sizes_to_try:
        plan = make_plan(counts, sizes, seed=seed)
        # A split that is smaller than requested would be refused anyway.
        is_reached = (plan.sizes.dev, plan.sizes.test) == (sizes.dev, sizes.test)
        if not is_reached or (plan.sizes.train or 0) < max(sizes.dev, sizes.test):
            continue
        lost_count = sum(plan.count_left_out(counts).values())
        is_tolerated = lost_count <= MAX_LOST_SHARE * counts.total
        if is_tolerated and not _has_few_authors(counts):
            return _TriedSizes(lost_count, sizes)
        # Among sizes that lose equally many rows, those nearest to a tenth.
        distance = abs(sizes.dev - tenth) + abs(sizes.test - tenth)
        candidates.append((not is_tolerated, lost_count, distance, _TriedSizes(lost_count, sizes)))
    return min(candidates)[-1] if candidates else None
