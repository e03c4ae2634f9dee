"""Forecast what a release holds and leaves out, by split and reason; pure.

The owner's page shows it before the release, and the release itself goes by it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import NamedTuple

from evaluation.dataset_releases.splits import HELD, PROGRAM, SPLITS, Counts, Plan, Sizes, make_plan

FEW_AUTHORS = 30
"""Up to this number the rows of one or two authors together are tried as sizes: no other fits."""
MAX_TRIED_SIZES = 6
"""How many sizes of a split are tried."""
MAX_LOST_SHARE = 0.1
"""The share (0-1) of its rows that a round may lose for dev and test."""


@dataclass(frozen=True)
class Census:
    """Counts of a round's examples: those that a release contains, and excluded ones by reason."""

    counts: Counts
    """Rows by people."""
    programs: int = 0
    """Rows by programs."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Examples that no release takes, by reason."""


@dataclass(frozen=True)
class Forecast:
    """The rows that a release with certain split sizes contains and leaves out."""

    plan: Plan
    rows: Mapping[str, int]
    """By split; program and held only where they have rows."""
    lost: Mapping[str, int]
    """Rows without a place in these splits, by reason; other sizes might keep them."""
    left_out: Mapping[str, int]
    """Every example that is not in the release, by reason."""

    @property
    def total(self) -> int:
        """The number of rows of all splits."""
        return sum(self.rows.values())


def forecast(census: Census, sizes: Sizes, *, seed: int) -> Forecast:
    """Return the forecast of a release with these sizes. Equal arguments give equal results."""
    plan = make_plan(census.counts, sizes, seed=seed)
    plan_sizes = plan.sizes
    rows = {split: getattr(plan_sizes, split) or 0 for split in SPLITS}
    if census.programs:
        rows[PROGRAM] = census.programs
    if plan_sizes.held:
        rows[HELD] = plan_sizes.held
    lost = {reason: n for reason, n in plan.left_out(census.counts).items() if n}
    return Forecast(plan, rows, lost, {**lost, **census.left_out})


def propose_sizes(counts: Counts, *, seed: int = 0) -> list[Sizes]:
    """Return sizes that lose few rows: with dev and test, with test only, with train only.

    The first is the most complete that loses at most MAX_LOST_SHARE; the others follow in the order
    of the rows they lose. Empty without rows.
    """
    rows = counts.total
    if not rows:
        return []
    tenth = max(1, rows // 10)
    sizes_to_try = _sizes_to_try(counts, tenth)
    # Few authors: dev and test may need different sizes. Many: equal ones suffice, and are quicker.
    if _has_few_authors(counts):
        pairs = list(product(sizes_to_try, sizes_to_try))
    else:
        pairs = list(zip(sizes_to_try, sizes_to_try, strict=True))
    best_of_kinds = (
        _find_best(counts, [Sizes(None, dev, test) for dev, test in pairs], tenth, seed),
        _find_best(counts, [Sizes(None, 0, test) for test in sizes_to_try], tenth, seed),
        _find_best(counts, [Sizes(None, 0, 0)], tenth, seed),
    )
    possible = [choice for choice in best_of_kinds if choice]
    # Train alone loses nothing, so one is always tolerated.
    first_choice = next(choice for choice in possible if choice.lost <= MAX_LOST_SHARE * rows)
    possible.remove(first_choice)
    possible.sort(key=lambda choice: choice.lost)
    return [first_choice.sizes] + [choice.sizes for choice in possible]


class _TriedSizes(NamedTuple):
    lost: int
    sizes: Sizes


def _has_few_authors(counts: Counts) -> bool:
    return len(counts.verified) <= FEW_AUTHORS


def _sizes_to_try(counts: Counts, tenth: int) -> Sequence[int]:
    """Return the split sizes to try: a tenth of the rows, and fractions of that.

    If there are few authors, return instead sizes near a tenth that match the verified rows of one
    or two authors.
    """
    if not _has_few_authors(counts):
        return sorted({max(1, tenth // divisor) for divisor in (1, 2, 4, 8, 16)}, reverse=True)
    of_author = [rows.total() for author, rows in counts.verified.items() if author is not None]
    sizes = {tenth}
    sizes.update(of_author)
    sizes.update(map(sum, combinations(of_author, 2)))
    return sorted(sizes, key=lambda size: (abs(size - tenth), size))[:MAX_TRIED_SIZES]


def _find_best(
    counts: Counts, sizes_to_try: Iterable[Sizes], tenth: int, seed: int
) -> _TriedSizes | None:
    """Return the sizes that lose the fewest rows.

    With many authors, return the first tolerated ones.

    None if no sizes are possible that leave enough rows for train.
    """
    possible = []
    for sizes in sizes_to_try:
        plan = make_plan(counts, sizes, seed=seed)
        # A split that is smaller than requested would be refused anyway.
        is_met = (plan.sizes.dev, plan.sizes.test) == (sizes.dev, sizes.test)
        if not is_met or (plan.sizes.train or 0) < max(sizes.dev, sizes.test):
            continue
        lost_count = sum(plan.left_out(counts).values())
        is_tolerated = lost_count <= MAX_LOST_SHARE * counts.total
        if is_tolerated and not _has_few_authors(counts):
            return _TriedSizes(lost_count, sizes)
        # Of sizes that lose as many rows, those nearest to a tenth.
        distance = abs(sizes.dev - tenth) + abs(sizes.test - tenth)
        possible.append((not is_tolerated, lost_count, distance, _TriedSizes(lost_count, sizes)))
    return min(possible)[-1] if possible else None
