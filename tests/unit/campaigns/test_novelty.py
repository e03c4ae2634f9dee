"""What was found before is worth less."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.campaigns.rules.meaning import (
    BLOCK_ROWS,
    MIN_COSINE,
    find_closest_cosines,
    find_similar_pairs,
)
from dynabench.campaigns.rules.novelty import (
    MEANING_BOUNDS,
    WORD_BOUNDS,
    cluster_examples,
    score_novelty,
)

SHARES = st.floats(0, 1)


def test_groups_share_keys_directly_or_over_others():
    keys = {5: {99}, 1: {10, 11}, 3: {12}, 2: {11, 12}, 4: set()}
    assert cluster_examples(keys) == [[1, 2, 3], [4], [5]]
    assert cluster_examples(keys, [(4, 5), (3, 2)]) == [[1, 2, 3], [4, 5]]
    assert cluster_examples({}) == []
    assert cluster_examples({one: {one // 2} for one in range(10_000)})[0] == [
        0,
        1,
    ]  # no pairs of pairs


@given(SHARES, SHARES, SHARES)
def test_the_liker_the_less_down_to_nothing_for_a_copy(words, meaning, more):
    found = score_novelty(words, meaning)
    assert found in [tenth / 10 for tenth in range(11)]
    assert (
        score_novelty(max(words, more), meaning)
        <= found
        >= score_novelty(words, max(meaning, more))
    )
    assert score_novelty(1.0, meaning) == score_novelty(words, 1.0) == 0
    assert score_novelty(min(words, WORD_BOUNDS[0]), min(meaning, MEANING_BOUNDS[0])) == 1


def vectors(number, seed=0):
    made = np.random.default_rng(seed).integers(-127, 128, (number, 384), np.int8)
    return {3 * at + 1: row.tobytes() for at, row in enumerate(made)}


def test_a_copy_is_worth_nothing_and_half_a_likeness_a_half():
    assert [score_novelty(*one) for one in ((0.4, 0.3), (0.7,), (0.2, 0.85), (1.0,))] == [
        1,
        0.5,
        0.5,
        0,
    ]


def test_the_closest_of_those_before():
    some = vectors(5) | {40: vectors(5)[4]}
    found = find_closest_cosines(some, [1, 4, 40, 99])
    assert found.keys() == {1, 4, 40}
    assert (found[1], found[40]) == (0.0, 1.0)
    a, b = (np.frombuffer(some[one], np.int8).astype(float) for one in (1, 4))
    exactly = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
    assert found[4] == pytest.approx(max(0, exactly), abs=1e-12)
    opposite = bytes(np.negative(np.frombuffer(some[1], np.int8)))
    assert find_closest_cosines({1: some[1], 2: opposite}, [2]) == {2: 0.0}
    assert find_closest_cosines({}, [1]) == {}


def test_all_pairs_that_are_alike_also_over_blocks():
    some = vectors(BLOCK_ROWS + 5)
    ids = sorted(some)
    some[ids[-1]], some[ids[1]] = some[ids[0]], some[ids[2]]
    some |= {10_000: bytes([3, 2, 1, 1, 1, *[0] * 379]), 10_001: bytes([3, 4, *[0] * 382])}
    assert find_closest_cosines(some, [10_001])[10_001] == MIN_COSINE
    assert list(find_similar_pairs(some)) == [(ids[0], ids[-1]), (ids[1], ids[2]), (10_000, 10_001)]
    assert list(find_similar_pairs({})) == []
