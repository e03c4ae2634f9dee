"""Compare languages: are a set's examples in one of them harder for models of the same ability?

Pure. If a set has an example and its translation, every model answers both, so its ability and the
example's content cancel. What is left is the language, or a bad translation. Examples that have no
translations differ in more than their language, so their comparison says less.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from evaluation.scoring.corrections import adjust_by_holm
from evaluation.scoring.ruler.drift import FALSE_SHARE, MEDIAN_OF_NORMAL, select_by_false_share
from evaluation.scoring.ruler.prediction import MIN_WHOLE_MODELS, Floats

MIN_LANGUAGE_ITEMS = 10
"""The fewest examples, or pairs of translations, by which a language is compared."""
LEVEL = 0.95
Answers = NDArray[np.bool_]
Places = NDArray[np.intp]


class WhyNotCompared(StrEnum):
    """Why the languages of a set can't be compared."""

    ONE_LANGUAGE = "one_language"
    TOO_FEW_ITEMS = "too_few_items"
    TOO_FEW_MODELS = "too_few_models"  # versions of one model count once


class IncomparableLanguages(ValueError):
    """Raised if languages can't be compared."""

    def __init__(self, reason: WhyNotCompared) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True)
class LanguageShift:
    """How much easier (above 0) or harder a language's examples are than those of the reference.

    item_count, pair_count: of the language's examples, and of those with a translation in the
    reference language. pair_count is 0 if they are compared with other examples. shift, low, high:
    of the logit of a right answer, with a 95% interval. right_share, reference_share: of all
    answers to what is compared (0-1). p_value: adjusted for all languages of the set.
    """

    language: str
    reference: str
    item_count: int
    pair_count: int
    right_share: float
    reference_share: float
    shift: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class LanguageComparison:
    """The languages of a set, and how each item differs from its translation (NaN: it has none)."""

    shifts: tuple[LanguageShift, ...]
    item_shifts: Floats
    """The change of the logit of a right answer from the reference language to this item."""
    item_errors: Floats
    is_flagged: NDArray[np.bool_]
    """Which items differ more than their language does, if at most 5 % of the flags are false."""


def name_translation_key(uid: str, language: str) -> str:
    """Return the id without the language that it names, which is the same for translations.

    >>> [name_translation_key(*pair) for pair in (("q7-de", "de"), ("q7", "en"), ("x.fr.3", "fr"))]
    ['q7', 'q7', 'x.3']
    """
    tag = re.escape(language)
    # Whole words only: "made-up" isn't Spanish although it contains a language's letters.
    pattern = rf"^{tag}[-_./:#]|[-_./:#]{tag}(?=$|[-_./:#])"
    return re.sub(pattern, "", uid, flags=re.IGNORECASE) or uid


