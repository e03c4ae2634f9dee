"""Rates of a round with their intervals; the only definition of each number.

docs/statistics.md names numerators, denominators and sources in words.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, hypot, sqrt
from operator import attrgetter
from statistics import NormalDist
from typing import NamedTuple

from core.text.words import gettext_noop

EMPTY_REASON = gettext_noop("no data yet")
NORMAL_QUANTILE = NormalDist().inv_cdf(0.975)
MIN_CLUSTERS = 10
"""If there are fewer authors, the interval is shown with a warning."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share (0-1) of `n`, or a difference of two such shares, with its interval.

    `clusters`: the number of authors, if one author may have written several examples.
    """

    value: float
    low: float
    high: float
    n: int
    method: str
    clusters: int | None = None

    @property
    def has_few_authors(self) -> bool:
        """Return whether to warn that the rate is based on few authors."""
        return self.clusters is not None and self.clusters < MIN_CLUSTERS


@dataclass(frozen=True, slots=True)
class Undefined:
    """The reason why a number cannot be computed; shown as null with this reason."""

    reason: str


class CollectedCounts(NamedTuple):
    """Counts of one author, or of another part of a round, without retracted examples.

    They are whole numbers, or the sums of the examples' weights.

    fooled: the stored outcome is that the target was fooled; with_outcome: the outcome is known.
    with_model: a target's answer is known. judged: at least one vote. decided: a consensus exists.
    """

    collected: float = 0
    with_outcome: float = 0
    fooled: float = 0
    with_model: float = 0
    judged: float = 0
    decided: float = 0
    verified: float = 0
    verified_fooled: float = 0


class ComparedCounts(NamedTuple):
    """Votes, and the target's answer, compared with what the other people say.

    votes: the number of votes on one author's examples or on one example. human: votes equal to the
    others' choice. model: votes for which the target's answer equals the others' choice.
    """

    votes: int = 0
    human: int = 0
    model: int = 0


MIN_DECIDED, MIN_VOTES = 5, 10
"""The fewest decided examples, and votes compared with a target, for which a rate is shown."""
TOO_FEW_DECIDED_REASON = gettext_noop("not enough data yet: fewer than 5 examples have a consensus")
TOO_FEW_VOTES_REASON = gettext_noop(
    "not enough data yet: fewer than 10 votes to compare with a model"
)


def compute_wilson_interval(
    successes: float, n: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Compute the score interval of a share.

    Parameters
    ----------
    successes, n
        Both may be fractions: an effective number of cases.
    confidence
        The confidence level (0-1).

    Returns
    -------
    tuple
        The lower and the upper end (0-1); the share lies between them.

    Raises
    ------
    ValueError
        If the successes are negative or more than n, or n is 0.

    Notes
    -----
    Wilson 1927, without continuity correction; Brown, Cai and DasGupta 2001, equation 4.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is no share.")
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    share = successes / n
    middle = (successes + z2 / 2) / (n + z2)
    half = sqrt(z2 * n * (share * (1 - share) + z2 / (4 * n))) / (n + z2)
    # The interval contains the share, despite rounding.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def compute_rate(
    successes: float, n: int, empty_reason: str = EMPTY_REASON, confidence: float = 0.95
) -> Rate | Undefined:
    """Return a share of independent cases with Wilson's interval.

    Parameters
    ----------
    successes
        The number of successes; may be a fraction.
    n
        The number of cases.
    empty_reason
        Why the share is undefined for n = 0.
    confidence
        The confidence level of the interval (0-1).
    """
    if n == 0:
        return Undefined(empty_reason)
    interval = compute_wilson_interval(successes, n, confidence)
    return Rate(successes / n, *interval, n, "wilson")


def compute_clustered_rate(
    clusters: Iterable[tuple[float, int]],
    empty_reason: str = EMPTY_REASON,
    confidence: float = 0.95,
) -> Rate | Undefined:
    """Return a share over clusters whose cases may depend on one another.

    Parameters
    ----------
    clusters
        (successes, cases) of each. Clusters without cases are ignored; an example of an unknown
        author is a cluster of its own. Successes may be sums of shares.
    empty_reason
        Why the share is undefined without cases.
    confidence
        The confidence level of the interval (0-1).

    Notes
    -----
    Clopper and Pearson's interval on the effective number of cases, reduced if few clusters
    estimate it (Korn and Graubard 1998).
    """
    pairs = [pair for pair in clusters if pair[1]]
    successes, total = sum([pair[0] for pair in pairs]), sum([pair[1] for pair in pairs])
    # A single case in each cluster: they are independent.
    if len(pairs) == total:
        return compute_rate(successes, total, empty_reason, confidence)
    share = successes / total
    interval = _compute_clustered_interval(pairs, share, total, confidence)
    return Rate(share, *interval, total, "korn-graubard", len(pairs))


def compute_weighted_rate(
    clusters: Iterable[tuple[float, float, int]], empty_reason: str = EMPTY_REASON
) -> Rate | Undefined:
    """Return a share of cases that were drawn with known, unequal probabilities.

    Parameters
    ----------
    clusters
        (weight of the successes, weight of the cases, number of cases) of each cluster. The weight
        of a case is how often uniform draws would have drawn it, divided by how often it was drawn.
    empty_reason
        Why the share is undefined without cases.

    Notes
    -----
    Hájek's ratio (1971), Σ weights of successes ÷ Σ weights. Its bias shrinks with 1/n. The
    interval is that of `compute_clustered_rate`, with weights for numbers.
    """
    triples = [cluster for cluster in clusters if cluster[2]]
    if not triples:
        return Undefined(empty_reason)
    pairs = [(successes, weight) for successes, weight, _ in triples]
    total = sum([cases for *_, cases in triples])
    # Rounding may lift a share of 1 above it.
    share = min(1.0, fsum([pair[0] for pair in pairs]) / fsum([pair[1] for pair in pairs]))
    interval = _compute_clustered_interval(pairs, share, total, 0.95)
    return Rate(share, *interval, total, "hajek", len(pairs))


def _compute_clustered_interval(
    pairs: Sequence[tuple[float, float]], share: float, n: int, confidence: float
) -> tuple[float, float]:
    """Return Korn and Graubard's interval (1998) of a share over clusters of (successes, size)."""
    count = _count_effective_clusters(pairs)
    student_quantile = compute_student_quantile(_compute_degrees_of_freedom(count), confidence)
    normal_quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    effective = (
        _compute_effective_n(pairs, share, n, count) * (normal_quantile / student_quantile) ** 2
    )
    return compute_clopper_pearson_interval(share * effective, effective, confidence)


