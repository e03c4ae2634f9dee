"""Which judges seem careless, from votes, times, gold and authors' labels: evidence for an owner.

Two signs. A judge's accuracy lies nearer to chance than to the crowd's: accuracy is that of Dawid
and Skene's model with one parameter a judge ("one coin"). And two judges agree where independent
ones would differ: they copy.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
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
"""A pair copies when its few differences, or fewer, have less than this probability."""
ALIKE = 0.05
"""A pair hardly differs when its answers differ on this share of the items at most."""
LATER = 0.8
"""Of a pair, the one copies whose vote came later on this share of the items."""
ROUNDS = 30
"""Rounds of expectation and maximisation; the estimates have converged long before."""
START = 0.7
"""The accuracy of every judge before the first round."""
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

    accuracy: their estimated share of right answers; bound: the limit below which it lies; both
    None where copying is the only sign. copies: judges whose answers theirs repeat.
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
    """Return the judges who seem careless, by number.

    Parameters
    ----------
    votes
        All votes, on gold items, too.
    gold
        The right answer of the items that have one.
    answers
        How many answers an item may have, 2 or more.
    authors
        The authors' own labels, which judges do not see. All authors count as one more judge.

    Returns
    -------
    A proposal for each such judge. Nobody with fewer than LEAST judgements is among them.

    Notes
    -----
    A judge is careless below `chance + NEARER · (median − chance)`, where chance is `1 / answers`
    and
    the median is that of all accuracies; or where they copy.
    """
    copied = copiers(votes, gold, answers)
    counts: dict[int, int] = defaultdict(int)
    for vote in votes:
        counts[vote.judge] += 1
    # A copied vote says nothing more about the truth.
    independent = [vote for vote in votes if vote.judge not in copied]
    independent += [Cast(item, AUTHORS, answer, 0.0) for item, answer in authors.items()]
    accuracy = accuracies(independent, gold, answers)
    # Not of newcomers, whose accuracy is mostly that of the crowd (WEIGHT).
    settled = [accuracy[judge] for judge in accuracy if counts[judge] >= LEAST]
    chance = 1 / answers
    bound = 0.0
    if settled:
        bound = chance + NEARER * (float(np.median(settled)) - chance)
    proposed = []
    for judge, judged in sorted(counts.items()):
        if judged < LEAST:
            continue
        if judge in copied:
            proposed.append(Proposal(judge, judged, copies=sorted(copied[judge])))
        elif accuracy[judge] < bound:
            proposed.append(Proposal(judge, judged, accuracy[judge], bound))
    return proposed


def accuracies(votes: Sequence[Cast], gold: Mapping[int, int], answers: int) -> dict[int, float]:
    """Return each judge's estimated share of right answers.

    Parameters
    ----------
    votes
        Items with a single vote tell nothing.
    gold
        The right answer of the items that have one.
    answers
        How many answers an item may have.

    Notes
    -----
    Dawid and Skene 1979 with one parameter a judge and equal priors, by expectation and
    maximisation
    from majorities: of all accuracies those that make the votes most likely. WEIGHT judgements of
    the
    crowd's accuracy are added to each judge's own, and no accuracy is 0 or 1.
    """
    if not votes:
        return {}
    items, item = np.unique([vote.item for vote in votes], return_inverse=True)
    judges, judge = np.unique([vote.judge for vote in votes], return_inverse=True)
    answer = np.array([vote.answer for vote in votes])
    truth = np.array([gold.get(int(number), -1) for number in items])
    right = np.full(len(judges), START)
    votes_of = np.bincount(judge)
    for _ in range(ROUNDS):
        # Expectation: how likely each vote is right. Maximisation: each judge's mean of it.
        agreed = _right_by(item, answer, right[judge], truth, answers)
        crowd = float(np.mean(agreed))
        right = (np.bincount(judge, agreed) + WEIGHT * crowd) / (votes_of + WEIGHT)
        right = np.clip(right, 0.5 / answers, 0.99)
    return {int(number): float(share) for number, share in zip(judges, right, strict=True)}


def _right_by(
    item: NDArray[np.intp], answer: NDArray[np.intp], right: Floats, truth: NDArray[np.intp],
    answers: int,
) -> Floats:  # fmt: skip
    """Return the probability that each vote is right, given all votes on the item, or its gold.

    Arrays have an element for each vote, but `truth` one for each item: its gold, or -1.
    """
    # Log-odds, so that votes add up: a vote of an accurate judge adds more.
    log_odds = np.log(right) - np.log((1 - right) / (answers - 1))
    sums = np.zeros((len(truth), answers))
    np.add.at(sums, (item, answer), log_odds)
    # Less the maximum, so that the exponential of many votes does not overflow.
    shares = np.exp(sums - sums.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    has_gold = truth >= 0
    shares[has_gold] = np.eye(answers)[truth[has_gold]]
    probabilities: Floats = shares[item, answer]
    return probabilities


def copiers(votes: Sequence[Cast], gold: Mapping[int, int], answers: int) -> dict[int, set[int]]:
    """Return the judges who seem to copy, each with those whose answers theirs repeat.

    Parameters
    ----------
    votes
        All votes, with their times.
    gold
        The right answer of the items that have one.
    answers
        How many answers an item may have.

    Notes
    -----
    Judges who hardly differ on many items are put together into groups. Each group is then compared
    with everybody else's votes: how often would two judges of these accuracies differ?
    """
    by_item: dict[int, list[Cast]] = defaultdict(list)
    for vote in votes:
        by_item[vote.item].append(vote)
    close = {
        pair: seen
        for pair, seen in _compare_pairs(by_item.values()).items()
        if seen.shared >= LEAST_SHARED and seen.differ <= ALIKE * seen.shared
    }
    copied: dict[int, set[int]] = defaultdict(set)
    for group in _groups(close):
        right = _accuracy_by_others(group, by_item, gold, answers)
        for (a, b), seen in close.items():
            if a not in group or not _is_copied(seen, right[a], right[b], answers):
                continue
            # Who votes later copies. Where neither mostly does, both may.
            if seen.b_later > (1 - LATER) * seen.shared:
                copied[b].add(a)
            if seen.b_later < LATER * seen.shared:
                copied[a].add(b)
    return dict(copied)


class _Seen(NamedTuple):
    """Two judges' votes on the same items: how many there are and differ, and where b was later."""

    shared: int = 0
    differ: int = 0
    b_later: int = 0


