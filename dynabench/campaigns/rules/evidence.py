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

MIN_JUDGEMENTS = 20
"""Judgements before anything is said about a judge."""
MIN_SHARED_ITEMS = 12
"""Items that two judges share before anything is said about the pair."""
MAX_CHANCE_PROBABILITY = 3e-5
"""A pair copies when its few differences, or fewer, have less than this probability."""
MAX_DIFFERENT_SHARE = 0.05
"""A pair hardly differs when its answers differ on this share of the items at most."""
LATER_SHARE = 0.8
"""Of a pair, the one copies whose vote came later on this share of the items."""
ITERATIONS = 30
"""Rounds of expectation and maximisation; the estimates have converged long before."""
START_ACCURACY = 0.7
"""The accuracy of every judge before the first round."""
BOUND_SHARE = 0.46
"""A judge seems careless below this share of the way from chance to the crowd's median accuracy."""
PRIOR_WEIGHT = 2.0
"""As many judgements of the crowd's accuracy are added to each judge's own."""
AUTHORS_ID = -1
"""The number under which all authors count as one judge."""

Floats = NDArray[np.float64]


class CastVote(NamedTuple):
    """A vote: ids of the item and the judge, the answer's index, and the time in any unit."""

    item: int
    judge: int
    answer: int
    at: float


@dataclass(frozen=True)
class Proposal:
    """A judge whose work the owner should check, and why.

    accuracy: their estimated share of right answers; bound: the limit that it is below;
    both None if copying is the only sign. copies: judges whose answers they seem to repeat.
    """

    judge: int
    judged: int
    accuracy: float | None = None
    bound: float | None = None
    copies: Sequence[int] = field(default_factory=tuple)


def propose_judges(
    votes: Sequence[CastVote],
    gold: Mapping[int, int],
    answers: int,
    authors: Mapping[int, int] = MappingProxyType({}),
) -> list[Proposal]:
    """Return the judges who seem careless, by ascending id.

    Parameters
    ----------
    votes
        All votes, including those on gold items.
    gold
        The index of the right answer, by gold item.
    answers
        Number of possible answers to an item, at least 2.
    authors
        The authors' own labels, which judges do not see. All authors count as one more judge.

    Returns
    -------
    A proposal for each such judge. Judges with fewer than MIN_JUDGEMENTS judgements are left out.

    Notes
    -----
    A judge is careless if they copy, or if their accuracy is below
    `chance + BOUND_SHARE · (median − chance)`, where chance is `1 / answers`. The median is
    that of all judges' accuracies.
    """
    sources_by_copier = find_copiers(votes, gold, answers)
    judgement_counts: dict[int, int] = defaultdict(int)
    for vote in votes:
        judgement_counts[vote.judge] += 1
    # A copied vote says nothing more about the truth.
    independent = [vote for vote in votes if vote.judge not in sources_by_copier]
    independent += [CastVote(item, AUTHORS_ID, answer, 0.0) for item, answer in authors.items()]
    accuracy = estimate_accuracies(independent, gold, answers)
    # Not of newcomers, whose accuracy is mostly that of the crowd (PRIOR_WEIGHT).
    settled_accuracies = [
        accuracy[judge] for judge in accuracy if judgement_counts[judge] >= MIN_JUDGEMENTS
    ]
    chance = 1 / answers
    bound = 0.0
    if settled_accuracies:
        bound = chance + BOUND_SHARE * (float(np.median(settled_accuracies)) - chance)
    proposals = []
    for judge, judgement_count in sorted(judgement_counts.items()):
        if judgement_count < MIN_JUDGEMENTS:
            continue
        if judge in sources_by_copier:
            proposals.append(
                Proposal(judge, judgement_count, copies=sorted(sources_by_copier[judge]))
            )
        elif accuracy[judge] < bound:
            proposals.append(Proposal(judge, judgement_count, accuracy[judge], bound))
    return proposals


def estimate_accuracies(
    votes: Sequence[CastVote], gold: Mapping[int, int], answers: int
) -> dict[int, float]:
    """Estimate each judge's share of right answers.

    Parameters
    ----------
    votes
        All votes. Items with a single vote contribute no information.
    gold
        The index of the right answer, by gold item.
    answers
        Number of possible answers to an item.

    Notes
    -----
    The model of Dawid and Skene (1979) with one parameter per judge and equal priors, fitted by
    expectation-maximisation. As smoothing, PRIOR_WEIGHT judgements with the crowd's accuracy
    are added to each judge's own. Accuracies are clipped, so that none is 0 or 1.
    """
    if not votes:
        return {}
    items, item = np.unique([vote.item for vote in votes], return_inverse=True)
    judges, judge = np.unique([vote.judge for vote in votes], return_inverse=True)
    answer = np.array([vote.answer for vote in votes])
    truth = np.array([gold.get(int(number), -1) for number in items])
    accuracies = np.full(len(judges), START_ACCURACY)
    votes_of = np.bincount(judge)
    for _ in range(ITERATIONS):
        # Expectation: how likely each vote is right. Maximisation: each judge's mean of it.
        agreed = _calculate_vote_probabilities(item, answer, accuracies[judge], truth, answers)
        crowd = float(np.mean(agreed))
        accuracies = (np.bincount(judge, agreed) + PRIOR_WEIGHT * crowd) / (votes_of + PRIOR_WEIGHT)
        accuracies = np.clip(accuracies, 0.5 / answers, 0.99)
    return {int(number): float(share) for number, share in zip(judges, accuracies, strict=True)}


