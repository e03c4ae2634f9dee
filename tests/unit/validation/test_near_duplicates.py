"""Near-duplicates: what counts as the same, how well it is found, and that it never changes."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.near_duplicates import (
    BANDS,
    PERMUTATIONS,
    band_keys,
    estimated_jaccard,
    grams,
    jaccard,
    normalise,
    signature,
)

TEXT = "The soup came cold and the waiter was kind enough to bring us another bowl."


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("  It's  GREAT!! ", "it s great"),
        ("Straße", "STRASSE"),
        ("ﬁne １２", "fine 12"),
        ("a\tb\nc\u00a0d", "a b c d"),
        ("in\u200bvisible", "invisible"),
        ("это-хорошо", "Это хорошо"),
    ],
)
def test_what_counts_as_the_same(text, same):
    assert normalise(text) == normalise(same)
    assert signature(text) == signature(same)


def test_what_does_not():
    assert normalise("I love it 😀") != normalise("I love it 😡")
    assert normalise("nicht") != normalise("night")


def test_grams():
    assert grams("Abcdef") == {"abcde", "bcdef"}
    assert grams("Hi") == {"hi"}
    assert grams("?!") == grams("") == set()


def test_nothing_is_like_nothing():
    assert signature("...") == ()
    assert band_keys(()) == []
    assert estimated_jaccard((), signature(TEXT)) == 0
    assert jaccard("", "") == 0


def test_jaccard_by_hand():
    assert jaccard("abcdef", "abcdeg") == pytest.approx(1 / 3)
    assert jaccard("abc", "ABC.") == 1


@given(st.text(min_size=1))
def test_signatures_and_keys_have_their_shapes(text):
    found = signature(text)
    assert len(found) in (0, PERMUTATIONS)
    assert all(0 <= value < 2**32 for value in found)
    keys = band_keys(found)
    assert len(keys) == (BANDS if found else 0)
    assert all(0 <= key < 2**63 for key in keys)
    assert estimated_jaccard(found, found) == (1 if found else 0)


def test_the_estimate_is_near_the_truth_without_bias():
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghij", k=6)) for _ in range(400)]
    errors = []
    for changed in range(1, 40):
        text = draw.sample(words, 40)
        other = text[changed:] + draw.sample(words, changed)
        first, second = " ".join(text), " ".join(other)
        errors.append(
            estimated_jaccard(signature(first), signature(second)) - jaccard(first, second)
        )
    assert abs(sum(errors) / len(errors)) < 0.03
    assert max(map(abs, errors)) < 0.25


def test_near_copies_share_a_key_and_other_texts_do_not():
    copy = TEXT.replace("another bowl", "another bowl soon").upper()
    other = "A dog that sleeps all day long under the old oak tree in the garden."
    assert jaccard(TEXT, copy) > 0.8
    assert set(band_keys(signature(TEXT))) & set(band_keys(signature(copy)))
    assert not set(band_keys(signature(TEXT))) & set(band_keys(signature(other)))


def test_keys_of_a_table_stay_valid_in_every_process():
    """A change here makes every stored key worthless."""
    assert signature(TEXT)[:2] == (5108673, 31178429)
    assert band_keys(signature(TEXT))[0] == 3992329078399084273
    code = f"from validation.near_duplicates import *; print(band_keys(signature({TEXT!r})))"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str(band_keys(signature(TEXT)))
