"""Dynascore: what holds of every board."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leaderboard.ranking.dynascore import (
    MEMORY_BUDGET,
    WEIGHTS,
    Rule,
    compute_exchange_rates,
    find_order_changing_models,
    score_models,
)
from tests.support.score_tables import CLASSIC, METRICS, scores, table

# Whole numbers, so that a tie is a tie and nothing hangs on the last bit.
row = st.tuples(
    st.integers(0, 100),
    st.integers(0, 60),
    st.integers(0, 40),
    st.integers(0, 100),
    st.integers(0, 100),
)
boards = st.lists(row, min_size=1, max_size=8).map(
    lambda rows: table({f"m{n}": line for n, line in enumerate(rows)})
)
weights = st.fixed_dictionaries({m: st.integers(0, 8) for m in METRICS}).filter(
    lambda given: any(given.values())
)
modes = st.sampled_from(["classic", "robust"])


@given(boards, weights, modes, st.randoms())
def test_the_order_of_models_never_matters(rows, given_weights, mode, chance):
    rule = Rule(mode, given_weights)
    names = [*rows]
    chance.shuffle(names)
    mixed = {name: rows[name] for name in names}
    assert compute_exchange_rates(rule, mixed) == compute_exchange_rates(rule, rows)
    assert score_models(rule, mixed, compute_exchange_rates(rule, mixed)) == score_models(
        rule, rows, compute_exchange_rates(rule, rows)
    )
    assert find_order_changing_models(rule, mixed) == find_order_changing_models(rule, rows)


@given(boards, weights, st.integers(0, 7), st.tuples(*[st.integers(0, 30)] * 5))
def test_a_dominated_model_changes_nothing_under_robust(rows, given_weights, which, less):
    """Not the order, nor even the scores; nor does a copy (nothing less)."""
    assume(which < len(rows))
    rule = Rule("robust", given_weights)
    above = rows[f"m{which}"]
    signs = {"memory": 1}  # of which more is worse
    worse = {m: above[m] + signs.get(m, -1) * step for m, step in zip(METRICS, less, strict=True)}
    more = {"new": worse} | rows
    rates = compute_exchange_rates(rule, rows)
    assert compute_exchange_rates(rule, more).values == rates.values
    found = score_models(rule, more, compute_exchange_rates(rule, more))
    alone = score_models(rule, rows, rates)
    assert [(r.model, r.dynascore) for r in found if r.model != "new"] == [
        (r.model, r.dynascore) for r in alone
    ]
    if which and f"m{which}" not in rates.pool:
        fewer = {model: line for model, line in rows.items() if model != f"m{which}"}
        assert compute_exchange_rates(rule, fewer) == rates


@given(boards, row, weights, modes)
def test_the_order_of_the_others_stays_under_frozen_rates(rows, new, given_weights, mode):
    rule = Rule(mode, given_weights)
    rates = compute_exchange_rates(rule, rows)
    found = score_models(rule, rows | table({"new": new}), rates)
    alone = score_models(rule, rows, rates)
    assert [(r.model, r.dynascore) for r in found if r.model != "new"] == [
        (r.model, r.dynascore) for r in alone
    ]


@given(boards, weights, modes, st.sampled_from([0.001, 0.3, 7, 1e6]))
def test_weights_scale_freely(rows, given_weights, mode, factor):
    rule = Rule(mode, given_weights)
    scaled = Rule(mode, {metric: weight * factor for metric, weight in given_weights.items()})
    rates = compute_exchange_rates(rule, rows)
    assert compute_exchange_rates(scaled, rows) == rates
    found, other = score_models(rule, rows, rates), score_models(scaled, rows, rates)
    assert {r.model: r.rank for r in found} == {r.model: r.rank for r in other}
    assert {r.model: r.dynascore for r in found} == pytest.approx(
        {r.model: r.dynascore for r in other}
    )


@given(boards, weights, modes)
def test_every_score_is_a_number_and_ranks_follow_it(rows, given_weights, mode):
    rule = Rule(mode, given_weights)
    rates = compute_exchange_rates(rule, rows)
    assert all(rate is None or 0 < rate < math.inf for rate in rates.values.values())
    found = [r for r in score_models(rule, rows, rates) if r.rank is not None]
    assert all(math.isfinite(r.dynascore) for r in found)
    for number, (above, below) in enumerate(pairwise(found), 2):
        assert below.rank in (above.rank, number)
        assert (below.rank == number) == (above.dynascore > below.dynascore + 1e-9)
    assert not found or found[0].rank == 1


def published(rows: dict[str, tuple[float, ...]]) -> dict[str, float]:
    """The published steps, word by word, for boards without ties or constants."""
    good = [[x if k != 2 else MEMORY_BUDGET - x for k, x in enumerate(r)] for r in rows.values()]
    order = sorted(good)
    cut = 1e-4 * max(row[0] for row in good)
    kept = [(a, b) for a, b in pairwise(order) if abs(b[0] - a[0]) > cut]
    rates = [
        abs(sum(abs(b[k] - a[k]) / (b[0] - a[0]) for a, b in kept) / len(kept)) for k in range(5)
    ]
    shares = [weight / 8 for weight in WEIGHTS.values()]
    return {
        model: sum(w * x / r for w, x, r in zip(shares, line, rates, strict=True))
        for model, line in zip(rows, good, strict=True)
    }


@given(
    st.lists(row, min_size=2, max_size=8, unique_by=tuple(lambda r, k=k: r[k] for k in range(5)))
)
def test_classic_is_the_published_formula(lines):
    rows = {f"m{n}": line for n, line in enumerate(lines)}
    assert scores(CLASSIC, table(rows)) == pytest.approx(published(rows))
