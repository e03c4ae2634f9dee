"""Estimate which share of texts machines wrote, from signals whose error rates a study measured.

A text has one or several signals, such as a pasted text, each of which fires or not. No signal says
of one text who wrote it. Their mean over many texts does say something about the share of machine
texts, once a labelled study has measured how often they fire in texts by people and by machines:
`(mean - rate of people) / (rate of machines - rate of people)`, the estimator of Rogan and Gladen
(1978), "Estimating prevalence from the results of a screening test", American Journal of
Epidemiology 107. Here it is applied to the mean of several signals and to each stratum apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_TEXTS = 100
MIN_AUTHORS = 20
"""Below either, no share is stated. The same holds for the authors of the labelled study."""
MIN_LABELLED_TEXTS = 30
"""A stratum's error rates are unknown with fewer texts by people, or by machines, in the study."""
MIN_CERTAINTY = 4.0
"""How many standard errors apart the rates of people and machines must be to count as known.

Signals of no use reach this in about one stratum of 30,000, so they never pass for useful ones.
"""
REPLICATES = 1000
BLOCK_NUMBERS = 2_000_000  # at once, so that large campaigns need at most some 100 MB
INTERVAL_QUANTILES = (0.025, 0.975)
NORMAL_QUANTILE = 1.959964
"""The interval is never narrower than a normal one."""

Floats = NDArray[np.float64]


class SignalledText(NamedTuple):
    """A text: its author, its stratum, and the share of its signals that fire, from 0 to 1.

    author: any number that texts by the same person share. stratum: texts with the same condition
    and the same signals.
    """

    author: int
    stratum: str
    score: float


class Counts(NamedTuple):
    """The number of an author's texts in a stratum, and the sum of their scores."""

    texts: int
    score: float


AuthorCounts = Mapping[str, Counts]
"""An author's counts by stratum."""


class LabelledCounts(NamedTuple):
    """An author's counts in a labelled study, by what they were told."""

    machine: AuthorCounts
    person: AuthorCounts


@dataclass(frozen=True)
class MachineShare:
    """The estimated share of machine-written texts, from 0 to 1, with its 95% interval.

    unknown_texts: texts that have no signals, or signals with unknown error rates. The interval
    covers all that they may be. reason: why there is no share: `few`, `no_rates` or `unfit`; "" if
    there is one.
    """

    texts: int
    authors: int
    unknown_texts: int
    share: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def count_by_author(texts: Iterable[SignalledText]) -> list[dict[str, Counts]]:
    """Return the counts of each author, without saying whose they are."""
    counts_by_author: dict[int, dict[str, Counts]] = {}
    for text in texts:
        counts = counts_by_author.setdefault(text.author, {})
        text_count, score = counts.get(text.stratum, Counts(0, 0.0))
        counts[text.stratum] = Counts(text_count + 1, score + text.score)
    return list(counts_by_author.values())


def _count_texts(author: AuthorCounts, strata: Iterable[str]) -> int:
    """Return how many texts of an author are in these strata."""
    return sum(author[name].texts for name in strata if name in author)


def find_known_strata(study: Sequence[LabelledCounts]) -> list[str]:
    """Return the strata whose signals the study has shown to tell machines from people."""
    names: set[str] = set()
    for one in study:
        names.update(one.machine, one.person)
    strata = sorted(names)
    if not strata or len(study) < MIN_AUTHORS:
        return []
    table, once = _tabulate_study(study, strata), np.ones((1, len(study)))
    machine, machine_texts = table.machine.measure_means(once)
    person, person_texts = table.person.measure_means(once)
    apart = (machine - person)[0]
    influences = (table.machine.scores - machine * table.machine.texts) / np.maximum(
        machine_texts, 1.0
    ) - (table.person.scores - person * table.person.texts) / np.maximum(person_texts, 1.0)
    errors = np.sqrt((influences**2).sum(axis=0) * len(study) / (len(study) - 1))
    is_known = (
        (machine_texts[0] >= MIN_LABELLED_TEXTS)
        & (person_texts[0] >= MIN_LABELLED_TEXTS)
        & (apart > 0)
        & (apart >= MIN_CERTAINTY * errors)
    )
    return [name for name, known in zip(strata, is_known, strict=True) if known]


