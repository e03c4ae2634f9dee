"""Rows under weights: as the plain formulas have them, for all models at once."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.board.matrix import DRAW_COUNT
from leaderboard.board.means import MAX_CACHED, compute_means
from leaderboard.board.pairs import compute_critical_value, find_significant_pairs
from leaderboard.board.ranked import describe_moves, rank_board
from leaderboard.ranking import dynascore
from leaderboard.ranking.ranks import ALPHA
from leaderboard.ranking.weights import SET_WEIGHT, Weighting, WeightsError
from tests.support.matrices import METRICS, chance_matrix, over_datasets

WEIGHTS = {"accuracy": 4.0, "throughput": 1.0, "memory": 1.0, "fairness": 1.0, "robustness": 1.0}
RATES = {"accuracy": 1.0, "throughput": 3.0, "memory": 0.5, "fairness": 0.4, "robustness": 0.4}
weights = st.floats(0, 8).map(lambda weight: round(weight, 1))


def weighting(matrix, **metrics):
    return Weighting({**WEIGHTS, **metrics}, {one.name: SET_WEIGHT for one in matrix.counting_sets})


def tables(matrix, draw=None):
    """A board as `leaderboard.ranking.dynascore` reads it, set by set."""
    found = {}
    for place, one in enumerate(matrix.counting_sets):
        found[one.name] = {}
        for number, model in enumerate(matrix.models):
            row = dict(zip(METRICS, matrix.numbers.values[number, place].tolist(), strict=True))
            if draw is not None:
                of_draw = matrix.numbers.draws[place, :, number, draw].tolist()
                row |= dict(zip(matrix.drawn_metrics, of_draw, strict=True))
            found[one.name][str(model.id)] = row
    return found


def shown(rows):
    return {str(row.model.id): row.dynascore.value for row in rows}


@given(
    st.integers(0, 10**6),
    st.fixed_dictionaries(dict.fromkeys(METRICS, weights)).filter(lambda w: any(w.values())),
    st.lists(weights, min_size=3, max_size=3).filter(any),
    st.sampled_from(["robust", "classic"]),
)
def test_scores_are_those_of_the_formula(seed, of_metrics, of_sets, mode):
    matrix = chance_matrix(sets=3, seed=seed, rates=RATES)
    sets = dict(zip([one.name for one in matrix.sets], of_sets, strict=True))
    found = rank_board(matrix, Weighting(of_metrics, sets), mode)
    rule = dynascore.Rule(mode=mode, weights=of_metrics, main="accuracy")
    table = over_datasets(tables(matrix), sets)
    rates = (
        dynascore.Rates(RATES, ())
        if mode == "robust"
        else dynascore.compute_exchange_rates(rule, table, {})
    )
    expected = {row.model: row.dynascore for row in dynascore.score_models(rule, table, rates)}
    assert shown(found.rows) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mode", ["robust", "classic"])
def test_intervals_are_those_of_the_whole_pipeline(mode):
    matrix = chance_matrix(models=6, seed=3, rates=RATES, spread=4)
    sets = {"round-1": 5.0, "round-2": 2.0}
    found = rank_board(matrix, Weighting(WEIGHTS, sets), mode)
    rule = dynascore.Rule(mode=mode, weights=WEIGHTS, main="accuracy")
    draws = [over_datasets(tables(matrix, draw), sets) for draw in range(DRAW_COUNT)]
    table = over_datasets(tables(matrix), sets)
    rates = dynascore.Rates(RATES, ()) if mode == "robust" else None
    expected = dynascore.resample_scores(rule, table, draws, rates)
    for row in found.rows:
        interval = expected[str(row.model.id)]
        # The formula counts the table itself as one more draw.
        assert row.dynascore.low == pytest.approx(interval.low, abs=0.3)
        assert row.dynascore.high == pytest.approx(interval.high, abs=0.3)


def test_without_frozen_rates_those_of_the_board_serve_and_it_says_so():
    matrix = chance_matrix(models=6, seed=1)
    found = rank_board(matrix, weighting(matrix))
    assert {*found.rates.pool} <= {model.name for model in matrix.models}
    frozen = rank_board(
        dataclasses.replace(matrix, frozen=chance_matrix(rates=RATES).frozen), found.weighting
    )
    assert {*found.notices} - {*frozen.notices}
    assert frozen.rates.pool == ("Model 0",)


def test_what_is_not_run_comes_last_and_says_why():
    matrix = chance_matrix(
        models=5,
        rates=RATES,
        missing=[(0, 1, metric) for metric in METRICS] + [(1, 0, "fairness"), (2, 1, "memory")],
    )
    matrix.numbers.runners[2, 1] = "endpoint"
    matrix.numbers.outdated[0, 1] = True
    found = rank_board(matrix, weighting(matrix)).rows
    told = {row.model.name: row.missing for row in found}
    assert [note.split()[0] for note in told["Model 0"]] == ["round-2"]
    assert told["Model 1"] == ("fairness",)
    assert told["Model 2"] == ("memory (measured by endpoint)",)
    assert told["Model 3"] == told["Model 4"] == ()
    assert [bool(row.rank) for row in found] == [True, True, False, False, False]
    assert [row.dynascore.value is None for row in found] == [False, False, True, True, True]
    assert found[2].first is found[2].last is None
    assert next(row for row in found if row.model.name == "Model 1").metrics["accuracy"].value
    # What has no weight is not missed.
    light = rank_board(matrix, weighting(matrix, memory=0.0, fairness=0.0)).rows
    assert [row.model.name for row in light if not row.rank] == ["Model 0"]
    one = Weighting(WEIGHTS, {"round-1": 1.0, "round-2": 0.0})
    assert [row.model.name for row in rank_board(matrix, one).rows if not row.rank] == ["Model 1"]


def test_a_metric_that_nobody_has_is_left_out_and_named():
    missing = [(model, one, "fairness") for model in range(4) for one in range(2)]
    matrix = chance_matrix(models=4, missing=missing)
    found = rank_board(matrix, weighting(matrix))
    assert all(row.rank for row in found.rows)
    assert [n.split()[0] for n in found.notices if "fairness" in n] == ["fairness"]
    assert not any(
        "fairness" in n for n in rank_board(matrix, weighting(matrix, fairness=0.0)).notices
    )
    frozen = chance_matrix(models=4, missing=missing, rates={**RATES, "fairness": None})
    assert any(n.startswith("fairness ") for n in rank_board(frozen, weighting(frozen)).notices)


def test_a_sensitive_pool_is_told():
    matrix = chance_matrix(rates=RATES, is_sensitive=True)
    assert "different order" in " ".join(rank_board(matrix, weighting(matrix)).notices)
    assert "different order" not in " ".join(
        rank_board(matrix, weighting(matrix), "classic").notices
    )


def test_boards_without_sets_or_models_have_no_scores():
    matrix = chance_matrix(models=3, sets=0)
    assert [row.rank for row in rank_board(matrix, weighting(matrix)).rows] == ["", "", ""]
    assert rank_board(chance_matrix(models=0), weighting(chance_matrix(models=0))).rows == ()
    one = rank_board(chance_matrix(models=1), weighting(chance_matrix(models=1))).rows
    assert [(row.rank, row.first, row.last) for row in one] == [("1", 1, 1)]


def test_weights_that_are_all_zero_are_refused():
    matrix = chance_matrix()
    with pytest.raises(WeightsError) as refused:
        rank_board(matrix, Weighting(dict.fromkeys(METRICS, 0.0), {"round-1": 1.0}))
    assert {*refused.value.fields} == {f"w_{name}" for name in METRICS}
    with pytest.raises(WeightsError) as refused:
        rank_board(matrix, Weighting(WEIGHTS, {"round-1": 0.0, "round-2": 0.0}))
    assert refused.value.fields == ("d_round-1", "d_round-2")


def test_models_written_against_are_marked_on_weighted_sets():
    matrix = chance_matrix(rates=RATES)
    matrix.numbers.in_the_loop[1, 1] = True
    both, one = weighting(matrix), Weighting(WEIGHTS, {"round-1": 1.0, "round-2": 0.0})
    assert [r.in_the_loop for r in rank_board(matrix, both).rows if r.in_the_loop] == [("round-2",)]
    assert not any(row.in_the_loop for row in rank_board(matrix, one).rows)


def naive(values, draws, examples):
    """Holm's steps one by one, over all pairs."""
    count, freedom = len(values), draws.shape[1] - 1
    tests = []
    for one in range(count):
        for other in range(count):
            lead = values[one] - values[other]
            if (one != other and lead > 0) or (lead == 0 and one < other):
                error = np.var(draws[one] - draws[other], ddof=1)
                tests.append((lead**2 / error if error else np.inf * (lead > 0), one, other))
    tests.sort(reverse=True)
    better = set()
    for step, (square, one, other) in enumerate(tests):
        if min(
            square, compute_critical_value(2.0 ** (1 - examples), freedom)
        ) < compute_critical_value(ALPHA / (len(tests) - step), freedom):
            break
        better.add((one, other))
    return better


