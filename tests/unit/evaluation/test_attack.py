"""The pure parts of the attack on sealed sets: questions, guesses, bits, and the bound."""

import re
from pathlib import Path

import numpy as np
import pytest

from bench import guessing
from bench.guessing import (
    Guesser,
    calculate_right_share,
    compute_max_result_bits,
    compute_result_bits,
    compute_share_bits,
    list_stated_bounds,
)
from evaluation.test_sets.sealing import Disclosure, round_to_step

SIZE = 200


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_table_of_the_documents_is_what_the_rule_gives():
    section = Path("docs/evaluation.md").read_text(encoding="utf-8").partition("## Sealed sets")[2]
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| (\d+) \| (\d+) \|$", section, re.MULTILINE)
    stated = [[float(cell.replace(",", "")) for cell in row] for row in rows]
    bounds = list_stated_bounds([int(row[0]) for row in stated], ("a", "b"))
    assert len(stated) == 4
    for row, bound in zip(stated, bounds, strict=True):
        assert row == [bound["examples"], bound["step"], bound["results"], round(bound["bits"])]


def test_another_rule_than_the_stated_one_is_found(monkeypatch):
    monkeypatch.setattr("evaluation.test_sets.sealing.BITS_PER_EXAMPLE", 0.5)
    with pytest.raises(ValueError, match="200"):
        list_stated_bounds([SIZE], ("a", "b"))


def test_questions_differ_in_half_of_the_examples(rng):
    guesser = Guesser(SIZE, rng)
    questions = []
    for _ in range(5):
        questions.append(question := guesser.next_question())
        guesser.learn(question, 0.5)
    for number, one in enumerate(questions):
        assert one.sum() == SIZE / 2
        for other in questions[:number]:
            assert 0.4 < np.mean(one == other) < 0.6


@pytest.mark.parametrize(("results", "least"), [(5, 0.53), (100, 0.7), (190, 0.9)])
def test_labels_are_read_out_of_enough_results(rng, results, least):
    """Without a bound, as many results as examples would give nearly all labels away."""
    shares = []
    for _ in range(5):
        labels = rng.integers(0, 2, SIZE, dtype=np.int8)
        guesser = Guesser(SIZE, rng)
        for _ in range(results):
            question = guesser.next_question()
            guesser.learn(question, round_to_step(calculate_right_share(question, labels), SIZE))
        shares.append(calculate_right_share(guesser.guess(), labels))
    assert np.mean(shares) > least


def test_who_was_shown_nothing_guesses(rng):
    guess = Guesser(SIZE, rng).guess()
    assert 0.3 < guess.mean() < 0.7


def test_bits_of_a_share():
    assert compute_share_bits(0.4, SIZE) == compute_share_bits(0.5, SIZE) == 0
    assert compute_share_bits(1.0, SIZE) == SIZE
    assert compute_share_bits(0.79, SIZE) == pytest.approx(SIZE / 4, rel=0.05)


@pytest.mark.parametrize("size", [24, SIZE, 1000])
def test_no_result_tells_more_than_the_bound_counts(rng, size):
    alike = compute_result_bits(np.ones(size, dtype=np.int8), rng)
    most = compute_max_result_bits(size, rng)
    assert 1 < alike <= most <= Disclosure(size, ("a", "b")).bits


def test_macro_f1_is_that_of_the_site(rng):
    from sklearn.metrics import f1_score

    question, labels = rng.integers(0, 2, (2, SIZE), dtype=np.int8)
    (found,) = guessing._compute_macro_f1(labels[None, :], question)
    assert found == pytest.approx(f1_score(labels, question, average="macro"))