def estimate_machine_share(
    authors: Sequence[AuthorCounts], study: Sequence[LabelledCounts], *, seed: int = 0
) -> MachineShare:
    """Estimate the share of machine-written texts, with an interval clustered by author.

    Parameters
    ----------
    authors
        The counts of each author of the texts.
    study
        The counts of each author of the labelled study, which are where the error rates come from.
    seed
        Of the resampling, so that the same texts always have the same interval.

    Notes
    -----
    The interval is a studentised bootstrap (Efron 1981, "Nonparametric standard errors and
    confidence intervals", Canadian Journal of Statistics 9). It draws authors of the texts and,
    apart from them, authors of the study, so that it contains the uncertainty of the error rates.
    The standard error within each draw is that of the linearised ratio, clustered by author.
    Strata are estimated apart, as a deterrent may change the share in its own, and added with
    their numbers of texts as weights. Both limits are truncated to 0 and 1.
    """
    text_count = sum(_count_texts(author, author) for author in authors)
    strata = find_known_strata(study)
    known_authors = [author for author in authors if any(name in author for name in strata)]
    strata = [name for name in strata if any(name in author for author in authors)]
    known_count = sum(_count_texts(author, strata) for author in authors)
    sizes = (text_count, len(authors), text_count - known_count)
    if text_count < MIN_TEXTS or len(authors) < MIN_AUTHORS:
        return MachineShare(*sizes, reason="few")
    if not strata:
        return MachineShare(*sizes, reason="no_rates")
    if known_count < MIN_TEXTS or len(known_authors) < MIN_AUTHORS:
        return MachineShare(*sizes, reason="few")
    share, low, high = _estimate_with_interval(known_authors, study, strata, seed)
    # Error rates of other people, or of other models, can't produce such signals at any share.
    if high < 0 or low > 1:
        return MachineShare(*sizes, reason="unfit")
    share, low, high = (min(max(value, 0.0), 1.0) for value in (share, low, high))
    # Texts about which nothing is known may all be by people, or all by machines.
    known_share = known_count / text_count
    return MachineShare(
        *sizes,
        share=share,
        low=low * known_share,
        high=high * known_share + 1 - known_share,
    )