def compare_languages(
    is_right: Answers,
    languages: Sequence[str],
    uids: Sequence[str],
    main_language: str,
    whole_models: Sequence[str],
    intercepts: Floats,
) -> LanguageComparison:
    """Return how the languages of a set differ, those that are surest to differ first.

    Parameters
    ----------
    is_right
        One row for each model, one column for each item. Every model answered every item.
    languages, uids
        Of each item.
    main_language
        The one with which others are compared, if it has enough items. Otherwise that is the
        language with the most items.
    whole_models
        For each row the model that it is a version of.
    intercepts
        For each item the logit of a right answer of a model of ability 0 (`fit_items`).

    Raises
    ------
    IncomparableLanguages
        If there is one language, or too few items of a second one, or too few different models.

    Notes
    -----
    Translations: the conditional likelihood of matched pairs (Breslow and Day 1980, 7.2), whose
    strata are a model and an example. So neither the ability of the model nor what it knows of the
    example matters. Variance: clustered by example and by whole model (Cameron, Gelbach and Miller
    2011). Other examples: the difference of mean intercepts with Welch's standard error (1947).
    """
    sizes = _choose_languages(languages, whole_models)
    reference = main_language
    if reference not in sizes:
        # By name among equally many, so that no order of rows decides.
        reference = max(sorted(sizes), key=sizes.__getitem__)

    pairs_by_language = find_pairs(languages, uids, reference)
    places_by_language = {
        language: np.flatnonzero(np.array(languages) == language) for language in sizes
    }
    codes = np.unique(np.array(whole_models), return_inverse=True)[1]
    shifts: list[LanguageShift] = []
    # Three numbers an item: shift, standard error, p-value. NaN: it was compared with none.
    tests = np.full((3, len(uids)), np.nan)
    for language in sorted(set(sizes) - {reference}):
        pairs = pairs_by_language.get(language, ())
        if len(pairs) >= MIN_LANGUAGE_ITEMS:
            here, there = np.array(pairs, dtype=np.intp).T
            estimate = _pool_pairs(is_right[:, here], is_right[:, there], codes)
            tests[:, here] = _test_pairs(is_right[:, here], is_right[:, there], estimate.shift)
            pair_count = len(here)
        else:
            # Fewer pairs than that say less than all examples, although these aren't matched.
            here, there = places_by_language[language], places_by_language[reference]
            estimate = _compare_means(intercepts[here], intercepts[there])
            pair_count = 0
        reach = float(stdtrit(estimate.freedom, (1 + LEVEL) / 2)) * estimate.error
        shifts.append(
            LanguageShift(
                language, reference, sizes[language], pair_count,
                float(is_right[:, here].mean()), float(is_right[:, there].mean()),
                estimate.shift, estimate.shift - reach, estimate.shift + reach, estimate.p_value,
            )
        )  # fmt: skip
    # Over all languages at once, because people read one list of items.
    is_flagged = select_by_false_share(tests[2], FALSE_SHARE)
    return LanguageComparison(_adjust(shifts), tests[0], tests[1], is_flagged)


def _choose_languages(languages: Sequence[str], whole_models: Sequence[str]) -> Mapping[str, int]:
    """Return the languages that have enough items, with their numbers of items.

    Raises IncomparableLanguages.
    """
    counts = Counter(languages)
    if len(counts) < 2:
        raise IncomparableLanguages(WhyNotCompared.ONE_LANGUAGE)
    sizes = {name: count for name, count in counts.items() if count >= MIN_LANGUAGE_ITEMS}
    if len(sizes) < 2:
        raise IncomparableLanguages(WhyNotCompared.TOO_FEW_ITEMS)
    # The interval needs models that err independently, and versions of one model don't.
    if len(set(whole_models)) < MIN_WHOLE_MODELS:
        raise IncomparableLanguages(WhyNotCompared.TOO_FEW_MODELS)
    return sizes


def find_pairs(
    languages: Sequence[str], uids: Sequence[str], reference: str
) -> Mapping[str, Sequence[tuple[int, int]]]:
    """Return for each language the places of its items, each with that of its translation.

    Two items of one language with the same key are no translations, so neither is paired.
    """
    keys = [
        name_translation_key(uid, language) for uid, language in zip(uids, languages, strict=True)
    ]
    counts = Counter(zip(languages, keys, strict=True))
    place_by_key = {
        key: place
        for place, (language, key) in enumerate(zip(languages, keys, strict=True))
        if language == reference and counts[language, key] == 1
    }
    # An example without a counterpart in the reference language has nothing to be compared with.
    pairs: dict[str, list[tuple[int, int]]] = {}
    for place, (language, key) in enumerate(zip(languages, keys, strict=True)):
        if language != reference and counts[language, key] == 1 and key in place_by_key:
            pairs.setdefault(language, []).append((place, place_by_key[key]))
    return pairs


@dataclass(frozen=True)
class _Estimate:
    shift: float
    error: float
    freedom: float

    @property
    def p_value(self) -> float:
        return float(2 * stdtr(self.freedom, -abs(self.shift) / self.error))