def _calculate_vote_probabilities(
    item: NDArray[np.intp], answer: NDArray[np.intp], accuracies: Floats, truth: NDArray[np.intp],
    answers: int,
) -> Floats:  # fmt: skip
    """Return the probability that each vote is right, given all votes on the item or its gold.

    Arrays have one element per vote, except `truth`, which has one per item: the gold
    answer, or -1.
    """
    # Log-odds, so that votes add up: a vote of an accurate judge adds more.
    log_odds = np.log(accuracies) - np.log((1 - accuracies) / (answers - 1))
    sums = np.zeros((len(truth), answers))
    np.add.at(sums, (item, answer), log_odds)
    # Less the maximum, so that the exponential of many votes does not overflow.
    shares = np.exp(sums - sums.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    has_gold = truth >= 0
    shares[has_gold] = np.eye(answers)[truth[has_gold]]
    probabilities: Floats = shares[item, answer]
    return probabilities


def find_copiers(
    votes: Sequence[CastVote], gold: Mapping[int, int], answers: int
) -> dict[int, set[int]]:
    """Return the judges who seem to copy, each with the judges whose answers they repeat.

    Parameters
    ----------
    votes
        All votes, with their times.
    gold
        The index of the right answer, by gold item.
    answers
        Number of possible answers to an item.

    Notes
    -----
    Judges who rarely differ on many shared items are grouped. Each pair in a group is then tested:
    how often would two independent judges differ, with accuracies estimated from gold and from the
    votes of judges outside the group?
    """
    by_item: dict[int, list[CastVote]] = defaultdict(list)
    for vote in votes:
        by_item[vote.item].append(vote)
    close_pairs = {
        pair: shared_votes
        for pair, shared_votes in _compare_pairs(by_item.values()).items()
        if shared_votes.shared >= MIN_SHARED_ITEMS
        and shared_votes.differ <= MAX_DIFFERENT_SHARE * shared_votes.shared
    }
    sources_by_copier: dict[int, set[int]] = defaultdict(set)
    for group in _group_pairs(close_pairs):
        accuracy_of = _estimate_accuracy_by_others(group, by_item, gold, answers)
        for (a, b), shared_votes in close_pairs.items():
            if a not in group or not _is_copied(
                shared_votes, accuracy_of[a], accuracy_of[b], answers
            ):
                continue
            # Who votes later copies. Where neither mostly does, both may.
            if shared_votes.b_later > (1 - LATER_SHARE) * shared_votes.shared:
                sources_by_copier[b].add(a)
            if shared_votes.b_later < LATER_SHARE * shared_votes.shared:
                sources_by_copier[a].add(b)
    return dict(sources_by_copier)


class _SharedVotes(NamedTuple):
    """Counts over the items that judges a and b share.

    shared: all; differ: with different answers; b_later: where b voted after a.
    """

    shared: int = 0
    differ: int = 0
    b_later: int = 0


def _compare_pairs(items: Iterable[Sequence[CastVote]]) -> dict[tuple[int, int], _SharedVotes]:
    """Return the counts of each pair of judges with shared items, smaller id first."""
    pairs: dict[tuple[int, int], _SharedVotes] = defaultdict(_SharedVotes)
    for votes in items:
        for a, b in combinations(sorted(votes, key=lambda vote: vote.judge), 2):
            shared, differ, b_later = pairs[a.judge, b.judge]
            pairs[a.judge, b.judge] = _SharedVotes(
                shared + 1, differ + (a.answer != b.answer), b_later + (b.at > a.at)
            )
    return pairs


def _group_pairs(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Return the groups of judges that are connected by pairs, directly or indirectly."""
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


def _estimate_accuracy_by_others(
    group: set[int],
    by_item: Mapping[int, Sequence[CastVote]],
    gold: Mapping[int, int],
    answers: int,
) -> dict[int, float]:
    """Return the accuracy of each judge in a group, by gold and by others' majorities."""
    all_votes = list(chain.from_iterable(by_item.values()))
    truths = _find_majorities(vote for vote in all_votes if vote.judge not in group)
    truths.update(gold)
    correctness_of: dict[int, list[bool]] = {judge: [] for judge in group}
    right_outside: list[bool] = []
    for vote in all_votes:
        if vote.item in truths:
            is_right = vote.answer == truths[vote.item]
            correctness_of.get(vote.judge, right_outside).append(is_right)
    # Where nobody else has judged, nothing is known about the crowd: it guesses.
    crowd = sum(right_outside) / len(right_outside) if right_outside else 1 / answers
    return {
        judge: (sum(is_right) + PRIOR_WEIGHT * crowd) / (len(is_right) + PRIOR_WEIGHT)
        for judge, is_right in correctness_of.items()
    }


def _find_majorities(votes: Iterable[CastVote]) -> dict[int, int]:
    """Return, by item, the answer of more than half of its votes; needs at least two votes."""
    counts_by_item: dict[int, Counter[int]] = defaultdict(Counter)
    for vote in votes:
        counts_by_item[vote.item][vote.answer] += 1
    majorities = {}
    for item, answer_counts in counts_by_item.items():
        [(answer, most)] = answer_counts.most_common(1)
        total = answer_counts.total()
        if total >= 2 and 2 * most > total:
            majorities[item] = answer
    return majorities


def _is_copied(shared_votes: _SharedVotes, a: float, b: float, answers: int) -> bool:
    """Return whether independent judges would very rarely agree as often as these two.

    a, b: their accuracies. Independent judges agree if both are right or both give the same
    wrong answer.
    """
    differ = 1 - a * b - (1 - a) * (1 - b) / (answers - 1)
    # The binomial probability of so few differences or fewer.
    probability = sum(
        comb(shared_votes.shared, n) * differ**n * (1 - differ) ** (shared_votes.shared - n)
        for n in range(shared_votes.differ + 1)
    )
    return probability < MAX_CHANCE_PROBABILITY
