"""Decide which rows of a dataset go to train, dev, test and held; no author is in two of them.

First, `make_plan` assigns authors to dev, test and held, using only counts. Then a
`RowAssigner` assigns the rows one by one. So memory use depends on the number of authors, not
of rows. The same counts, sizes, seed and order of rows give the same splits.
"""

import heapq
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import NamedTuple

TRAIN, DEV, TEST = SPLITS = ("train", "dev", "test")
PROGRAM_SPLIT = "program"
"""The split of rows written by programs. It exists only if there are such rows."""
HELD_SPLIT = "held"
"""The split of verified rows that are published later. Until then, models are evaluated on them."""
LABEL_QUOTA_DIVISOR = 3
"""To balance labels, a split takes at most one in this many of a label's rows."""
HELD_FIRST_CHANCE = 0.5
"""How often held chooses its authors before test, so that neither gets easier rows on average."""
MAX_WASTE_SHARE = 0.5
"""To balance labels, authors who would lose this share (0-1) of verified rows are not taken."""
AUTHOR, SIZE = "author", "size"
"""The reasons for leaving out a row: its author's split has no room for it, or train is full."""

Author = int | None
"""An author's id. None if unknown; each such row counts as if by an author of its own."""
RowsByLabel = Counter[str]
"""The number of rows of each label."""
RowsBySplit = dict[str | None, int]
"""The number of rows that go to each split. The key None stands for rows that are left out."""


class SplitSizes(NamedTuple):
    """The number of rows of each split. train: None takes all remaining rows."""

    train: int | None
    dev: int
    test: int
    held: int = 0


@dataclass
class RowCounts:
    """Numbers of rows by author and label.

    `verified` rows may enter any split, `others` only train.
    """

    verified: dict[Author, RowsByLabel] = field(default_factory=dict)
    others: dict[Author, RowsByLabel] = field(default_factory=dict)

    def add(self, author: Author, label: str, is_verified: bool, row_count: int = 1) -> None:
        """Count `row_count` rows."""
        counts_by_author = self.verified if is_verified else self.others
        counts_by_author.setdefault(author, Counter())[label] += row_count

    @property
    def author_count(self) -> int:
        """The number of known authors."""
        return len((self.verified.keys() | self.others.keys()) - {None})

    @property
    def total(self) -> int:
        """The number of all rows."""
        return (self.count_labels(True) + self.count_labels(False)).total()

    def count_labels(self, is_verified: bool) -> RowsByLabel:
        """Return the number of rows by label, over all authors."""
        return _sum_counts((self.verified if is_verified else self.others).values())


@dataclass(frozen=True)
class SplitPlan:
    """The split to which each author's rows go."""

    split_by_author: Mapping[Author, str]
    """The split of each author in test, dev or held. All other authors are in train."""
    cells: Mapping[tuple[Author, str], RowsBySplit]
    """The verified rows that go to each split, by author and label, also of unknown authors."""
    train: Mapping[str, RowsBySplit]
    """The rows offered to train, by label: how many are taken and how many are left out."""
    labels: Mapping[str, RowsByLabel]
    """The number of rows in each split, by label."""

    @property
    def sizes(self) -> SplitSizes:
        """The size of each split. It is smaller than requested if there are too few authors."""
        labels = self.labels
        train, dev, test = labels[TRAIN].total(), labels[DEV].total(), labels[TEST].total()
        return SplitSizes(train, dev, test, labels[HELD_SPLIT].total())

    def count_left_out(self, counts: RowCounts) -> dict[str, int]:
        """Return how many of the counted rows are in no split, by reason.

        counts: the counts from which the plan was made.
        """
        excess_count = sum(counts_by_split[None] for counts_by_split in self.train.values())
        placed_count = sum(self.labels[split].total() for split in (*SPLITS, HELD_SPLIT))
        return {AUTHOR: counts.total - placed_count - excess_count, SIZE: excess_count}