def _compare_pairs(items: Iterable[Sequence[Cast]]) -> dict[tuple[int, int], _Seen]:
    """Compare all pairs of judges on the items on which both voted; the lower number first."""
    pairs: dict[tuple[int, int], _Seen] = defaultdict(_Seen)
    for votes in items:
        for a, b in combinations(sorted(votes, key=lambda vote: vote.judge), 2):
            shared, differ, b_later = pairs[a.judge, b.judge]
            pairs[a.judge, b.judge] = _Seen(
                shared + 1, differ + (a.answer != b.answer), b_later + (b.at > a.at)
            )
    return pairs


def _groups(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Return the groups of judges that are linked by pairs, directly or over others."""
    group_of: dict[int, set[int]] = {}
    for a, b in pairs:
        merged = group_of.get(a, {a}) | group_of.get(b, {b})
        for judge in merged:
            group_of[judge] = merged
    groups: list[set[int]] = []
    for group in group_of.values():
        # All of a group share one set.
        if group not in groups:
            groups.append(group)
    return groups


def _accuracy_by_others(
    group: set[int], by_item: Mapping[int, Sequence[Cast]], gold: Mapping[int, int], answers: int
) -> dict[int, float]:
    """Return the accuracy of each of a group, by gold and by majorities of all others' votes."""
    all_votes = list(chain.from_iterable(by_item.values()))
    truths = _majorities(vote for vote in all_votes if vote.judge not in group)
    truths.update(gold)
    right: dict[int, list[bool]] = {judge: [] for judge in group}
    right_outside: list[bool] = []
    for vote in all_votes:
        if vote.item in truths:
            is_right = vote.answer == truths[vote.item]
            right.get(vote.judge, right_outside).append(is_right)
    # Where nobody else has judged, nothing is known about the crowd: it guesses.
    crowd = sum(right_outside) / len(right_outside) if right_outside else 1 / answers
    return {
        judge: (sum(is_right) + WEIGHT * crowd) / (len(is_right) + WEIGHT)
        for judge, is_right in right.items()
    }


def _majorities(votes: Iterable[Cast]) -> dict[int, int]:
    """Return the answer that more than half of an item's votes give, of two votes or more."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for vote in votes:
        counts[vote.item][vote.answer] += 1
    majorities = {}
    for item, answer_counts in counts.items():
        [(answer, most)] = answer_counts.most_common(1)
        total = answer_counts.total()
        if total >= 2 and 2 * most > total:
            majorities[item] = answer
    return majorities


def _is_copied(seen: _Seen, a: float, b: float, answers: int) -> bool:
    """Return whether independent judges would hardly ever differ as rarely as these two.

    a, b: their accuracies. They agree where both are right, or both give the same wrong answer.
    """
    differ = 1 - a * b - (1 - a) * (1 - b) / (answers - 1)
    # The binomial probability of so few differences or fewer.
    probability = sum(
        comb(seen.shared, n) * differ**n * (1 - differ) ** (seen.shared - n)
        for n in range(seen.differ + 1)
    )
    return probability < BY_CHANCE
