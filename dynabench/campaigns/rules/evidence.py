"""Evidence of careless judging for an owner, from votes, times, gold and authors' labels.

There are two signs. A judge's accuracy is nearer to chance than to the crowd's accuracy, estimated
by Dawid and Skene's model with one parameter per judge ("one coin"). Or two judges agree where
independent judges would differ, so one of them copies.
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
"""The minimum number of judgements before anything is said about a judge."""
MIN_SHARED_ITEMS = 12
"""The minimum number of shared items before anything is said about a pair of judges."""
MAX_CHANCE_PROBABILITY = 3e-5
"""The probability limit for copying.

A pair copies if the probability that independent judges differ so rarely is below this.
"""
MAX_DIFFERENT_SHARE = 0.05
"""The maximum share of shared items on which the answers of a close pair differ."""
LATER_SHARE = 0.8
"""The share of shared items on which a judge must have voted later to be the one who copies."""
ITERATIONS = 30
"""The number of rounds of expectation-maximisation, more than the estimates need to converge."""
START_ACCURACY = 0.7
"""The accuracy of every judge before the first round."""
BOUND_SHARE = 0.46
"""The position of the limit of careless accuracy between chance (0) and the crowd's median (1)."""
PRIOR_WEIGHT = 2.0
"""The number of judgements with the crowd's accuracy that are added to each judge's own."""
AUTHORS_ID = -1
"""The judge id that represents all authors together."""

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

    accuracy: the estimated share of right answers. bound: the limit that the accuracy is below.
    Both are None if copying is the only sign. copies: the judges whose answers they seem to repeat.
    """

    judge: int
    judged: int
    accuracy: float | None = None
    bound: float | None = None
    copies: Sequence[int] = field(default_factory=tuple)


def propose_judges(
    votes: Sequence[CastVote],
    gold: Mapping[int, int],
    answer_count: int,
    authors: Mapping[int, int] = MappingProxyType({}),
) -> list[Proposal]:
    """Return the judges who seem careless, by ascending id.

    Parameters
    ----------
    votes
        All votes, including those on gold items.
    gold
        The index of the right answer, by gold item.
    answer_count
        Number of possible answers to an item, at least 2.
    authors
        The author's label by item, which judges do not see. All authors count as one more judge.

    Returns
    -------
    One proposal per careless judge. Judges with fewer than MIN_JUDGEMENTS judgements are left out.

    Notes
    -----
    A judge is careless if they copy, or if their accuracy is below
    `chance + BOUND_SHARE · (median − chance)`, where chance is `1 / answer_count`. The median is
    taken over judges with enough judgements who do not copy.
    """
    sources_by_copier = find_copiers(votes, gold, answer_count)
    judgement_counts: dict[int, int] = defaultdict(int)
    for vote in votes:
        judgement_counts[vote.judge] += 1
    # A copied vote says nothing more about the truth.
    independent_votes = [vote for vote in votes if vote.judge not in sources_by_copier]
    independent_votes += [
        CastVote(item, AUTHORS_ID, answer, 0.0) for item, answer in authors.items()
    ]
    accuracies = estimate_accuracies(independent_votes, gold, answer_count)
    # Not of newcomers, whose accuracy is mostly that of the crowd (PRIOR_WEIGHT).
    settled_accuracies = [
        accuracies[judge] for judge in accuracies if judgement_counts[judge] >= MIN_JUDGEMENTS
    ]
    chance = 1 / answer_count
    accuracy_limit = 0.0
    if settled_accuracies:
        accuracy_limit = chance + BOUND_SHARE * (float(np.median(settled_accuracies)) - chance)
    proposals = []
    for judge, judgement_count in sorted(judgement_counts.items()):
        if judgement_count < MIN_JUDGEMENTS:
            continue
        if judge in sources_by_copier:
            proposals.append(
                Proposal(judge, judgement_count, copies=sorted(sources_by_copier[judge]))
            )
        elif accuracies[judge] < accuracy_limit:
            proposals.append(Proposal(judge, judgement_count, accuracies[judge], accuracy_limit))
    return proposals


def estimate_accuracies(
    votes: Sequence[CastVote], gold: Mapping[int, int], answer_count: int
) -> dict[int, float]:
    """Estimate each judge's share of right answers.

    Parameters
    ----------
    votes
        All votes. Items with a single vote contribute no information.
    gold
        The index of the right answer, by gold item.
    answer_count
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
    vote_counts = np.bincount(judge)
    for _ in range(ITERATIONS):
        # Expectation: how likely each vote is right. Maximisation: each judge's mean of it.
        right_probabilities = _calculate_vote_probabilities(
            item, answer, accuracies[judge], truth, answer_count
        )
        crowd_accuracy = float(np.mean(right_probabilities))
        accuracies = (np.bincount(judge, right_probabilities) + PRIOR_WEIGHT * crowd_accuracy) / (
            vote_counts + PRIOR_WEIGHT
        )
        accuracies = np.clip(accuracies, 0.5 / answer_count, 0.99)
    return {int(number): float(share) for number, share in zip(judges, accuracies, strict=True)}


