"""Rates of a round with their intervals: each number has its one definition here.

docs/statistics.md names numerators, denominators and sources in words.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, hypot, sqrt
from operator import attrgetter
from statistics import NormalDist
from typing import NamedTuple

from core.text.words import gettext_noop

NOTHING = gettext_noop("nothing to divide by")
NORMAL = NormalDist().inv_cdf(0.975)
FEW_CLUSTERS = 10
"""Below so many authors the interval is shown with a warning."""


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
    def few_authors(self) -> bool:
        """Return whether to warn that the rate is based on few authors."""
        return self.clusters is not None and self.clusters < FEW_CLUSTERS


@dataclass(frozen=True, slots=True)
class Undefined:
    """The reason why a number cannot be computed; shown as null with this reason."""

    reason: str


class Collected(NamedTuple):
    """Counts of one author, or of another part of a round, without retracted examples.

    fooled: the stored outcome is that the target was fooled; with_outcome: the outcome is known.
    with_model: a target's answer is known. judged: at least one vote. decided: a consensus exists.
    """

    collected: int = 0
    with_outcome: int = 0
    fooled: int = 0
    with_model: int = 0
    judged: int = 0
    decided: int = 0
    verified: int = 0
    verified_fooled: int = 0


class Compared(NamedTuple):
    """Votes, and the target's answer, compared with what the other people say.

    votes: the number of votes on one author's examples or on one example. human: votes equal to the
    others' choice. model: votes for which the target's answer equals the others' choice.
    """

    votes: int = 0
    human: int = 0
    model: int = 0


LEAST_DECIDED, LEAST_VOTES = 5, 10
"""With fewer examples with a consensus, or votes compared with a target, a rate is not shown."""
TOO_FEW_DECIDED = gettext_noop("not enough yet: fewer than 5 examples have a consensus")
TOO_FEW_VOTES = gettext_noop("not enough yet: fewer than 10 votes to compare a target with")


def wilson(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Compute the score interval of a share.

    Parameters
    ----------
    successes, n
        Both may be fractions: an effective number of cases.
    confidence
        Of the interval, 0-1.

    Returns
    -------
    tuple
        Its two ends, 0-1; the share lies between them.

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
    # The interval holds the share; rounding must not say otherwise.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def rate(successes: float, n: int, empty_reason: str = NOTHING) -> Rate | Undefined:
    """Return a share of independent cases with Wilson's interval.

    Parameters
    ----------
    successes
        May be a fraction.
    n
        Cases.
    empty_reason
        Why the share is undefined for n = 0.
    """
    if n == 0:
        return Undefined(empty_reason)
    return Rate(successes / n, *wilson(successes, n), n, "wilson")


def clustered_rate(
    clusters: Iterable[tuple[float, int]], empty_reason: str = NOTHING
) -> Rate | Undefined:
    """Return a share over clusters whose cases may depend on one another.

    Parameters
    ----------
    clusters
        (successes, cases) of each. Clusters without cases are ignored; an example of an unknown
        author is a cluster of its own. Successes may be sums of shares.
    empty_reason
        Why the share is undefined without cases.

    Notes
    -----
    Clopper and Pearson's interval on the effective number of cases, reduced if few clusters
    estimate it (Korn and Graubard 1998).
    """
    pairs = [pair for pair in clusters if pair[1]]
    successes, n = sum([pair[0] for pair in pairs]), sum([pair[1] for pair in pairs])
    # A single case in each cluster: they are independent.
    if len(pairs) == n:
        return rate(successes, n, empty_reason)
    share = successes / n
    count = _effective_clusters(pairs)
    effective = _effective_n(pairs, share, n, count) * (NORMAL / student(_freedom(count))) ** 2
    low, high = clopper_pearson(share * effective, effective)
    return Rate(share, low, high, n, "korn-graubard", len(pairs))


def share_by_author(
    examples: Iterable[tuple[tuple[Hashable | None, bool], int]], empty_reason: str = NOTHING
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
    for (author, is_so), times in examples:
        if author is None:
            unknown_authors += [(int(is_so), 1)] * times
        else:
            so, total = counts_by_author.get(author, (0, 0))
            counts_by_author[author] = so + is_so * times, total + times
    return clustered_rate([*unknown_authors, *counts_by_author.values()], empty_reason)


def clopper_pearson(successes: float, n: float) -> tuple[float, float]:
    """Return the exact 95 % binomial interval of a share; both arguments may be fractions.

    Clopper and Pearson 1934.
    """
    # Imported on first use: most requests need no scipy.
    from scipy.special import betaincinv

    failures = n - successes
    # The function has no value at 0 and n, where the interval ends.
    low = float(betaincinv(successes, failures + 1, 0.025)) if successes else 0.0
    return low, float(betaincinv(successes + 1, failures, 0.975)) if failures else 1.0


def _effective_n(
    pairs: Sequence[tuple[float, int]], share: float, n: int, clusters: float
) -> float:
    """Return the equivalent number of independent cases (Kish 1965), at most `n`.

    Without any variance between clusters the clusters themselves are counted, the most cautious
    choice.
    """
    if len(pairs) == 1 or share in (0, 1):
        return clusters
    variance = _ratio_error(pairs)[1] ** 2
    return min(n, share * (1 - share) / variance) if variance else n


def _effective_clusters(pairs: Sequence[tuple[float, int]]) -> float:
    """Return the equivalent number of clusters of equal size (Kish 1965)."""
    return sum([size for _, size in pairs]) ** 2 / sum([size * size for _, size in pairs])


def _freedom(clusters: float) -> float:
    """Return Student's degrees of freedom for an effective number of clusters."""
    # Student's t has no value below one degree of freedom.
    return max(1.0, clusters - 1)