@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(0.1, 6), st.integers(3, 59))
def test_sure_pairs_are_those_of_holms_steps(seed, count, spread, examples):
    chance = np.random.default_rng(seed)
    values = 70 + spread * chance.standard_normal(count)
    noise = chance.standard_normal((1, DRAW_COUNT)) + 0.5 * chance.standard_normal(
        (count, DRAW_COUNT)
    )
    draws = (values[:, None] + noise).astype(np.float32)
    sure = find_significant_pairs(values, draws, examples)
    assert {*map(tuple, np.argwhere(sure).tolist())} == naive(values, draws, examples)


def test_equal_models_are_rarely_told_apart_and_a_better_one_is_found():
    chance = np.random.default_rng(5)
    false = found = 0
    boards, count = 300, 20

    def noise(width):
        shared, own = chance.standard_normal((1, width)), chance.standard_normal((count, width))
        return shared + 0.5 * own

    for _ in range(boards):
        values = 70 + noise(1)[:, 0]
        draws = (values[:, None] + noise(DRAW_COUNT)).astype(np.float32)
        false += bool(find_significant_pairs(values, draws, 1000).any())
        values[7] += 5
        found += find_significant_pairs(values, draws, 1000)[7].sum() == count - 1
    assert false / boards <= 0.07  # 0.05, and chance
    assert found / boards > 0.9