def _pool_pairs(here: Answers, there: Answers, whole_models: Places) -> _Estimate:
    """Return the logarithm of the odds of pairs that a model has right in one language only."""
    gained, lost = here & ~there, there & ~here
    # Half a pair more of each kind keeps the logarithm finite if one kind never occurs.
    gained_count, lost_count = gained.sum() + 0.5, lost.sum() + 0.5
    # Sums over versions of one model: they resemble each other, so they count as one.
    order = np.argsort(whole_models, kind="stable")
    starts = np.flatnonzero(np.diff(whole_models[order], prepend=-1))
    gained_sums, lost_sums = (
        np.add.reduceat(kind[order], starts, axis=0, dtype=np.int64) for kind in (gained, lost)
    )
    influences = gained_sums / gained_count - lost_sums / lost_count
    model_count = len(influences)
    of_items, of_models = influences.sum(axis=0), influences.sum(axis=1)
    item_variance = np.sum(of_items**2) * len(of_items) / (len(of_items) - 1)
    model_variance = np.sum(of_models**2) * model_count / (model_count - 1)
    # The part that both clusterings count: pairs of one example and one whole model.
    both = item_variance + model_variance - np.sum(influences**2)
    # The difference can be too small by chance, but never less than one clustering alone.
    variance = max(item_variance, model_variance, both)
    freedom = min(len(of_items), model_count) - 1
    # Without any discordant pair the language says nothing: one half pair of each kind is left.
    variance = variance or 1 / gained_count + 1 / lost_count
    return _Estimate(float(np.log(gained_count / lost_count)), float(np.sqrt(variance)), freedom)


def _test_pairs(here: Answers, there: Answers, shift: float) -> Floats:
    """Return each item's shift, standard error, and p-value of differing from its language.

    A row for each of the three.
    """
    gained, lost = (here & ~there).sum(axis=0), (there & ~here).sum(axis=0)
    # Models that have both right or both wrong tell nothing (McNemar 1947).
    count = gained + lost
    tells = count > 0
    shifts = np.where(tells, np.log((gained + 0.5) / (lost + 0.5)), np.nan)
    errors = np.where(tells, np.sqrt(1 / (gained + 0.5) + 1 / (lost + 0.5)), np.nan)
    # A score test with Edwards' correction (1948): Wald's loses its power where one kind is rare.
    chance = 1 / (1 + np.exp(-shift))
    distance = np.maximum(np.abs(gained - count * chance) - 0.5, 0.0)
    statistics = distance / np.sqrt(np.where(tells, count * chance * (1 - chance), np.nan))
    spread = 1.0
    if tells.any():
        # As for drift: no two translations are equally hard, and what most items do is no fault.
        spread = max(1.0, float(np.nanmedian(statistics)) / MEDIAN_OF_NORMAL)
    return np.array([shifts, spread * errors, 2 * ndtr(-statistics / spread)])


def _compare_means(here: Floats, there: Floats) -> _Estimate:
    """Return the difference of two means, with Welch and Satterthwaite's degrees of freedom."""
    parts = np.array([values.var(ddof=1) / len(values) for values in (here, there)])
    # Equal values on both sides would divide by 0.
    variance = max(float(parts.sum()), 1e-12)
    sizes = np.array([len(here), len(there)])
    freedom = variance**2 / max(float(np.sum(parts**2 / (sizes - 1))), 1e-24)
    return _Estimate(float(here.mean() - there.mean()), variance**0.5, freedom)


def _adjust(shifts: Sequence[LanguageShift]) -> tuple[LanguageShift, ...]:
    """Return the shifts with p-values after Holm's correction, the smallest first."""
    # Holm's, not Benjamini and Hochberg's: a set has few languages, and each one is a claim.
    p_values = adjust_by_holm([shift.p_value for shift in shifts])
    adjusted = [
        replace(shift, p_value=p_value) for shift, p_value in zip(shifts, p_values, strict=True)
    ]
    return tuple(sorted(adjusted, key=lambda shift: (shift.p_value, shift.language)))
