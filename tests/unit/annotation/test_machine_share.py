"""The share of machine-written texts: the estimator, its interval, and when it says nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.rules.machine_share import (
    MIN_AUTHORS,
    Counts,
    LabelledCounts,
    SignalledText,
    count_by_author,
    estimate_machine_share,
    find_known_strata,
    measure_signal_rate,
)
from bench.machine_share import USELESS_CONDITIONS, draw_campaign, draw_study, simulate

STUDY = [
    # Sensitivity 0.8 and specificity 0.9, the same for each of 40 people.
    LabelledCounts({"none": Counts(10, 8)}, {"none": Counts(10, 1)})
    for _ in range(40)
]


def texts_by(authors, texts, marked, stratum="none"):
    """Counts of people with the same numbers of texts and of marked ones."""
    return [{stratum: Counts(texts, marked)} for _ in range(authors)]


def test_the_estimate_is_that_of_rogan_and_gladen():
    # (0.3 + 0.9 - 1) / (0.8 + 0.9 - 1)
    found = estimate_machine_share(texts_by(40, 10, 3), STUDY)
    assert found.share == pytest.approx(0.2 / 0.7)
    assert (found.texts, found.authors, found.unknown_texts, found.reason) == (400, 40, 0, "")


def test_the_interval_is_near_the_closed_form_for_independent_texts():
    """With one text per person the clustered bootstrap has the delta method's variance."""
    generator = np.random.default_rng(5)
    people, study_people = 4000, 3000
    marked = generator.random(people) < 0.3
    fired = generator.random((2, study_people)) < np.array([[0.8], [0.1]])
    study = [
        LabelledCounts({"none": Counts(1, float(machine))}, {"none": Counts(1, float(person))})
        for machine, person in fired.T
    ]
    found = estimate_machine_share([{"none": Counts(1, float(one))} for one in marked], study)
    a, b = fired.mean(axis=1)
    m, apart = marked.mean(), a - b
    share = (m - b) / apart
    # Greiner and Gardner (2000), Preventive Veterinary Medicine 45, who add the three variances.
    variance = (
        m * (1 - m) / people
        + share**2 * a * (1 - a) / study_people
        + (1 - share) ** 2 * b * (1 - b) / study_people
    ) / apart**2
    half = 1.959964 * np.sqrt(variance)
    assert found.share == pytest.approx(share)
    assert found.low == pytest.approx(share - half, abs=0.1 * half)
    assert found.high == pytest.approx(share + half, abs=0.1 * half)


def test_strata_count_by_their_numbers_of_texts():
    study = [
        LabelledCounts(
            {"none": Counts(10, 8), "ask": Counts(10, 5)},
            {"none": Counts(10, 1), "ask": Counts(10, 0)},
        )
        for _ in range(40)
    ]
    # Three quarters of the texts have the share 2/7, a quarter has 0.2.
    authors = [{"none": Counts(30, 9), "ask": Counts(10, 1)} for _ in range(40)]
    found = estimate_machine_share(authors, study)
    assert found.share == pytest.approx(0.75 * 2 / 7 + 0.25 * 0.2)


def test_texts_without_signals_widen_the_interval_by_all_they_may_be():
    known = texts_by(40, 30, 9)
    whole = estimate_machine_share(known, STUDY)
    part = estimate_machine_share(
        [{**author, "ask-untyped": Counts(10, 0)} for author in known], STUDY
    )
    assert part.unknown_texts == 400
    assert part.share == pytest.approx(whole.share)
    assert part.low == pytest.approx(0.75 * whole.low)
    assert part.high == pytest.approx(0.75 * whole.high + 0.25)


def test_no_share_is_stated_of_few_texts_or_people():
    assert estimate_machine_share(texts_by(MIN_AUTHORS - 1, 50, 10), STUDY).reason == "few"
    assert estimate_machine_share(texts_by(MIN_AUTHORS, 4, 1), STUDY).reason == "few"
    assert estimate_machine_share([], []).reason == "few"
    # Enough in all, but not of those whose error rates are known.
    unknown = texts_by(40, 10, 3, "hidden-untyped")
    assert estimate_machine_share([*unknown, *texts_by(5, 4, 1)], STUDY).reason == "few"


