"""Decide which rows of a dataset go to train, dev, test and held, so that no author is in two.

First `make_plan` decides with counts alone which authors the last three take, then a `Dealer` says
for one row after another where it goes; so memory follows the number of authors, not of rows.
The same counts, sizes, seed and order of rows give the same splits.
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
PROGRAM = "program"
"""The split of what programs wrote. It exists only if they wrote something."""
HELD = "held"
"""Verified rows that are published later. Until then models are run on them."""
LABEL_QUOTA_DIVISOR = 3
"""To balance a split no label gives more than one in this many of its rows."""
MAX_WASTE_SHARE = 0.5
"""To balance a split no author is taken if this share of their verified rows would be left out."""
AUTHOR, SIZE = "author", "size"
"""Why a plan leaves a row out: its author is in a split that has no place for it; train is full."""

Author = int | None
"""An id. None: unknown; each such row counts as by an author of its own."""
Labels = Counter[str]
"""How many rows there are of each label."""
Parts = dict[str | None, int]
"""How many rows go to each split; None: left out."""


class Sizes(NamedTuple):
    """The number of rows of each split. train: None takes all remaining rows."""

    train: int | None
    dev: int
    test: int
    held: int = 0


@dataclass
class Counts:
    """Numbers of rows by author and label.

    `verified` rows may enter any split, `others` only train.
    """

    verified: dict[Author, Labels] = field(default_factory=dict)
    others: dict[Author, Labels] = field(default_factory=dict)

    def add(self, author: Author, label: str, is_verified: bool, times: int = 1) -> None:
        """Count `times` rows."""
        side = self.verified if is_verified else self.others
        side.setdefault(author, Counter())[label] += times

    @property
    def authors(self) -> int:
        """The number of known authors."""
        return len((self.verified.keys() | self.others.keys()) - {None})

    @property
    def total(self) -> int:
        """The number of all rows."""
        return (self.labels(True) + self.labels(False)).total()

    def labels(self, is_verified: bool) -> Labels:
        """Return the number of rows by label, over all authors."""
        return _sum((self.verified if is_verified else self.others).values())


@dataclass(frozen=True)
class Plan:
    """The split to which each author's rows go."""

    split_of: Mapping[Author, str]
    """The authors of test, dev and held; all others are train's."""
    cells: Mapping[tuple[Author, str], Parts]
    """The verified rows of these authors by label, and of unknown authors."""
    train: Mapping[str, Parts]
    """What comes to train, by label."""
    labels: Mapping[str, Labels]
    """Rows that each split gets, by label."""

    @property
    def sizes(self) -> Sizes:
        """The size of each split, which is smaller than requested if there are too few authors."""
        labels = self.labels
        train, dev, test = labels[TRAIN].total(), labels[DEV].total(), labels[TEST].total()
        return Sizes(train, dev, test, labels[HELD].total())

    def left_out(self, counts: Counts) -> dict[str, int]:
        """Return how many of the counted rows are in no split, by reason.

        counts: the counts from which the plan was made.
        """
        beyond = sum(parts[None] for parts in self.train.values())
        placed = sum(self.labels[split].total() for split in (*SPLITS, HELD))
        return {AUTHOR: counts.total - placed - beyond, SIZE: beyond}


