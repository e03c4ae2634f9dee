"""Languages of a set: planted shifts and bad translations, false alarms, pairs, and minimums."""

import numpy as np
import pytest

from evaluation.contract import SetRow
from evaluation.runs.item_languages import read_languages
from evaluation.scoring.ruler.languages import (
    MIN_LANGUAGE_ITEMS,
    IncomparableLanguages,
    WhyNotCompared,
    compare_languages,
    find_pairs,
    name_translation_key,
)

KEYS = 80


def simulate(seed, *, models=60, versions=1, shift=0.0, bad=0, keys=KEYS, is_paired=True):
    """Return the comparison of English and German examples.

    Models differ in what they know of each example, which matters to both languages. versions: of
    each model. shift: of the logit of all German examples. bad: how many translations are wrong.
    """
    random = np.random.default_rng(seed)
    whole = np.repeat(np.arange(models // versions), versions)
    knowledge = random.normal(0, 1, (models // versions, 1)) - random.normal(0, 1, keys)
    knowledge = knowledge + random.normal(0, 0.8, (models // versions, keys))
    english = knowledge[whole]
    # A model may know a language more or less than others do, and each translation differs a bit.
    german = english + shift + random.normal(0, 0.2, models // versions)[whole][:, None]
    german = german + random.normal(0, 0.3, keys)
    german[:, :bad] -= 3
    logits = np.hstack([english, german])
    is_right = random.random(logits.shape) < 1 / (1 + np.exp(-logits))
    prefix = "q" if is_paired else "r"
    uids = [f"q{key}" for key in range(keys)] + [f"{prefix}{key}-de" for key in range(keys)]
    languages = ["en"] * keys + ["de"] * keys
    intercepts = np.log((is_right.sum(axis=0) + 0.5) / ((~is_right).sum(axis=0) + 0.5))
    return compare_languages(
        is_right, languages, uids, "en", [f"m{place}" for place in whole], intercepts
    )


@pytest.mark.parametrize("versions", [1, 4])
def test_intervals_of_a_planted_shift_hold_and_find_it(versions):
    comparisons = [simulate(seed, shift=-0.5, versions=versions) for seed in range(60)]
    shifts = [comparison.shifts[0] for comparison in comparisons]
    assert np.mean([shift.shift for shift in shifts]) == pytest.approx(-0.5, abs=0.05)
    assert np.mean([shift.low <= -0.5 <= shift.high for shift in shifts]) >= 0.88
    assert np.mean([shift.p_value < 0.05 for shift in shifts]) > 0.95
    assert (shifts[0].language, shifts[0].reference, shifts[0].pair_count) == ("de", "en", KEYS)
    # Hard for models, so fewer are right there than on the same examples in English.
    assert shifts[0].right_share < shifts[0].reference_share


def test_equally_hard_languages_seldom_raise_an_alarm():
    comparisons = [simulate(seed) for seed in range(100)]
    assert np.mean([comparison.shifts[0].p_value < 0.05 for comparison in comparisons]) < 0.12
    assert np.mean([comparison.is_flagged.sum() for comparison in comparisons]) < 0.3


def test_bad_translations_are_found_whatever_the_language_loses():
    comparisons = [simulate(seed, models=120, shift=-0.4, bad=5) for seed in range(10)]
    flagged = np.array([comparison.is_flagged for comparison in comparisons])
    # The second half of the items is German, and its first five are bad.
    assert flagged[:, KEYS : KEYS + 5].mean() > 0.75
    assert flagged[:, KEYS + 5 :].sum(axis=1).mean() < 1.5
    assert not flagged[:, :KEYS].any()
    assert np.isnan(comparisons[0].item_shifts[:KEYS]).all()
    assert np.nanmean(comparisons[0].item_shifts[KEYS : KEYS + 5]) < -2


def test_examples_without_translations_are_compared_as_a_whole_only():
    comparison = simulate(1, shift=-1.5, is_paired=False)
    assert comparison.shifts[0].pair_count == 0
    assert comparison.shifts[0].high < 0
    assert np.isnan(comparison.item_shifts).all()
    assert not comparison.is_flagged.any()


def test_pairs_need_one_example_of_each_language():
    languages = ["en", "de", "fr", "en", "de", "de", "en"]
    uids = ["a.en", "a.de", "A.fr", "b", "b_de", "de_b", "c"]
    pairs = find_pairs(languages, uids, "en")
    # Two German ones share the key b; the French key is another one.
    assert pairs == {"de": [(1, 0)]}


@pytest.mark.parametrize(
    ("uid", "language", "key"),
    [
        ("q7-de", "de", "q7"),
        ("de/q7", "de", "q7"),
        ("x.pt-BR.7", "pt-BR", "x.7"),
        ("q7-DE", "de", "q7"),
        ("made-up", "de", "made-up"),
        ("de", "de", "de"),
        ("q(7)-zh", "zh", "q(7)"),
    ],
)
def test_an_id_without_its_language(uid, language, key):
    assert name_translation_key(uid, language) == key


@pytest.mark.parametrize(
    ("german_count", "model_count", "reason"),
    [
        (0, 20, WhyNotCompared.ONE_LANGUAGE),
        (MIN_LANGUAGE_ITEMS - 1, 20, WhyNotCompared.TOO_FEW_ITEMS),
        (MIN_LANGUAGE_ITEMS, 3, WhyNotCompared.TOO_FEW_MODELS),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_reason(german_count, model_count, reason):
    languages = ["en"] * 20 + ["de"] * german_count
    count = len(languages)
    whole = [f"m{place % model_count}" for place in range(20)]
    with pytest.raises(IncomparableLanguages) as refused:
        compare_languages(
            np.ones((20, count), dtype=bool), languages, [f"u{place}" for place in range(count)],
            "en", whole, np.zeros(count),
        )  # fmt: skip
    assert refused.value.reason == reason


def test_answers_that_are_all_right_say_nothing_of_a_language():
    count = 2 * MIN_LANGUAGE_ITEMS
    languages = ["en"] * MIN_LANGUAGE_ITEMS + ["de"] * MIN_LANGUAGE_ITEMS
    uids = [f"q{place % MIN_LANGUAGE_ITEMS}-{name}" for place, name in enumerate(languages)]
    comparison = compare_languages(
        np.ones((20, count), dtype=bool), languages, uids, "en",
        [f"m{place}" for place in range(20)], np.zeros(count),
    )  # fmt: skip
    shift = comparison.shifts[0]
    assert shift.low < 0 < shift.high
    assert shift.p_value == 1
    assert not comparison.is_flagged.any()


def test_the_reference_is_the_tasks_language_or_else_the_largest():
    random = np.random.default_rng(1)
    languages = ["en"] * 5 + ["de"] * 12 + ["fr"] * 15
    comparison = compare_languages(
        random.random((20, 32)) < 0.5, languages, [f"u{place}" for place in range(32)], "en",
        [f"m{place}" for place in range(20)], random.normal(size=32),
    )  # fmt: skip
    assert [(one.language, one.reference) for one in comparison.shifts] == [("de", "fr")]


def row(uid, inputs=None, **slices):
    named = {name: (value,) for name, value in slices.items()}
    return SetRow(uid, {"text": "a", **(inputs or {})}, ("b",), named)


def test_the_language_of_a_row_is_its_field_slice_or_tag():
    by_slice = [row("1", language="de"), row("2"), row("3", {"language": "fr"}, tag="news")]
    assert read_languages(by_slice, "en") == ["de", "en", "fr"]
    assert read_languages([row("1", tag="de"), row("2", tag="pt-BR")], "en") == ["de", "pt-BR"]
    # A tag that is no language means that tags mean something else.
    assert read_languages([row("1", tag="de"), row("2", tag="news")], "en") == ["en", "en"]
    several = SetRow("4", {}, ("b",), {"language": ("de", "fr")})
    assert read_languages([row("1", language="de"), several], "en") == ["de", "en"]