class Ratio(NamedTuple):
    """Σ numerators ÷ Σ sizes over clusters, its standard error and Student's degrees of freedom."""

    value: float
    error: float
    freedom: float

    @property
    def half(self) -> float:
        """Return the half-width of the 95 % interval."""
        return student(self.freedom) * self.error


def student(freedom: float) -> float:
    """Return the 97.5 % point of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def cluster_ratio(pairs: Sequence[tuple[float, int]]) -> Ratio:
    """Compute a ratio over at least two clusters of (numerator, size): Cochran 1977, 6.4.

    A numerator may be negative, as a difference is.
    """
    return Ratio(*_ratio_error(pairs), _freedom(_effective_clusters(pairs)))


def _ratio_error(pairs: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return the ratio over at least two clusters and its standard error."""
    count, n = len(pairs), sum([size for _, size in pairs])
    ratio = fsum([top for top, _ in pairs]) / n
    spread = fsum([(top - ratio * size) ** 2 for top, size in pairs])
    return ratio, sqrt(spread * count / (count - 1)) / n


def newcombe(first: Rate, second: Rate) -> tuple[float, float]:
    """Return the 95 % interval of first − second from their intervals, assuming independence.

    Newcombe 1998, method 10.
    """
    difference = first.value - second.value
    low = difference - hypot(first.value - first.low, second.high - second.value)
    return low, difference + hypot(first.high - first.value, second.value - second.low)