def share_equally(total: int, available: Mapping[str, int]) -> Labels:
    """Divide `total` equally among labels.

    Where one has too few rows, the others contribute more.
    """
    parts: Labels = Counter()
    # The scarcest label first: what it lacks is shared by the others.
    order = sorted(available, key=lambda label: (available[label], label))
    for number, label in enumerate(order):
        parts[label] = min(available[label], -(-total // (len(order) - number)))
        total -= parts[label]
    return +parts


def make_plan(counts: Counts, requested_sizes: Sizes, *, seed: int) -> Plan:
    """Assign whole authors to test, dev and held so that these reach their size and label balance.

    Authors whose verified rows all fit are taken first, in random order. Rows of the last authors
    that do not fit are left out. Size takes precedence over balance.
    """
    chooser = _Chooser(counts.verified, seed)
    # In this order: the first one chooses among the most authors.
    labels = {TEST: chooser.choose(TEST, requested_sizes.test)}
    labels[DEV] = chooser.choose(DEV, requested_sizes.dev)
    labels[HELD] = chooser.choose(HELD, requested_sizes.held)
    offered_rows = _sum(chain(chooser.free.values(), [chooser.loose]))
    for author, rows in counts.others.items():
        if author not in chooser.split_of:
            offered_rows += rows
    train_size = offered_rows.total() if requested_sizes.train is None else requested_sizes.train
    labels[TRAIN] = share_equally(train_size, offered_rows)
    cells: dict[tuple[Author, str], Parts] = {}
    for author, split in chooser.split_of.items():
        for label, n in counts.verified[author].items():
            used_count = chooser.used[author][label]
            cells[author, label] = {split: used_count, None: n - used_count}
    for label in counts.verified.get(None, ()):
        parts: Parts = {
            split: used_count[label] for split, used_count in chooser.used_loose.items()
        }
        parts[TRAIN] = chooser.loose[label]
        cells[None, label] = parts
    train: dict[str, Parts] = {}
    for label, n in offered_rows.items():
        train[label] = {TRAIN: labels[TRAIN][label], None: n - labels[TRAIN][label]}
    return Plan(chooser.split_of, cells, train, labels)


class _Chooser:
    """A stateful selection of authors for one split after another.

    Rows of unknown authors are selected one by one.
    """

    def __init__(self, verified: Mapping[Author, Labels], seed: int):
        # By id first, so that the order depends on the seed and not on the order of rows.
        order = sorted(verified.keys() - {None})  # type: ignore[type-var]
        random.Random(seed).shuffle(order)
        self.free: dict[Author, Labels] = {author: verified[author] for author in order}
        # Rows of unknown authors: each may go anywhere by itself.
        self.loose = Counter(verified.get(None, {}))
        self.split_of: dict[Author, str] = {}
        self.used: dict[Author, Labels] = {}
        self.used_loose: dict[str, Labels] = {TEST: Counter(), DEV: Counter(), HELD: Counter()}
        self._counts = verified

    def choose(self, split: str, size: int) -> Labels:
        """Take up to `size` rows for a split and return their number by label.

        1. Take whole authors that fit the label quotas.
        2. Take rows of unknown authors within the quotas.
        3. Take more rows of the authors already in the split.
        4. Take any rows of unknown authors.
        5. Take any authors.
        """
        available = _sum(chain(self.free.values(), [self.loose]))
        quotas = share_equally(
            size, {label: n // LABEL_QUOTA_DIVISOR for label, n in available.items()}
        )
        taken_counts = self._take_authors(split, quotas.total(), quotas, MAX_WASTE_SHARE)
        taken_counts += self._take_loose(split, quotas - taken_counts)
        taken_counts += self._take_surplus(split, size - taken_counts.total())
        taken_counts += self._take_loose(
            split, share_equally(size - taken_counts.total(), self.loose)
        )
        return taken_counts + self._take_authors(split, size - taken_counts.total(), available, 1)

    def _take_authors(self, split: str, size: int, quotas: Labels, below: float) -> Labels:
        """Take whole authors who lose less than a share `below` of their rows, lowest loss first.

        Returns the number of rows taken by label. The number of rows that fit only shrinks, so an
        author's earlier loss is a lower bound. The author with the lowest bound is computed again,
        and taken if the new loss is still the lowest.
        """
        taken_counts: Labels = Counter()
        # The rank, which is random, decides among authors with equal losses.
        heap = [(0.0, rank, author) for rank, author in enumerate(self.free)]
        while heap and taken_counts.total() < size:
            _, rank, author = heapq.heappop(heap)
            rows = self.free[author]
            fitting_counts = share_equally(
                size - taken_counts.total(), rows & (quotas - taken_counts)
            )
            loss = 1 - fitting_counts.total() / rows.total()
            if fitting_counts and heap and loss > heap[0][0]:
                heapq.heappush(heap, (loss, rank, author))
            elif loss < below:
                self.split_of[author], self.used[author] = split, fitting_counts
                del self.free[author]
                taken_counts += fitting_counts
        return taken_counts

    def _take_loose(self, split: str, quotas: Labels) -> Labels:
        """Take rows of unknown authors within the quotas; return their number by label."""
        taken_counts = self.loose & quotas
        self.loose -= taken_counts
        self.used_loose[split] += taken_counts
        return taken_counts

    def _take_surplus(self, split: str, size: int) -> Labels:
        """Take up to `size` more rows of the split's authors; return their number by label."""
        taken_counts: Labels = Counter()
        for author, split_of_author in self.split_of.items():
            if split_of_author == split:
                more = share_equally(
                    size - taken_counts.total(), self._counts[author] - self.used[author]
                )
                self.used[author] += more
                taken_counts += more
        return taken_counts


class Dealer:
    """An assignment of rows to splits that reproduces the plan's numbers.

    Rows with the same author and label are assigned at random.
    """

    def __init__(self, plan: Plan, *, seed: int):
        self._split_of = plan.split_of
        self._cells = {cell: dict(parts) for cell, parts in plan.cells.items()}
        self._train = {label: dict(parts) for label, parts in plan.train.items()}
        self._random = random.Random(seed)

    def deal(self, author: Author, label: str, is_verified: bool) -> str | None:
        """Return the split of the next row; None leaves it out, like rows that nobody counted."""
        split: str | None = self._split_of.get(author, TRAIN)
        if is_verified and (split != TRAIN or author is None):
            split = self._draw(self._cells.get((author, label), {}))
        # An unjudged row of an author whose rows are in test, dev or held: train would leak the
        # author.
        elif split != TRAIN:
            return None
        return self._draw(self._train.get(label, {})) if split == TRAIN else split

    def _draw(self, remaining: Parts) -> str | None:
        total = sum(remaining.values())
        if not total:
            return None
        # Drawn by how many rows each split still needs, so that exactly these come out.
        ends = list(accumulate(remaining.values()))
        split = list(remaining)[bisect_right(ends, self._random.randrange(total))]
        remaining[split] -= 1
        return split


def _sum(rows: Iterable[Labels]) -> Labels:
    total: Labels = Counter()
    for labels in rows:
        total.update(labels)
    return total