def compute_share_by_author(
    examples: Iterable[tuple[tuple[Hashable | None, bool], int]], empty_reason: str = EMPTY_REASON
) -> Rate | Undefined:
    """Return the share of examples with a property.

    Parameters
    ----------
    examples
        ((author or None, whether the example has the property), number of examples).
    empty_reason
        Why the share is undefined without examples.
    """
    counts_by_author: dict[Hashable, tuple[int, int]] = {}
    unknown_authors: list[tuple[int, int]] = []
    for (author, is_true), case_count in examples:
        if author is None:
            unknown_authors += [(int(is_true), 1)] * case_count
        else:
            true_count, total = counts_by_author.get(author, (0, 0))
            counts_by_author[author] = true_count + is_true * case_count, total + case_count
    return compute_clustered_rate([*unknown_authors, *counts_by_author.values()], empty_reason)


def compute_clopper_pearson_interval(
    successes: float, n: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the exact binomial interval of a share; both counts may be fractions.

    Clopper and Pearson 1934.
    """
    # Imported on first use: most requests need no scipy.
    from scipy.special import betaincinv

    failures = n - successes
    upper_point = (1 + confidence) / 2
    # The function is undefined at 0 and n, where the interval ends.
    low = float(betaincinv(successes, failures + 1, 1 - upper_point)) if successes else 0.0
    return low, float(betaincinv(successes + 1, failures, upper_point)) if failures else 1.0


def _compute_effective_n(
    pairs: Sequence[tuple[float, float]], share: float, n: int, clusters: float
) -> float:
    """Return the equivalent number of independent cases (Kish 1965), at most `n`.

    For a single cluster, or a share of 0 or 1, returns the number of clusters, the most cautious
    choice.
    """
    if len(pairs) == 1 or share in (0, 1):
        return clusters
    variance = _compute_ratio_error(pairs)[1] ** 2
    return min(n, share * (1 - share) / variance) if variance else n


def _count_effective_clusters(pairs: Sequence[tuple[float, float]]) -> float:
    return compute_effective_number([size for _, size in pairs])


def compute_effective_number(sizes: Sequence[float]) -> float:
    """Return the equivalent number of parts of equal size (Kish 1965)."""
    return sum(sizes) ** 2 / sum([size * size for size in sizes])


def _compute_degrees_of_freedom(clusters: float) -> float:
    """Return Student's degrees of freedom for an effective number of clusters."""
    # Student's t has no value below one degree of freedom.
    return max(1.0, clusters - 1)


class Ratio(NamedTuple):
    """Σ numerators ÷ Σ sizes over clusters, its standard error and Student's degrees of freedom."""

    value: float
    standard_error: float
    degrees_of_freedom: float

    @property
    def half_width(self) -> float:
        """Return the half-width of the 95% interval."""
        return compute_student_quantile(self.degrees_of_freedom) * self.standard_error


def compute_student_quantile(degrees_of_freedom: float, confidence: float = 0.95) -> float:
    """Return the point of Student's t that ends a two-sided interval, by default the 97.5 % one."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, (1 + confidence) / 2))


def compute_clustered_ratio(pairs: Sequence[tuple[float, int]]) -> Ratio:
    """Compute a ratio over at least two clusters of (numerator, size): Cochran 1977, 6.4.

    A numerator may be negative, as a difference is.
    """
    return Ratio(
        *_compute_ratio_error(pairs), _compute_degrees_of_freedom(_count_effective_clusters(pairs))
    )


def _compute_ratio_error(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the ratio over at least two clusters and its standard error."""
    count, total = len(pairs), sum([size for _, size in pairs])
    ratio = fsum([numerator for numerator, _ in pairs]) / total
    spread = fsum([(numerator - ratio * size) ** 2 for numerator, size in pairs])
    return ratio, sqrt(spread * count / (count - 1)) / total


def compute_newcombe_interval(first: Rate, second: Rate) -> tuple[float, float]:
    """Return the 95% interval of first − second from their intervals, assuming independence.

    Newcombe 1998, method 10.
    """
    difference = first.value - second.value
    low = difference - hypot(first.value - first.low, second.high - second.value)
    return low, difference + hypot(first.high - first.value, second.value - second.low)


def compute_round_rates(
    authors: Sequence[CollectedCounts], weights: Sequence[CollectedCounts] = ()
) -> Mapping[str, Rate | Undefined]:
    """Compute `mer`, `vmer`, `fooled_of_decided` and `verified_of_judged` from authors' counts.

    weights: the weights of the same authors' examples, if their contexts were drawn with unequal
    probabilities. All four rates are then weighted.

    Notes
    -----
    - MER = fooled ÷ collected.
    - vMER = validated model errors ÷ collected (Kiela et al. 2021, section 3).
    - fooled_of_decided = validated model errors ÷ examples with a consensus.
    - verified_of_judged = verified ÷ judged.

    vMER and fooled_of_decided are undefined below MIN_DECIDED.
    """

    def compute_ratio(numerator: str, denominator: str, empty_reason: str) -> Rate | Undefined:
        counts = map(attrgetter(numerator, denominator), authors)
        if not weights:
            return compute_clustered_rate(counts, empty_reason)
        sums = map(attrgetter(numerator, denominator), weights)
        clusters = [(*weighted, cases) for weighted, (_, cases) in zip(sums, counts, strict=True)]
        return compute_weighted_rate(clusters, empty_reason)

    def explain_missing(name: str, reason: str) -> str:
        return "" if any(getattr(author, name) for author in authors) else reason

    # Each reason takes precedence over those that follow.
    no_examples = explain_missing("collected", gettext_noop("no examples"))
    no_votes = no_examples or explain_missing("judged", gettext_noop("no example has been judged"))
    no_model = no_examples or explain_missing(
        "with_model", gettext_noop("no model's answer is known")
    )
    has_unknown_outcomes = no_examples or explain_missing(
        "with_outcome", gettext_noop("no example's outcome is known")
    )
    no_consensus = no_votes or explain_missing(
        "decided", gettext_noop("no example has a consensus")
    )
    if not no_consensus and sum(author.decided for author in authors) < MIN_DECIDED:
        no_consensus = TOO_FEW_DECIDED_REASON
    definitions = {
        "mer": ("fooled", "collected", has_unknown_outcomes),
        "vmer": ("verified_fooled", "collected", no_model or no_consensus),
        "fooled_of_decided": ("verified_fooled", "decided", no_model or no_consensus),
        "verified_of_judged": ("verified", "judged", no_votes),
    }
    return {
        name: Undefined(reason) if reason else compute_ratio(numerator, denominator, reason)
        for name, (numerator, denominator, reason) in definitions.items()
    }


def iter_others_choices(counts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the choices of the other people for an example with `counts` votes per choice.

    Yields (choice, votes for it, the choice of most other people); nothing for votes without other
    votes, or if the other people are divided equally.
    """
    for choice, votes in enumerate(counts):
        if votes:
            other_counts = [count - (index == choice) for index, count in enumerate(counts)]
            top_count = max(other_counts)
            if top_count and other_counts.count(top_count) == 1:
                yield choice, votes, other_counts.index(top_count)


def compare_votes(counts: Sequence[int], target_right: Sequence[bool | None]) -> ComparedCounts:
    """Compare the votes on one example, and its target's answer, with the other votes.

    Parameters
    ----------
    counts
        The votes for each choice.
    target_right
        For each choice, whether the target is right if that choice is correct. None if unknown;
        then no vote is compared with that choice.
    """
    all_votes = human = model = 0
    for choice, votes, other_choice in iter_others_choices(counts):
        is_target_right = target_right[other_choice]
        if is_target_right is not None:
            all_votes += votes
            human += votes * (choice == other_choice)
            model += votes * is_target_right
    return ComparedCounts(all_votes, human, model)


def compare_human_and_model(authors: Iterable[ComparedCounts]) -> Mapping[str, Rate | Undefined]:
    """Compute `human_accuracy`, `model_accuracy` on the same votes, and their `human_model_gap`.

    Notes
    -----
    Each vote is compared with the other votes on the example (leave-one-out). The target's answer
    is compared with the same votes, so a target that answers like another person has a gap of 0.

    Interval of the gap: Student's, by the differences of whole authors. If these do not vary, and
    for a share of 0 or 1, Newcombe's (1998, method 10) of the two intervals, assuming independence.
    All three numbers are undefined below MIN_VOTES.
    """
    voting_authors = [author for author in authors if author.votes]
    # Without any, a reason below is more useful than “not enough yet”.
    if 0 < sum(author.votes for author in voting_authors) < MIN_VOTES:
        names = ("human_accuracy", "model_accuracy", "human_model_gap")
        return dict.fromkeys(names, Undefined(TOO_FEW_VOTES_REASON))
    empty_reason = gettext_noop("no model answer can be compared with several people's votes")
    human = compute_clustered_rate(
        [(counts.human, counts.votes) for counts in voting_authors], empty_reason
    )
    model = compute_clustered_rate(
        [(counts.model, counts.votes) for counts in voting_authors], empty_reason
    )
    if isinstance(human, Undefined) or isinstance(model, Undefined):
        return dict.fromkeys(("human_accuracy", "model_accuracy", "human_model_gap"), human)
    gap = human.value - model.value
    pairs = [(counts.human - counts.model, counts.votes) for counts in voting_authors]
    # With one author the variance is unknown, so Newcombe's interval is used.
    half_width = compute_clustered_ratio(pairs).half_width if len(pairs) > 1 else 0
    # A difference of two shares lies between -1 and 1.
    low, high, method = max(-1.0, gap - half_width), min(1.0, gap + half_width), "student-by-author"
    if not half_width or {human.value, model.value} & {0, 1}:
        (low, high), method = compute_newcombe_interval(human, model), "newcombe"
    difference = Rate(gap, low, high, human.n, method, len(voting_authors))
    return {"human_accuracy": human, "model_accuracy": model, "human_model_gap": difference}
