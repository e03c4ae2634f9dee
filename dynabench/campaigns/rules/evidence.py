"""Which judges seem careless, from votes, times, gold and authors' labels: evidence for an owner.

Two signs. A judge's accuracy lies nearer to chance than to the crowd's: accuracy is that of Dawid
and Skene's model with one parameter a judge ("one coin"). And two judges agree where independent
ones would differ: they copy.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST = 20
"""Judgements before anything is said about a judge."""
LEAST_SHARED = 12
"""Items that two judges share before anything is said about the pair."""
BY_CHANCE = 3e-5
"""A pair copies when so few differences have less than this probability."""
LATER = 0.8
"""Of a pair, the one copies whose vote came later on this share of the items."""
ROUNDS = 30
"""Of expectation and maximisation; the estimates stand still long before."""
NEARER = 0.46
"""A judge seems careless below this share of the way from chance to the crowd's median accuracy."""
WEIGHT = 2.0
"""As many judgements of the crowd's accuracy are added to each judge's own."""
AUTHORS = -1
"""The number under which all authors count as one judge."""

Floats = NDArray[np.float64]


class Cast(NamedTuple):
    """A vote: item and judge by number, the answer from 0, the time in any unit."""

    item: int
    judge: int
    answer: int
    at: float


@dataclass(frozen=True)
class Proposal:
    """A judge whom an owner should look at, and why.

    accuracy: their estimated share of right answers; bound: below which it lies; both None where
    copying alone is the sign. copies: judges whose answers theirs repeat.
    """

    judge: int
    judged: int
    accuracy: float | None = None
    bound: float | None = None
    copies: Sequence[int] = field(default_factory=tuple)


def proposals(
    votes: Sequence[Cast],
    gold: Mapping[int, int],
    answers: int,
    authors: Mapping[int, int] = MappingProxyType({}),
) -> list[Proposal]:
    """The judges who seem careless, by number.

    gold: the right answer of the items that have one. answers: how many an item may have, 2 or
    more. authors: the authors' own labels, which judges do not see; all authors count as one more
    judge. Nobody with fewer than LEAST judgements is in it.
    """
    copied = copiers(votes, gold, answers)
    counts: dict[int, int] = defaultdict(int)
    for vote in votes:
        counts[vote.judge] += 1
    # What is copied says nothing more about the truth.
    independent = [vote for vote in votes if vote.judge not in copied]
    written = [Cast(item, AUTHORS, answer, 0.0) for item, answer in authors.items()]
    accuracy = accuracies([*independent, *written], gold, answers)
    known = [accuracy[judge] for judge in accuracy if counts[judge] >= LEAST]
    chance = 1 / answers
    bound = chance + NEARER * (float(np.median(known)) - chance) if known else 0.0
    found = []
    for judge, judged in sorted(counts.items()):
        if judged < LEAST:
            continue
        if judge in copied:
            found.append(Proposal(judge, judged, copies=sorted(copied[judge])))
        elif accuracy[judge] < bound:
            found.append(Proposal(judge, judged, accuracy[judge], bound))
    return found


def accuracies(votes: Sequence[Cast], gold: Mapping[int, int], answers: int) -> dict[int, float]:
    """Each judge's estimated share of right answers; items with a single vote tell nothing.

    Dawid and Skene 1979 with one parameter a judge and equal priors, by expectation and
    maximisation from majorities: of all accuracies those that make the votes most likely.
    """
    if not votes:
        return {}
    items, item = np.unique([vote.item for vote in votes], return_inverse=True)
    judges, judge = np.unique([vote.judge for vote in votes], return_inverse=True)
    answer = np.array([vote.answer for vote in votes])
    truth = np.array([gold.get(int(one), -1) for one in items])
    right = np.full(len(judges), 0.7)
    votes_of = np.bincount(judge)
    for _ in range(ROUNDS):
        agreed = _right_by(item, answer, right[judge], truth, answers)
        crowd = float(np.mean(agreed))
        right = (np.bincount(judge, agreed) + WEIGHT * crowd) / (votes_of + WEIGHT)
        right = np.clip(right, 0.5 / answers, 0.99)
    return {int(one): float(share) for one, share in zip(judges, right, strict=True)}