def test_models_with_the_same_answers_share_their_rank():
    matrix = chance_matrix(models=3, rates=RATES, spread=30)
    for numbers in (matrix.numbers.values, matrix.numbers.draws.swapaxes(0, 2)):
        numbers[1] = numbers[0]
    found = {row.model.name: row.rank for row in rank_board(matrix, weighting(matrix)).rows}
    assert found["Model 0"] == found["Model 1"]
    assert found["Model 0"].endswith("=")


def test_few_examples_leave_the_order_open():
    values, draws = (
        np.array([100.0, 0.0]),
        np.array([[100.0] * DRAW_COUNT, [0.0] * DRAW_COUNT], np.float32),
    )
    assert find_significant_pairs(values, draws, 1000)[0, 1]
    assert not find_significant_pairs(values, draws, 5).any()
    assert not find_significant_pairs(values, draws, 0).any()


def test_a_dominated_model_more_changes_no_score_and_no_order():
    matrix = chance_matrix(models=6, rates=RATES)
    fewer = dataclasses.replace(
        matrix,
        models=matrix.models[:5],
        numbers=dataclasses.replace(
            matrix.numbers,
            values=matrix.numbers.values[:5],
            low=matrix.numbers.low[:5],
            high=matrix.numbers.high[:5],
            draws=matrix.numbers.draws[:, :, :5],
        ),
    )
    before = shown(rank_board(fewer, weighting(matrix)).rows)
    after = shown(rank_board(matrix, weighting(matrix)).rows)
    assert {key: after[key] for key in before} == before