def _calculate_vote_probabilities(
    item: NDArray[np.intp], answer: NDArray[np.intp], accuracies: Floats, truth: NDArray[np.intp],
    answer_count: int,
) -> Floats:  # fmt: skip
    """Return the probability that each vote is right, given all votes on the item or its gold.

    Arrays have one element per vote, except `truth`, which has one per item: the gold
    answer, or -1.
    """
    # Log-odds, so that votes add up: a vote of an accurate judge adds more.
    log_odds = np.log(accuracies) - np.log((1 - accuracies) / (answer_count - 1))
    sums = np.zeros((len(truth), answer_count))
    np.add.at(sums, (item, answer), log_odds)
    # Less the maximum, so that the exponential of many votes does not overflow.
    shares = np.exp(sums - sums.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    has_gold = truth >= 0
    shares[has_gold] = np.eye(answer_count)[truth[has_gold]]
    probabilities: Floats = shares[item, answer]
    return probabilities


def find_copiers(
    votes: Sequence[CastVote], gold: Mapping[int, int], answer_count: int
) -> dict[int, set[int]]:
    """Return the judges who seem to copy, each with the judges whose answers they repeat.

    Parameters
    ----------
    votes
        All votes, with their times.
    gold
        The index of the right answer, by gold item.
    answer_count
        Number of possible answers to an item.

    Notes
    -----
    Judges who rarely differ on many shared items are grouped. Each pair in a group is then tested:
    how often would two independent judges differ, with accuracies estimated from gold and from the
    votes of judges outside the group?
    """
    votes_by_item: dict[int, list[CastVote]] = defaultdict(list)
    for vote in votes:
        votes_by_item[vote.item].append(vote)
    close_pairs = {
        pair: shared_votes
        for pair, shared_votes in _compare_pairs(votes_by_item.values()).items()
        if shared_votes.shared_count >= MIN_SHARED_ITEMS
        and shared_votes.different_count <= MAX_DIFFERENT_SHARE * shared_votes.shared_count
    }
    sources_by_copier: dict[int, set[int]] = defaultdict(set)
    for group in _group_pairs(close_pairs):
        accuracy_by_judge = _estimate_accuracy_by_others(group, votes_by_item, gold, answer_count)
        for (a, b), shared_votes in close_pairs.items():
            if a not in group or not _is_copied(
                shared_votes, accuracy_by_judge[a], accuracy_by_judge[b], answer_count
            ):
                continue
            # Who votes later copies. Where neither mostly does, both may.
            if shared_votes.b_later_count > (1 - LATER_SHARE) * shared_votes.shared_count:
                sources_by_copier[b].add(a)
            if shared_votes.b_later_count < LATER_SHARE * shared_votes.shared_count:
                sources_by_copier[a].add(b)
    return dict(sources_by_copier)


class _SharedVotes(NamedTuple):
    """Counts over the items that judges a and b share.

    shared_count: all shared items. different_count: items with different answers. b_later_count:
    items on which b voted after a.
    """

    shared_count: int = 0
    different_count: int = 0
    b_later_count: int = 0


def _compare_pairs(items: Iterable[Sequence[CastVote]]) -> dict[tuple[int, int], _SharedVotes]:
    """Return the counts of each pair of judges with shared items, by (smaller id, greater id)."""
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
    group_by_judge: dict[int, set[int]] = {}
    for a, b in pairs:
        merged_group = group_by_judge.get(a, {a}) | group_by_judge.get(b, {b})
        for judge in merged_group:
            group_by_judge[judge] = merged_group
    groups: list[set[int]] = []
    for group in group_by_judge.values():
        # All of a group share one set.
        if group not in groups:
            groups.append(group)
    return groups


def _estimate_accuracy_by_others(
    group: set[int],
    votes_by_item: Mapping[int, Sequence[CastVote]],
    gold: Mapping[int, int],
    answer_count: int,
) -> dict[int, float]:
    """Return each group member's accuracy, by gold and by the majorities of other judges."""
    all_votes = list(chain.from_iterable(votes_by_item.values()))
    truths = _find_majorities(vote for vote in all_votes if vote.judge not in group)
    truths.update(gold)
    correctness_by_judge: dict[int, list[bool]] = {judge: [] for judge in group}
    outside_correctness: list[bool] = []
    for vote in all_votes:
        if vote.item in truths:
            is_right = vote.answer == truths[vote.item]
            correctness_by_judge.get(vote.judge, outside_correctness).append(is_right)
    # Where nobody else has judged, nothing is known about the crowd: it guesses.
    crowd_accuracy = (
        sum(outside_correctness) / len(outside_correctness)
        if outside_correctness
        else 1 / answer_count
    )
    return {
        judge: (sum(is_right) + PRIOR_WEIGHT * crowd_accuracy) / (len(is_right) + PRIOR_WEIGHT)
        for judge, is_right in correctness_by_judge.items()
    }


def _find_majorities(votes: Iterable[CastVote]) -> dict[int, int]:
    """Return the answer of more than half of the votes, by item.

    Items with one vote are left out.
    """
    counts_by_item: dict[int, Counter[int]] = defaultdict(Counter)
    for vote in votes:
        counts_by_item[vote.item][vote.answer] += 1
    majorities = {}
    for item, answer_counts in counts_by_item.items():
        [(answer, max_count)] = answer_counts.most_common(1)
        total = answer_counts.total()
        if total >= 2 and 2 * max_count > total:
            majorities[item] = answer
    return majorities


def _is_copied(shared_votes: _SharedVotes, a: float, b: float, answer_count: int) -> bool:
    """Return whether independent judges would very rarely agree as often as these two.

    a, b: the two judges' accuracies. Independent judges agree if both are right or both give the
    same wrong answer.
    """
    difference_rate = 1 - a * b - (1 - a) * (1 - b) / (answer_count - 1)
    # The binomial probability of so few differences or fewer.
    probability = sum(
        comb(shared_votes.shared_count, n)
        * difference_rate**n
        * (1 - difference_rate) ** (shared_votes.shared_count - n)
        for n in range(shared_votes.different_count + 1)
    )
    return probability < MAX_CHANCE_PROBABILITY