def round_rates(authors: Sequence[Collected]) -> Mapping[str, Rate | Undefined]:
    """Compute `mer`, `vmer`, `fooled_of_decided`, `verified_of_judged`. authors: in any order.

    Notes
    -----
    - MER = fooled ÷ collected.
    - vMER = validated model errors ÷ collected (Kiela et al. 2021, section 3).
    - fooled_of_decided = validated model errors ÷ examples with a consensus.
    - verified_of_judged = verified ÷ judged.

    vMER and fooled_of_decided are undefined below LEAST_DECIDED.
    """

    def over(top: str, bottom: str, empty_reason: str) -> Rate | Undefined:
        return clustered_rate(map(attrgetter(top, bottom), authors), empty_reason)

    def unless(name: str, reason: str) -> str:
        return "" if any(getattr(author, name) for author in authors) else reason

    # Each reason takes precedence over those that follow.
    no_examples = unless("collected", gettext_noop("no examples"))
    no_votes = no_examples or unless("judged", gettext_noop("no example has been judged"))
    no_model = no_examples or unless("with_model", gettext_noop("no target's answer is known"))
    unknown = no_examples or unless("with_outcome", gettext_noop("no example's outcome is known"))
    no_consensus = no_votes or unless("decided", gettext_noop("no example has a consensus"))
    if not no_consensus and sum(author.decided for author in authors) < LEAST_DECIDED:
        no_consensus = TOO_FEW_DECIDED
    definitions = {
        "mer": ("fooled", "collected", unknown),
        "vmer": ("verified_fooled", "collected", no_model or no_consensus),
        "fooled_of_decided": ("verified_fooled", "decided", no_model or no_consensus),
        "verified_of_judged": ("verified", "judged", no_votes),
    }
    return {
        name: Undefined(reason) if reason else over(top, bottom, reason)
        for name, (top, bottom, reason) in definitions.items()
    }


def iter_others_choices(counts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the choices of the other people for an example with `counts` votes per choice.

    Yields (choice, votes for it, the choice of most other people); nothing for votes without other
    votes, or if the other people are divided equally.
    """
    for choice, votes in enumerate(counts):
        if votes:
            other_counts = [count - (n == choice) for n, count in enumerate(counts)]
            top_count = max(other_counts)
            if top_count and other_counts.count(top_count) == 1:
                yield choice, votes, other_counts.index(top_count)


def compare(counts: Sequence[int], target_right: Sequence[bool | None]) -> Compared:
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
    return Compared(all_votes, human, model)


def human_and_model(authors: Iterable[Compared]) -> Mapping[str, Rate | Undefined]:
    """Compute `human_accuracy`, `model_accuracy` on the same votes, and their `human_model_gap`.

    Notes
    -----
    Each vote is compared with what the others on the example say (leave-one-out), and so is the
    target in its place: a target that answers like another person has a gap of 0.

    Interval of the gap: Student's, by the differences of whole authors. If these do not vary, and
    for a share of 0 or 1, Newcombe's (1998, method 10) of the two intervals, assuming independence.
    All three numbers are undefined below LEAST_VOTES.
    """
    voting_authors = [author for author in authors if author.votes]
    # Where there are none, a reason below says more than “not enough yet”.
    if 0 < sum(author.votes for author in voting_authors) < LEAST_VOTES:
        names = ("human_accuracy", "model_accuracy", "human_model_gap")
        return dict.fromkeys(names, Undefined(TOO_FEW_VOTES))
    empty = gettext_noop("no target's answer can be held against several people's votes")
    human = clustered_rate([(a.human, a.votes) for a in voting_authors], empty)
    model = clustered_rate([(a.model, a.votes) for a in voting_authors], empty)
    if isinstance(human, Undefined) or isinstance(model, Undefined):
        return dict.fromkeys(("human_accuracy", "model_accuracy", "human_model_gap"), human)
    gap = human.value - model.value
    pairs = [(a.human - a.model, a.votes) for a in voting_authors]
    # One author shows no variance, so Newcombe's interval is used.
    half_width = cluster_ratio(pairs).half if len(pairs) > 1 else 0
    # A difference of two shares lies between -1 and 1.
    low, high, method = max(-1.0, gap - half_width), min(1.0, gap + half_width), "student-by-author"
    if not half_width or {human.value, model.value} & {0, 1}:
        (low, high), method = newcombe(human, model), "newcombe"
    difference = Rate(gap, low, high, human.n, method, len(voting_authors))
    return {"human_accuracy": human, "model_accuracy": model, "human_model_gap": difference}
