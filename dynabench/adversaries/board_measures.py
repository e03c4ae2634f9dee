"""Measures of the board of adversaries, computed from counts and texts. Pure."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from annotation.rules.near_duplicates import compute_overlap
from core.text.words import split_runs
from validation.rates.rates import NORMAL_QUANTILE, compute_wilson_interval

MAX_COMPARED_TEXTS = 500
"""The maximum number of catches that are compared for novelty, the latest ones."""
MIN_WORD_CHARS = 4
"""Shorter words say little of what a text is about."""
MIN_NOVEL_TEXTS = 10
"""Of fewer texts the interval says too little: two have the same novelty, whatever they are."""
PASS_TRIES = 10
"""The number of tries for which the chance of a catch is shown."""


class Measured(NamedTuple):
    """A number with its 95% interval."""

    value: float
    low: float
    high: float


def compute_per_catch(calls: int, catches: int) -> Measured | None:
    """Return the calls per catch, with the inverse of Wilson's interval of the share.

    None without catches. An adversary may need several calls for one catch, and people one.
    """
    if not catches or calls < catches:
        return None
    # The more often a call succeeds, the fewer are needed, so the ends change places.
    low, high = compute_wilson_interval(catches, calls)
    return Measured(calls / catches, 1 / high, 1 / low)


def compute_pass_chance(tries: int, catches: int, k: int = PASS_TRIES) -> Measured | None:
    """Return the chance that at least one of k tries is a catch (0-1).

    The value is the share of all choices of k tries with a catch among them (Chen et al. 2021,
    pass@k). The interval is that of one try by Wilson, raised to k tries. None with fewer than k
    tries.

    >>> compute_pass_chance(4, 2, k=1).value
    0.5
    """
    if tries < k:
        return None
    chance_of_none = 1.0
    for number in range(k):
        chance_of_none *= max(0, tries - catches - number) / (tries - number)
    low, high = (1 - (1 - end) ** k for end in compute_wilson_interval(catches, tries))
    value = 1 - chance_of_none
    # Drawn without repetition the value may be a little beyond the ends, which assume it.
    return Measured(value, min(low, value), max(high, value))


def compute_novelty(texts: Sequence[str]) -> Measured | None:
    """Return how different the texts are from one another (0-1).

    None for fewer than MIN_NOVEL_TEXTS.

    For each text: the share of words that it does not have in common with the most similar other
    one (1 minus Jaccard's index of their words). The mean of these shares is returned, with the
    interval of a mean.

    >>> compute_novelty(["a b", "a c"] * 5).value
    0.0
    """
    word_sets = [frozenset(split_runs(text.lower())) for text in texts[-MAX_COMPARED_TEXTS:]]
    if len(word_sets) < MIN_NOVEL_TEXTS:
        return None
    # Each against each: at most MAX_COMPARED_TEXTS squared, which takes less than a second.
    novelties = []
    for position, words in enumerate(word_sets):
        likeness = 0.0
        for other_position, other_words in enumerate(word_sets):
            if other_position != position:
                likeness = max(likeness, compute_overlap(words, other_words))
        novelties.append(1 - likeness)
    mean = fmean(novelties)
    half = NORMAL_QUANTILE * stdev(novelties) / sqrt(len(novelties))
    return Measured(mean, max(0.0, mean - half), min(1.0, mean + half))


def collect_content_words(texts: Sequence[str]) -> frozenset[str]:
    """Return the distinct words of the texts, without short ones."""
    # By runs of letters, so that languages without spaces have words, too.
    words: set[str] = set()
    for text in texts:
        words.update(split_runs(text.lower()))
    return frozenset(word for word in words if len(word) >= MIN_WORD_CHARS)


def compute_coverage(texts: Sequence[str], all_words: frozenset[str]) -> float | None:
    """Return the share of all rows' words that these texts have (0-1); None without words.

    >>> compute_coverage(["Slow service."], frozenset(["slow", "service", "cold", "soup"]))
    0.5
    """
    if not all_words or not texts:
        return None
    return len(collect_content_words(texts) & all_words) / len(all_words)
