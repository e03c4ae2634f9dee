"""Find slices: groups of similar tries on which a model errs more often than on others.

Whoever searches many groups finds some with many errors by chance. So the groups are formed from
one half of the authors, and their errors are counted in the texts of the other half. The p-values
are corrected for the number of groups.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from annotation.rules.near_duplicates import compute_overlap
from core.text.words import gettext_noop
from dynabench.failures.rules.records import FAMILY_LEVEL, Slice, SliceSearch, Try
from dynabench.failures.rules.word_vectors import Matrix, build_word_vectors, find_centres
from validation.rates.rates import Rate, Undefined, compute_clustered_rate

MIN_AUTHORS = 6
"""With fewer authors, a group would tell of a person rather than of the model."""
MIN_ERRORS = 30
"""With fewer errors, no group could be told from chance."""
MIN_SLICE_TRIES = 10
"""The fewest tries of a slice in either half."""
MAX_SLICES = 6
"""The maximum number of slices whose errors are counted in the second half."""
GROUP_COUNTS = (2, 3, 5, 8, 12)
"""Into how many groups the errors are divided, one division after another.

Nobody knows in advance whether a weak spot is a wide subject or a narrow one.
"""
MIN_ERRORS_PER_GROUP = 5
"""The mean number of errors in a group, below which errors aren't divided further."""
MAX_WORDS_SHOWN = 5
COPY_LIKENESS = 0.8
"""Two texts of an author with at least this Jaccard index of their words are near copies."""
COMPARED_TEXTS = 50
"""How many earlier texts of its author a text is compared with: retries follow one another."""
SHUFFLES = 1999
"""The number of random orders that the p-values are computed from."""
TOO_FEW_AUTHORS = gettext_noop("There are fewer than 6 authors.")
TOO_FEW_ERRORS = gettext_noop("There are fewer than 30 confirmed errors.")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A group that may become a slice. rows: which tries belong to it. typicality: higher first."""

    rows: NDArray[np.bool_]
    typicality: Matrix
    name: str = ""
    value: str = ""


def find_slices(all_tries: Iterable[Try], seed: int = 1) -> SliceSearch:
    """Search slices among tries, oldest first; the clearest comes first.

    The same tries and seed give the same slices on one machine.
    """
    tries = drop_near_copies(all_tries)
    errors = np.array([one.is_error for one in tries], bool)
    error_count = int(errors.sum())
    is_second = _split_authors(tries, seed)
    authors = {one.author for one in tries}
    reason = ""
    if len(authors) < MIN_AUTHORS:
        reason = TOO_FEW_AUTHORS
    elif error_count < MIN_ERRORS:
        reason = TOO_FEW_ERRORS
    if reason:
        return SliceSearch((), len(tries), error_count, reason)
    vectors = build_word_vectors([one.words for one in tries], seed)
    candidates = [
        *_group_by_values(tries),
        *_group_by_vectors(vectors, errors & ~is_second, seed),
    ]
    chosen_candidates = _choose_candidates(candidates, errors, is_second)
    p_values = _compute_p_values(
        [candidate.rows[is_second] for candidate in chosen_candidates],
        errors[is_second],
        [one.author for one, second in zip(tries, is_second, strict=True) if second],
        seed,
    )
    slices = [
        _describe_slice(candidate, p_value, tries, errors, is_second, len(chosen_candidates))
        for candidate, p_value in zip(chosen_candidates, p_values, strict=True)
    ]
    slices.sort(key=lambda one: one.p_value)
    return SliceSearch(tuple(slices), len(tries), error_count)


def drop_near_copies(tries: Iterable[Try]) -> list[Try]:
    """Return the tries without near copies of an earlier text of the same author.

    Writers change a sentence until the model errs. All but the first of such a chain would count
    one idea many times.
    """
    kept_tries = []
    texts_by_author: defaultdict[Hashable, list[frozenset[str]]] = defaultdict(list)
    for one in tries:
        earlier_texts = texts_by_author[one.author][-COMPARED_TEXTS:]
        texts_by_author[one.author].append(one.words)
        # Copies are compared with, too, or a long chain of small changes would count twice.
        if not any(_are_near_copies(one.words, words) for words in earlier_texts):
            kept_tries.append(one)
    return kept_tries


def _are_near_copies(first: frozenset[str], second: frozenset[str]) -> bool:
    # Two texts without words are copies, too.
    return first == second or compute_overlap(first, second) >= COPY_LIKENESS


def _split_authors(tries: Sequence[Try], seed: int) -> NDArray[np.bool_]:
    """Return for each try whether its author is in the second half.

    In random order, each author joins the half with fewer errors so far, so that both can be used.
    """
    counts: Counter[Hashable] = Counter()
    for one in tries:
        counts[one.author] += 1 + 1000 * one.is_error
    authors = sorted(counts, key=str)
    random.Random(seed).shuffle(authors)
    sizes = [0, 0]
    second_authors = set()
    # Large authors first, or the last one could be as large as all others; the sort keeps the
    # random order among equals.
    for author in sorted(authors, key=lambda one: -counts[one]):
        half = int(sizes[1] < sizes[0])
        sizes[half] += counts[author]
        if half:
            second_authors.add(author)
    return np.array([one.author in second_authors for one in tries], bool)


def _group_by_values(tries: Sequence[Try]) -> list[_Candidate]:
    """Return a candidate for each declared value."""
    pairs: set[tuple[str, str]] = set()
    for one in tries:
        pairs.update(one.values.items())
    # No text has more of a value than another one, so the oldest errors are shown.
    same_typicality = np.zeros(len(tries))
    return [
        _Candidate(
            np.array([one.values.get(name) == value for one in tries], bool),
            same_typicality,
            name,
            value,
        )
        for name, value in sorted(pairs)
    ]


def _group_by_vectors(
    vectors: Matrix, first_errors: NDArray[np.bool_], seed: int
) -> list[_Candidate]:
    """Return a candidate for each group of near errors of the first half.

    A try belongs to the group with the nearest centre. first_errors: which tries are errors of the
    first half.
    """
    candidates = []
    for group_count in GROUP_COUNTS:
        # Two groups are always tried: the search needs enough errors for that to begin at all.
        if group_count > 2 and first_errors.sum() < group_count * MIN_ERRORS_PER_GROUP:
            break
        centres = find_centres(vectors[first_errors], group_count, seed)
        if len(centres) < 2:
            break
        cosines = vectors @ centres.T
        nearest = cosines.argmax(axis=1)
        for group in range(len(centres)):
            candidates.append(_Candidate(nearest == group, cosines[:, group]))
    return candidates


def _choose_candidates(
    candidates: Sequence[_Candidate], errors: NDArray[np.bool_], is_second: NDArray[np.bool_]
) -> list[_Candidate]:
    """Return the candidates with clearly more errors than the rest of the first half.

    Only the number of tries is read from the second half.
    """
    first, scored_candidates = ~is_second, []
    for candidate in candidates:
        inside, outside = candidate.rows & first, ~candidate.rows & first
        # In both halves: a rate of the second half has to have an interval of use.
        sizes = inside.sum(), outside.sum(), (candidate.rows & is_second).sum()
        if min(sizes) < MIN_SLICE_TRIES or not (~candidate.rows & is_second).any():
            continue
        inner_rate, outer_rate = errors[inside].mean(), errors[outside].mean()
        if inner_rate > outer_rate:
            # The standard error of a difference of two equal shares, so that small groups with a
            # lucky rate don't come first.
            rate = errors[first].mean()
            spread = sqrt(rate * (1 - rate) * (1 / sizes[0] + 1 / sizes[1]))
            scored_candidates.append(((inner_rate - outer_rate) / spread, candidate))
    scored_candidates.sort(key=lambda pair: -pair[0])
    chosen_candidates: list[_Candidate] = []
    for _score, candidate in scored_candidates:
        if len(chosen_candidates) == MAX_SLICES:
            break
        if not any(_overlap(candidate.rows, chosen.rows) for chosen in chosen_candidates):
            chosen_candidates.append(candidate)
    return chosen_candidates


def _overlap(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> bool:
    """Return whether two groups have more than half of the smaller one in common."""
    return bool(2 * (first & second).sum() > min(first.sum(), second.sum()))


def _compute_p_values(
    slice_rows: Sequence[NDArray[np.bool_]],
    errors: NDArray[np.bool_],
    authors: Sequence[Hashable],
    seed: int,
) -> list[float]:
    """Return each slice's p-value, corrected for all slices.

    Errors are exchanged at random among the texts of each author, so that a skilled author's
    favourite subject is no weak spot. The statistic is that of Mantel and Haenszel 1959; the
    largest one of all slices in each random order corrects them (Westfall and Young 1993).
    """
    if not slice_rows:
        return []
    author_numbers = np.unique([str(author) for author in authors], return_inverse=True)[1]
    inside = np.array(slice_rows, float)
    sizes = np.bincount(author_numbers).astype(float)
    error_counts = np.bincount(author_numbers, errors)
    slice_counts = np.array([np.bincount(author_numbers, row) for row in inside])
    expected = slice_counts @ (error_counts / sizes)
    # The variance of the hypergeometric distribution; an author's only text has none.
    spreads = error_counts * (sizes - error_counts) / (sizes**2 * np.maximum(1, sizes - 1))
    variance = (slice_counts * (sizes - slice_counts)) @ spreads
    scale = np.sqrt(np.maximum(variance, 1e-12))
    observed = (inside @ errors - expected) / scale
    # A random key within each author's block exchanges the errors of that author only.
    order_by_author = np.argsort(author_numbers, kind="stable")
    generator = np.random.default_rng(seed)
    exceeded = np.ones(len(slice_rows))
    for _shuffle in range(SHUFFLES):
        keys = generator.random(len(errors))
        shuffled_order = np.lexsort((keys, author_numbers))
        shuffled_errors = np.empty(len(errors))
        shuffled_errors[order_by_author] = errors[shuffled_order]
        largest = ((inside @ shuffled_errors - expected) / scale).max()
        # Rounding must not make equal statistics differ.
        exceeded += largest >= observed - 1e-9
    return [float(count) / (SHUFFLES + 1) for count in exceeded]


def _describe_slice(
    candidate: _Candidate,
    p_value: float,
    tries: Sequence[Try],
    errors: NDArray[np.bool_],
    is_second: NDArray[np.bool_],
    slice_count: int,
) -> Slice:
    words: tuple[str, ...] = ()
    if not candidate.name:
        words = find_typical_words(tries, candidate.rows)
    # Bonferroni: all intervals together miss as seldom as one of 95 % would.
    confidence = 1 - FAMILY_LEVEL / slice_count
    error_rows = np.flatnonzero(candidate.rows & is_second & errors)
    typical_rows = error_rows[np.argsort(-candidate.typicality[error_rows], kind="stable")]
    return Slice(
        words,
        candidate.name,
        candidate.value,
        _compute_error_rate(tries, candidate.rows & is_second, confidence),
        _compute_error_rate(tries, ~candidate.rows & is_second, confidence),
        p_value,
        tuple(tries[row].key for row in typical_rows.tolist()),
    )


def _compute_error_rate(
    tries: Sequence[Try], rows: NDArray[np.bool_], confidence: float
) -> Rate | Undefined:
    """Return the share of errors among the tries in these rows, clustered by author."""
    counts: defaultdict[Hashable, list[int]] = defaultdict(lambda: [0, 0])
    for row in np.flatnonzero(rows).tolist():
        one = tries[row]
        counts[one.author][0] += one.is_error
        counts[one.author][1] += 1
    clusters = [(errors, total) for errors, total in counts.values()]
    return compute_clustered_rate(clusters, confidence=confidence)


def find_typical_words(tries: Sequence[Try], rows: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the words that set a group's texts apart from all others, the clearest first.

    Log odds with a Dirichlet prior from all texts, in standard errors: Monroe, Colaresi and Quinn
    2008, equation 22. Only words above the 95 % point are returned, at most MAX_WORDS_SHOWN.
    """
    inside_counts: Counter[str] = Counter()
    outside_counts: Counter[str] = Counter()
    for one, is_inside in zip(tries, rows, strict=True):
        (inside_counts if is_inside else outside_counts).update(one.words)
    inside_total, outside_total = inside_counts.total(), outside_counts.total()
    total = inside_total + outside_total
    scores = []
    for word, inside_count in inside_counts.items():
        # A word of two texts would seem typical of nearly every group.
        if inside_count < 3:
            continue
        outside_count = outside_counts[word]
        # The prior counts as much as one text in ten, and at least half a word.
        prior = max(0.5, (inside_count + outside_count) / 10)
        prior_total = max(1.0, total / 10)
        difference = _compute_log_odds(
            inside_count + prior, inside_total + prior_total
        ) - _compute_log_odds(outside_count + prior, outside_total + prior_total)
        spread = sqrt(1 / (inside_count + prior) + 1 / (outside_count + prior))
        scores.append((difference / spread, word))
    scores.sort(key=lambda pair: (-pair[0], pair[1]))
    return tuple(word for score, word in scores[:MAX_WORDS_SHOWN] if score > 1.96)


def _compute_log_odds(count: float, total: float) -> float:
    return log(count / max(1e-9, total - count))