class _Table(NamedTuple):
    """Numbers of texts and sums of scores, by author (rows) and stratum (columns)."""

    texts: Floats
    scores: Floats

    def measure_means(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return mean scores and numbers of texts, by replicate and stratum.

        weights: how often each replicate (rows) contains each author (columns).
        """
        texts = weights @ self.texts
        # A replicate without a text of a stratum has no mean of it, and gives it no weight.
        return weights @ self.scores / np.maximum(texts, 1.0), texts


class _StudyTable(NamedTuple):
    machine: _Table
    person: _Table


def _tabulate(authors: Sequence[AuthorCounts], strata: Sequence[str]) -> _Table:
    none = Counts(0, 0.0)
    rows = np.array(
        [[author.get(name, none) for name in strata] for author in authors], dtype=np.float64
    ).reshape(len(authors), len(strata), 2)
    return _Table(rows[..., 0], rows[..., 1])


def _tabulate_study(study: Sequence[LabelledCounts], strata: Sequence[str]) -> _StudyTable:
    return _StudyTable(
        _tabulate([one.machine for one in study], strata),
        _tabulate([one.person for one in study], strata),
    )


def _sum_squares(columns: Sequence[Floats], factors: Sequence[Floats], weights: Floats) -> Floats:
    """Return the variance of an estimate in each replicate, clustered by author.

    The influence of an author, by which the estimate would move if there were more of them, is the
    sum of columns times factors. columns: by author and stratum. factors: by replicate and stratum.
    """
    author_count = weights.shape[1]
    features, coefficients = np.hstack(columns), np.hstack(factors)
    # The sums of products are taken once, so that no array has replicates and authors and strata.
    products = (features[:, :, None] * features[:, None, :]).reshape(author_count, -1)
    size = features.shape[1]
    matrices = (weights @ products).reshape(-1, size, size)
    squares: Floats = np.einsum("ri,rij,rj->r", coefficients, matrices, coefficients)
    # Rounding may leave a sum of squares below 0.
    correction = author_count / max(author_count - 1, 1)
    return np.maximum(squares, 0.0) * correction  # type: ignore[no-any-return]


def _estimate_share(
    table: _Table, text_weights: Floats, study: _StudyTable, study_weights: Floats,
    least_apart: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return the share and its standard error in each replicate.

    least_apart: by stratum, the least difference between machines and people to divide by.
    """
    machine, machine_texts = study.machine.measure_means(study_weights)
    person, person_texts = study.person.measure_means(study_weights)
    means, texts = table.measure_means(text_weights)
    total = texts.sum(axis=1, keepdims=True)
    apart = np.maximum(machine - person, least_apart)
    shares = (means - person) / apart
    weights = texts / total
    share = (weights * shares).sum(axis=1, keepdims=True)
    # Of the weights, too: another draw of authors has other numbers of texts in each stratum.
    text_variance = _sum_squares(
        (table.scores, table.texts),
        (1 / (total * apart), (shares - share - means / apart) / total),
        text_weights,
    )
    machine_factor = weights / apart * shares / np.maximum(machine_texts, 1.0)
    person_factor = weights / apart * (1 - shares) / np.maximum(person_texts, 1.0)
    study_variance = _sum_squares(
        (study.machine.scores, study.machine.texts, study.person.scores, study.person.texts),
        (machine_factor, -machine_factor * machine, person_factor, -person_factor * person),
        study_weights,
    )
    # One text more or less: where no signal fires in any text, authors don't vary, and yet the rate
    # is not known to be 0.
    least_variance = ((1 / (total * apart)) ** 2 + machine_factor**2 + person_factor**2).sum(axis=1)
    return share[:, 0], np.sqrt(text_variance + study_variance + least_variance)


def _estimate_with_interval(
    authors: Sequence[AuthorCounts], labelled: Sequence[LabelledCounts], strata: Sequence[str],
    seed: int,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the share and the limits of its interval, before they are truncated."""
    table, study = _tabulate(authors, strata), _tabulate_study(labelled, strata)
    author_count, study_count = len(authors), len(labelled)
    once = np.ones((1, study_count))
    machine, _machine_texts = study.machine.measure_means(once)
    person, _person_texts = study.person.measure_means(once)
    # A draw in which both rates are nearly equal would otherwise have a share of any size.
    least_apart = (machine - person)[0] / 10
    (share,), (error,) = _estimate_share(
        table, np.ones((1, author_count)), study, once, least_apart
    )
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK_NUMBERS // max(author_count, study_count))
    distances = []
    for start in range(0, REPLICATES, block):
        size = min(block, REPLICATES - start)
        text_weights = _draw_weights(generator, size, author_count)
        study_weights = _draw_weights(generator, size, study_count)
        shares, errors = _estimate_share(table, text_weights, study, study_weights, least_apart)
        distances.append((shares - share) / errors)
    low, high = np.quantile(np.concatenate(distances), INTERVAL_QUANTILES)
    # Draws of authors who are all alike don't differ, which is no certainty.
    low, high = min(low, -NORMAL_QUANTILE), max(high, NORMAL_QUANTILE)
    # The quantiles change sides: a draw that is too high means that the truth is lower.
    return float(share), float(share - high * error), float(share - low * error)


def _draw_weights(generator: np.random.Generator, size: int, author_count: int) -> Floats:
    """Return how often each of `size` draws, with replacement, contains each author."""
    weights: Floats = generator.multinomial(
        author_count, np.full(author_count, 1 / author_count), size=size
    ).astype(np.float64)
    return weights


class SignalRate(NamedTuple):
    """How often a signal fired: the number of texts, the rate, and its 95% interval."""

    texts: int
    rate: float
    low: float
    high: float


def measure_signal_rate(authors: Sequence[Counts]) -> SignalRate:
    """Return the rate of a signal with an interval clustered by author.

    authors: at least one; each with the number of texts and the number in which the signal fired.

    Notes
    -----
    Wilson's interval (1927) for the effective number of texts, which is the number divided by the
    design effect: the variance between authors over that of independent texts (Korn and Graubard
    1998, "Confidence intervals for proportions with small expected number of positive counts",
    Survey Methodology 24).
    """
    text_count = sum(counts.texts for counts in authors)
    rate = sum(counts.score for counts in authors) / text_count
    cluster_variance = 0.0
    if len(authors) > 1:
        squares = sum((counts.score - rate * counts.texts) ** 2 for counts in authors)
        cluster_variance = squares * len(authors) / (len(authors) - 1) / text_count**2
    simple_variance = rate * (1 - rate) / text_count
    # Not below 1: authors who are more even than chance are even by chance.
    design_effect = max(1.0, cluster_variance / simple_variance) if simple_variance else 1.0
    effective_count = text_count / design_effect
    z = NORMAL_QUANTILE
    middle = (rate + z**2 / (2 * effective_count)) / (1 + z**2 / effective_count)
    half = (
        z
        / (1 + z**2 / effective_count)
        * float(np.sqrt(rate * (1 - rate) / effective_count + (z / (2 * effective_count)) ** 2))
    )
    return SignalRate(text_count, rate, max(0.0, middle - half), min(1.0, middle + half))