def test_without_a_study_the_error_rates_are_unknown():
    found = estimate_machine_share(texts_by(40, 10, 3), [])
    assert (found.reason, found.share, found.low) == ("no_rates", None, None)
    assert estimate_machine_share(texts_by(40, 10, 3), STUDY[: MIN_AUTHORS - 1]).share is None


def test_signals_that_the_study_cannot_produce_give_no_share():
    # People's own texts have a tenth of signals in the study, and these have none at all.
    assert estimate_machine_share(texts_by(60, 20, 0), STUDY).reason == "unfit"
    assert estimate_machine_share(texts_by(60, 20, 20), STUDY).reason == "unfit"


def test_signals_of_no_use_are_never_taken_for_useful_ones():
    generator = np.random.default_rng(1)
    for _ in range(40):
        study = draw_study(generator, USELESS_CONDITIONS)
        assert find_known_strata(study) == []
        authors = count_by_author(draw_campaign(generator, 0.3, USELESS_CONDITIONS))
        assert estimate_machine_share(authors, study).reason == "no_rates"


def test_weak_signals_give_a_wide_interval():
    weak = [
        LabelledCounts({"none": Counts(20, 7 + one % 3)}, {"none": Counts(20, 5 + one % 2)})
        for one in range(40)
    ]
    strong = estimate_machine_share(texts_by(40, 10, 3), STUDY)
    found = estimate_machine_share([{"none": Counts(10, 2 + one % 3)} for one in range(40)], weak)
    assert found.high - found.low > 3 * (strong.high - strong.low)


@pytest.mark.parametrize("true_share", [0.1, 0.35])
def test_the_interval_covers_the_true_share(true_share):
    """bench/machine_share.py has the full size; 150 campaigns vary by 1.8 points."""
    figures = simulate(true_share, 150, seed=3)
    assert figures["unstated"] == 0
    assert 0.89 <= figures["coverage95"] <= 1.0
    assert abs(figures["bias"]) < 0.015


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.floats(0, 1)), min_size=25, max_size=40),
    st.randoms(use_true_random=False),
)
def test_limits_are_shares_and_neither_order_nor_names_of_people_matter(rows, shuffler):
    authors = [{"none": Counts(texts, texts * rate)} for texts, rate in rows]
    found = estimate_machine_share(authors, STUDY)
    if found.share is not None:
        assert 0 <= found.low <= found.high <= 1
        assert 0 <= found.share <= 1
    texts = [
        SignalledText(number, "none", rate)
        for number, (n, rate) in enumerate(rows)
        for _ in range(n)
    ]
    shuffler.shuffle(texts)
    again = estimate_machine_share(count_by_author(texts), STUDY)
    assert (again.texts, again.authors, again.reason) == (
        found.texts, found.authors, again.reason,
    )  # fmt: skip
    if found.share is not None and again.share is not None:
        assert again.share == pytest.approx(found.share)


def test_a_rate_has_wilsons_interval_and_a_wider_one_for_clustered_texts():
    even = measure_signal_rate([Counts(1, one < 30) for one in range(100)])
    # Wilson's interval of 30 of 100.
    assert (even.rate, even.texts) == (0.3, 100)
    assert (even.low, even.high) == pytest.approx((0.2189, 0.3958), abs=0.001)
    clustered = measure_signal_rate([Counts(10, 10 * (one < 3)) for one in range(10)])
    assert clustered.rate == 0.3
    assert clustered.high - clustered.low > 2 * (even.high - even.low)
    none = measure_signal_rate([Counts(50, 0)])
    assert (none.low, none.high) == pytest.approx((0, 0.0713), abs=0.001)