def test_numbers_of_too_few_examples_have_no_interval_and_so_has_the_score():
    matrix = chance_matrix(rates=RATES)
    place = METRICS.index("fairness")
    for ends in (matrix.numbers.low, matrix.numbers.high):
        ends[2, 1, place] = np.nan
    found = {row.model_index: row for row in rank_board(matrix, weighting(matrix)).rows}
    for at, row in found.items():
        intervals = [row.metrics["fairness"], row.dynascore]
        assert all((cell.low is None) == (at == 2) for cell in intervals)
        assert row.metrics["accuracy"].low is not None
    without = Weighting({**weighting(matrix).metrics, "fairness": 0.0}, weighting(matrix).sets)
    rows = {row.model_index: row for row in rank_board(matrix, without).rows}
    assert rows[2].dynascore.low is not None


def test_a_board_says_that_results_are_new():
    matrix = chance_matrix(rates=RATES)
    before = rank_board(matrix, weighting(matrix)).notices
    new = dataclasses.replace(
        matrix, numbers=dataclasses.replace(matrix.numbers, is_provisional=True)
    )
    (told,) = {*rank_board(new, weighting(new)).notices} - {*before}
    assert "provisional" in told


def test_what_moved_is_told():
    matrix = chance_matrix(models=6, rates=RATES, spread=30)
    matrix.numbers.values[..., 1] = -matrix.numbers.values[..., 0]
    speed = Weighting({**dict.fromkeys(METRICS, 0.0), "throughput": 1.0}, weighting(matrix).sets)
    before, after = rank_board(matrix, weighting(matrix)), rank_board(matrix, speed)
    told = describe_moves(before, after)
    ranks = {row.model.name: (row.rank_number,) for row in before.rows}
    for row in after.rows:
        ranks[row.model.name] += (row.rank_number,)
    sentences = [
        f"{name} moved from rank {a} to rank {b}." for name, (a, b) in ranks.items() if a != b
    ]
    assert len(sentences) > 3
    assert {*told[:3]} < {*sentences}
    (rest,) = told[3:]
    assert str(len(sentences) - 3) in rest
    assert len(describe_moves(before, before)) == 1


def test_means_over_sets_are_weighted():
    matrix = chance_matrix(models=2)
    means = compute_means(matrix, {"round-1": 6.0, "round-2": 2.0})
    expected = 0.75 * matrix.numbers.values[:, 0] + 0.25 * matrix.numbers.values[:, 1]
    assert means.values == pytest.approx(expected)
    assert means.sets == (0, 1)
    assert means.draws == pytest.approx(
        0.75 * matrix.numbers.draws[0] + 0.25 * matrix.numbers.draws[1], rel=1e-5
    )


def test_what_was_asked_before_is_kept_until_something_is_another():
    matrix = chance_matrix(models=6, rates=RATES)
    first = rank_board(matrix, weighting(matrix))
    assert rank_board(dataclasses.replace(matrix), weighting(matrix)) is first
    assert rank_board(matrix, weighting(matrix, memory=2.0)) is not first
    assert rank_board(matrix, weighting(matrix), "classic") is not first
    renamed = (matrix.models[0]._replace(name="Renamed"), *matrix.models[1:])
    again = rank_board(dataclasses.replace(matrix, models=renamed), weighting(matrix))
    assert "Renamed" in {row.model.name for row in again.rows}
    thawed = dataclasses.replace(matrix, frozen=None)
    assert rank_board(thawed, weighting(matrix)).notices
    for number in range(40):
        rank_board(matrix, weighting(matrix, memory=number / 10))
    assert len(matrix.numbers.memo) <= MAX_CACHED