def share_equally(total: int, available: Mapping[str, int]) -> RowsByLabel:
    """Divide `total` equally among labels.

    If a label has too few rows, the others contribute more.
    """
    shares: RowsByLabel = Counter()
    # The rarest label first; the others make up for its missing rows.
    # The name breaks ties, so that the same counts always give the same parts.
    ordered_labels = sorted(available, key=lambda label: (available[label], label))
    for number, label in enumerate(ordered_labels):
        shares[label] = min(available[label], -(-total // (len(ordered_labels) - number)))
        total -= shares[label]
    return +shares


def make_plan(counts: RowCounts, requested_sizes: SplitSizes, *, seed: int) -> SplitPlan:
    """Assign whole authors to test, dev and held so that these reach their size and label balance.

    Authors whose verified rows all fit are taken first, in random order. Rows of the last authors
    that do not fit are left out. Size takes precedence over balance. Whether test or held chooses
    first is drawn from the seed, too.
    """
    chooser, labels = _choose_authors(counts, requested_sizes, seed)
    offered_rows = _sum_counts(chain(chooser.unassigned_rows.values(), [chooser.anonymous_rows]))
    for author, rows in counts.others.items():
        if author not in chooser.split_by_author:
            offered_rows += rows
    train_size = offered_rows.total() if requested_sizes.train is None else requested_sizes.train
    labels[TRAIN] = share_equally(train_size, offered_rows)
    cells: dict[tuple[Author, str], RowsBySplit] = {}
    for author, split in chooser.split_by_author.items():
        for label, row_count in counts.verified[author].items():
            used_count = chooser.used_counts[author][label]
            cells[author, label] = {split: used_count, None: row_count - used_count}
    for label in counts.verified.get(None, ()):
        rows_by_split: RowsBySplit = {
            split: used_count[label] for split, used_count in chooser.used_anonymous_counts.items()
        }
        rows_by_split[TRAIN] = chooser.anonymous_rows[label]
        cells[None, label] = rows_by_split
    train: dict[str, RowsBySplit] = {}
    for label, row_count in offered_rows.items():
        train[label] = {TRAIN: labels[TRAIN][label], None: row_count - labels[TRAIN][label]}
    return SplitPlan(chooser.split_by_author, cells, train, labels)


def _choose_authors(
    counts: RowCounts, sizes: SplitSizes, seed: int
) -> tuple["_AuthorChooser", dict[str, RowsByLabel]]:
    """Choose the authors of test, dev and held; return the chooser, and the rows by label."""
    orders = [(TEST, DEV, HELD_SPLIT)]
    # The first split gets more authors with few rows. If it were always test, its rows would not
    # be comparable with those held back, whatever the seed.
    if sizes.held and random.Random(f"{seed} halves").random() < HELD_FIRST_CHANCE:
        orders.insert(0, (HELD_SPLIT, DEV, TEST))
    for order in orders:
        chooser = _AuthorChooser(counts.verified, seed)
        labels = {split: chooser.choose_rows(split, getattr(sizes, split)) for split in order}
        # Test and dev were promised their size, and what is held back takes what is left.
        if labels[TEST].total() == sizes.test and labels[DEV].total() == sizes.dev:
            break
    return chooser, labels


class _AuthorChooser:
    """A selector of authors for one split after another.

    Rows of unknown authors are selected one by one.
    """

    def __init__(self, verified: Mapping[Author, RowsByLabel], seed: int):
        # By id first, so that the order depends on the seed, not on the order of rows.
        authors = sorted(verified.keys() - {None})  # type: ignore[type-var]
        random.Random(seed).shuffle(authors)
        self.unassigned_rows: dict[Author, RowsByLabel] = {
            author: verified[author] for author in authors
        }
        # Rows of unknown authors are assigned individually.
        self.anonymous_rows = Counter(verified.get(None, {}))
        self.split_by_author: dict[Author, str] = {}
        self.used_counts: dict[Author, RowsByLabel] = {}
        self.used_anonymous_counts: dict[str, RowsByLabel] = {
            TEST: Counter(),
            DEV: Counter(),
            HELD_SPLIT: Counter(),
        }
        self._counts = verified

    def choose_rows(self, split: str, size: int) -> RowsByLabel:
        """Take up to `size` rows for a split and return their number by label.

        1. Take whole authors that fit the label quotas.
        2. Take rows of unknown authors within the quotas.
        3. Take more rows of the authors already in the split.
        4. Take any rows of unknown authors.
        5. Take any authors.
        """
        available = _sum_counts(chain(self.unassigned_rows.values(), [self.anonymous_rows]))
        quotas = share_equally(
            size,
            {label: row_count // LABEL_QUOTA_DIVISOR for label, row_count in available.items()},
        )
        taken_counts = self._take_authors(split, quotas.total(), quotas, MAX_WASTE_SHARE)
        taken_counts += self._take_anonymous_rows(split, quotas - taken_counts)
        taken_counts += self._take_surplus_rows(split, size - taken_counts.total())
        taken_counts += self._take_anonymous_rows(
            split, share_equally(size - taken_counts.total(), self.anonymous_rows)
        )
        return taken_counts + self._take_authors(split, size - taken_counts.total(), available, 1)

    def _take_authors(
        self, split: str, size: int, quotas: RowsByLabel, max_loss: float
    ) -> RowsByLabel:
        """Take whole authors who lose a share of rows below `max_loss`, lowest loss first.

        Returns the number of rows taken by label. The number of rows that fit only shrinks, so an
        author's earlier loss is a lower bound. The author with the lowest bound is computed again,
        and taken if the new loss is still the lowest.
        """
        taken_counts: RowsByLabel = Counter()
        # The rank, which is random, decides among authors with equal losses.
        heap = [(0.0, rank, author) for rank, author in enumerate(self.unassigned_rows)]
        while heap and taken_counts.total() < size:
            _, rank, author = heapq.heappop(heap)
            rows = self.unassigned_rows[author]
            fitting_counts = share_equally(
                size - taken_counts.total(), rows & (quotas - taken_counts)
            )
            loss = 1 - fitting_counts.total() / rows.total()
            if fitting_counts and heap and loss > heap[0][0]:
                heapq.heappush(heap, (loss, rank, author))
            elif loss < max_loss:
                self.split_by_author[author], self.used_counts[author] = split, fitting_counts
                del self.unassigned_rows[author]
                taken_counts += fitting_counts
        return taken_counts

    def _take_anonymous_rows(self, split: str, quotas: RowsByLabel) -> RowsByLabel:
        """Take rows of unknown authors within the quotas; return their number by label."""
        taken_counts = self.anonymous_rows & quotas
        self.anonymous_rows -= taken_counts
        self.used_anonymous_counts[split] += taken_counts
        return taken_counts

    def _take_surplus_rows(self, split: str, size: int) -> RowsByLabel:
        """Take up to `size` more rows of the split's authors; return their number by label."""
        taken_counts: RowsByLabel = Counter()
        for author, split_of_author in self.split_by_author.items():
            if split_of_author == split:
                extra_counts = share_equally(
                    size - taken_counts.total(), self._counts[author] - self.used_counts[author]
                )
                self.used_counts[author] += extra_counts
                taken_counts += extra_counts
        return taken_counts


class RowAssigner:
    """An assignment of rows to splits that reproduces the plan's numbers.

    Rows with the same author and label are assigned at random.
    """

    def __init__(self, plan: SplitPlan, *, seed: int):
        self._split_by_author = plan.split_by_author
        self._cells = {cell: dict(counts_by_split) for cell, counts_by_split in plan.cells.items()}
        self._train = {
            label: dict(counts_by_split) for label, counts_by_split in plan.train.items()
        }
        self._random = random.Random(seed)

    def assign_row(self, author: Author, label: str, is_verified: bool) -> str | None:
        """Return the split of the next row; None if it is left out or was not counted."""
        split: str | None = self._split_by_author.get(author, TRAIN)
        if is_verified and (split != TRAIN or author is None):
            split = self._draw_split(self._cells.get((author, label), {}))
        # An unjudged row by an author with rows in test, dev or held: train would leak the
        # author.
        elif split != TRAIN:
            return None
        return self._draw_split(self._train.get(label, {})) if split == TRAIN else split

    def _draw_split(self, remaining: RowsBySplit) -> str | None:
        total = sum(remaining.values())
        if not total:
            return None
        # Drawn by the number of rows that each split still needs, so that the sizes are exact.
        ends = list(accumulate(remaining.values()))
        split = list(remaining)[bisect_right(ends, self._random.randrange(total))]
        remaining[split] -= 1
        return split


def _sum_counts(rows: Iterable[RowsByLabel]) -> RowsByLabel:
    total: RowsByLabel = Counter()
    for labels in rows:
        total.update(labels)
    return total