def _right_by(
    item: NDArray[np.intp], answer: NDArray[np.intp], right: Floats, truth: NDArray[np.intp],
    answers: int,
) -> Floats:  # fmt: skip
    """Of each vote, the probability that it is right, given all votes on the item, or its gold."""
    adds = np.log(right) - np.log((1 - right) / (answers - 1))
    sums = np.zeros((len(truth), answers))
    np.add.at(sums, (item, answer), adds)
    shares = np.exp(sums - sums.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    known = truth >= 0
    shares[known] = np.eye(answers)[truth[known]]
    found: Floats = shares[item, answer]
    return found


def copiers(votes: Sequence[Cast], gold: Mapping[int, int], answers: int) -> dict[int, set[int]]:
    """The judges who seem to copy, each with those whose answers theirs repeat.

    Judges who hardly differ on many items are first put together, and then held against what
    everybody else says: how often would two so accurate judges differ?
    """
    by_item: dict[int, list[Cast]] = defaultdict(list)
    for vote in votes:
        by_item[vote.item].append(vote)
    pairs = _pairs(by_item.values())
    close = {
        pair: seen
        for pair, seen in pairs.items()
        if seen.shared >= LEAST_SHARED and seen.differ <= 0.05 * seen.shared
    }
    found: dict[int, set[int]] = defaultdict(set)
    for group in _groups(close):
        right = _seen_by_others(group, by_item, gold, answers)
        for (a, b), seen in close.items():
            if a not in group or not _is_copied(seen, right[a], right[b], answers):
                continue
            if seen.b_later >= LATER * seen.shared:
                found[b].add(a)
            elif seen.b_later <= (1 - LATER) * seen.shared:
                found[a].add(b)
            else:
                found[a].add(b)
                found[b].add(a)
    return dict(found)


class _Seen(NamedTuple):
    """Two judges' votes on the same items: how many, how many differ, in how many b was later."""

    shared: int = 0
    differ: int = 0
    b_later: int = 0


def _pairs(items: Iterable[Sequence[Cast]]) -> dict[tuple[int, int], _Seen]:
    found: dict[tuple[int, int], _Seen] = defaultdict(_Seen)
    for cast in items:
        for a, b in combinations(sorted(cast, key=lambda vote: vote.judge), 2):
            shared, differ, b_later = found[a.judge, b.judge]
            found[a.judge, b.judge] = _Seen(
                shared + 1, differ + (a.answer != b.answer), b_later + (b.at > a.at)
            )
    return found


def _groups(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """The judges that are linked by pairs, directly or over others."""
    group: dict[int, set[int]] = {}
    for a, b in pairs:
        merged = group.get(a, {a}) | group.get(b, {b})
        for judge in merged:
            group[judge] = merged
    return [set(one) for one in {frozenset(one) for one in group.values()}]


def _seen_by_others(
    group: set[int], by_item: Mapping[int, Sequence[Cast]], gold: Mapping[int, int], answers: int
) -> dict[int, float]:
    """The accuracy of each of the group by gold and by majorities of everybody else's votes."""
    outside = [v for cast in by_item.values() for v in cast if v.judge not in group]
    truths = {**_majorities(outside), **gold}
    right: dict[int, list[bool]] = {judge: [] for judge in group}
    everybody: list[bool] = []
    for item, cast in by_item.items():
        for vote in cast:
            if item in truths:
                (right[vote.judge] if vote.judge in group else everybody).append(
                    vote.answer == truths[item]
                )
    crowd = sum(everybody) / len(everybody) if everybody else 1 / answers
    return {
        judge: (sum(one) + WEIGHT * crowd) / (len(one) + WEIGHT) for judge, one in right.items()
    }


def _majorities(votes: Iterable[Cast]) -> dict[int, int]:
    """The answer that more than half of an item's votes give, where there are two or more."""
    counts: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for vote in votes:
        counts[vote.item][vote.answer] += 1
    found = {}
    for item, given in counts.items():
        answer, most = max(given.items(), key=lambda pair: pair[1])
        if sum(given.values()) >= 2 and 2 * most > sum(given.values()):
            found[item] = answer
    return found


def _is_copied(seen: _Seen, a: float, b: float, answers: int) -> bool:
    """Whether two independent judges with these accuracies would hardly ever differ so seldom."""
    differ = 1 - a * b - (1 - a) * (1 - b) / (answers - 1)
    so_few = sum(
        comb(seen.shared, n) * differ**n * (1 - differ) ** (seen.shared - n)
        for n in range(seen.differ + 1)
    )
    return so_few < BY_CHANCE
