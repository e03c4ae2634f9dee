"""The anchored board: as the command scores, whatever other models there are."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.board.cells import BoardScore
from leaderboard.board.query import read_request
from leaderboard.board.ranked import rank_board
from leaderboard.board.tables import describe_anchors as page_anchors
from leaderboard.ranking.anchored import compute_anchors, score_on_anchors
from leaderboard.ranking.formula import SCALE_TERM, SENTENCE, describe_formula
from leaderboard.ranking.weights import SET_WEIGHT, Weighting, WeightsError
from tasks.config.schema import DETAIL_COLUMNS
from tests.support.matrices import METRICS, POOL, chance_matrix

WEIGHTS = {"accuracy": 4.0, "throughput": 1.0, "memory": 1.0, "fairness": 1.0, "robustness": 1.0}


def weighting(matrix):
    return Weighting(WEIGHTS, {one.name: SET_WEIGHT for one in matrix.counting_sets})


def anchored(**options):
    return dataclasses.replace(chance_matrix(**options), pool=POOL)


def test_an_anchored_board_scores_as_the_command_does():
    matrix = anchored(models=4)
    found = rank_board(matrix, weighting(matrix))
    assert (found.mode, matrix.modes[0]) == ("anchored", "anchored")
    table = {
        row.model.name: {name: cell.value for name, cell in row.metrics.items()}
        for row in found.rows
    }
    anchors = compute_anchors(POOL.rows, "accuracy", METRICS)
    expected = {one.model: one.dynascore for one in score_on_anchors(anchors, WEIGHTS, table)}
    for row in found.rows:
        assert row.dynascore.value == pytest.approx(expected[row.model.name])
        assert sum(row.points_by_metric.values()) == pytest.approx(row.dynascore.value)
        assert 0 <= row.dynascore.low <= row.dynascore.value <= row.dynascore.high <= 100


COLUMNS = (*METRICS, *(name for names in DETAIL_COLUMNS.values() for name in names))
BY_MODEL = ("values", "low", "high", "n", "in_the_loop", "warned", "outdated", "kept_back",
            "runners")  # fmt: skip


def part(matrix, places):
    """The board with only those models."""
    numbers = matrix.numbers
    kept = {name: getattr(numbers, name)[places] for name in BY_MODEL}
    kept["draws"] = numbers.draws[:, :, places]
    return dataclasses.replace(
        matrix,
        models=tuple(matrix.models[place] for place in places),
        numbers=dataclasses.replace(numbers, **kept),
    )


def by_chance(seed, models=6):
    """A board with each column, of models that vary more or less; a set may be too small for some.

    Some models lack a number.
    """
    chance = np.random.default_rng(seed)
    board = anchored(models=models, seed=seed, metrics=COLUMNS, spread=chance.choice([0, 1, 10]))
    numbers = board.numbers
    middle = numbers.draws.mean(axis=-1, keepdims=True)
    numbers.draws[:] = middle + chance.choice([0.1, 1, 10], models)[:, None] * (
        numbers.draws - middle
    )
    numbers.values[chance.random(numbers.values.shape) < 0.03] = np.nan
    for name in ("fairness", "robustness"):
        column = COLUMNS.index(name)
        numbers.undefined[:, column] = chance.random(len(board.sets)) < 0.3
        numbers.values[:, numbers.undefined[:, column], column] = np.nan
    return board


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 5))
def test_no_further_model_changes_a_score_or_the_order(seed, count):
    board = by_chance(seed)
    few = part(board, [*range(count)])

    def scores(some):
        return [
            (row.model.name, row.dynascore)
            for row in rank_board(some, weighting(some)).rows
            if row.model_index < count
        ]

    assert scores(few) == scores(board)


@given(seeds)
def test_a_model_no_better_in_anything_never_ranks_above(seed):
    board = by_chance(seed)
    values, chance = board.numbers.values, np.random.default_rng(seed)
    less = chance.choice([0.0, 0.01, 5.0], values[0].shape)
    less[:, COLUMNS.index("memory")] *= -1
    values[1] = values[0] - less
    ranks = {row.model_index: row.rank_number for row in rank_board(board, weighting(board)).rows}
    assert (ranks[0] or 0) <= (ranks[1] or 0)


@given(seeds, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_of_speed_and_memory_do_not_matter(seed, speed, memory):
    units = {"throughput": speed, "latency_p95": 1 / speed, "memory": memory, "memory_mean": memory}
    board = by_chance(seed)
    expected = [
        (row.model_index, row.dynascore) for row in rank_board(board, weighting(board)).rows
    ]
    board.numbers.memo.clear()
    for name, unit in units.items():
        board.numbers.values[..., COLUMNS.index(name)] *= unit
    pool = {
        model: {name: value * units.get(name, 1) for name, value in row.items()}
        for model, row in POOL.rows.items()
    }
    other = dataclasses.replace(board, pool=dataclasses.replace(POOL, rows=pool))
    found = [(row.model_index, row.dynascore) for row in rank_board(other, weighting(other)).rows]
    assert [place for place, _ in found] == [place for place, _ in expected]
    for (_, one), (_, another) in zip(found, expected, strict=True):
        assert one == pytest.approx(another, abs=1e-4)


@given(seeds)
def test_what_only_says_more_of_a_metric_never_counts(seed):
    board = by_chance(seed)
    expected = [
        (row.model_index, row.dynascore) for row in rank_board(board, weighting(board)).rows
    ]
    board.numbers.memo.clear()
    board.numbers.values[..., len(METRICS) :] = -board.numbers.values[..., len(METRICS) :]
    found = [(row.model_index, row.dynascore) for row in rank_board(board, weighting(board)).rows]
    assert found == expected


def test_what_was_not_measured_leaves_a_range_and_no_main_metric_no_score():
    matrix = anchored(models=3, spread=0, missing=[(0, 0, "memory"), (1, 0, "accuracy")])
    board = rank_board(matrix, weighting(matrix))
    found = {row.model_index: row for row in board.rows}
    score, share = found[0].dynascore, 0.125
    quality = found[0].points_by_metric["accuracy"] / 0.5
    assert ("memory" in found[0].points_by_metric, found[0].missing[0].partition(" ")[0]) == (
        False,
        "memory",
    )
    assert (score.value, score.is_range, found[0].rank_number) == (None, True, None)
    assert score.least == pytest.approx(sum(found[0].points_by_metric.values()))
    assert score.most == pytest.approx(score.least + share * quality)
    assert score.low < score.least < score.most < score.high
    assert (found[0].first, found[0].last) == (1, 2)
    assert found[0].rank == "1–2"
    assert (found[1].rank, found[1].dynascore, found[1].points_by_metric) == (
        "",
        BoardScore(None),
        {},
    )
    assert (found[2].missing, found[2].dynascore.is_range) == ((), False)
    assert sum("range" in notice for notice in board.notices) == 1
    whole = anchored(models=3)
    assert not any("range" in one for one in rank_board(whole, weighting(whole)).notices)


def test_a_model_that_was_measured_less_never_stands_as_surely_better_or_worse():
    """Uploaded predictions are not below a model of less accuracy that was measured wholly."""
    costs = ("throughput", "memory", "robustness")
    matrix = anchored(models=2, missing=[(0, one, name) for one in (0, 1) for name in costs])
    accuracy = METRICS.index("accuracy")
    matrix.numbers.values[..., accuracy] = [[80.8], [79.6]]
    matrix.numbers.draws[:, 0] += (
        matrix.numbers.values[..., accuracy].T[..., None]
        - matrix.numbers.draws[:, 0].mean(axis=-1, keepdims=True)
    ).astype(np.float32)
    found = {row.model_index: row for row in rank_board(matrix, weighting(matrix)).rows}
    assert found[0].dynascore.least < found[1].dynascore.value < found[0].dynascore.most
    assert [(row.first, row.last) for row in found.values()] == [(1, 2), (1, 2)]
    assert {row.rank for row in found.values()} == {"1–2", "1"}


@given(seeds)
def test_the_range_and_the_ranks_hold_whatever_the_missing_numbers_are(seed):
    board, chance = by_chance(seed), np.random.default_rng(seed)
    before = {row.model_index: row for row in rank_board(board, weighting(board)).rows}
    values, main = board.numbers.values, METRICS.index("accuracy")
    lacking = np.isnan(values) & ~board.numbers.undefined
    lacking[..., main] = False
    places = [COLUMNS.index(name) for name in ("throughput", "memory", "fairness", "robustness")]
    low, high = np.array([10, 1, 50, 50]), np.array([400, 16, 100, 100])
    for place, least, most in zip(places, low, high, strict=True):
        some = lacking[..., place]
        values[..., place][some] = chance.choice([least, most, (least + most) / 2], some.sum())
    board.numbers.memo.clear()
    after = {row.model_index: row for row in rank_board(board, weighting(board)).rows}
    for place, row in before.items():
        now = after[place].dynascore
        if row.dynascore.is_range:
            assert row.dynascore.least - 1e-6 <= now.value <= row.dynascore.most + 1e-6
        else:
            assert row.dynascore.value == now.value


def test_a_board_without_a_pool_is_not_anchored():
    matrix = chance_matrix()
    assert matrix.modes == ("robust", "classic")
    assert rank_board(matrix, weighting(matrix)).mode == "robust"
    with pytest.raises(WeightsError):
        read_request({"mode": ["anchored"]}, weighting(matrix), matrix.modes)


def test_the_formula_names_each_share_and_anchor():
    matrix = anchored()
    board = rank_board(matrix, weighting(matrix))
    told = describe_formula(WEIGHTS, "accuracy", page_anchors(matrix, board))
    for part in ("0.5 +", "0.125 × memory", "accuracy from 50 to 100", "memory from 40 to 1"):
        assert part in told
    assert describe_formula(WEIGHTS, "accuracy", None) == ""


def test_the_formula_is_said_in_another_language():
    matrix = anchored()
    board = rank_board(matrix, weighting(matrix))
    catalogue = {
        SENTENCE: "%(places)s; %(main)s; %(shares)s; %(version)s",
        SCALE_TERM: "%(metric)s: %(low)s bis %(high)s",
    }
    anchors = page_anchors(matrix, board)
    told = describe_formula(
        WEIGHTS, "accuracy", anchors, translate=catalogue.__getitem__, name_metric=str.upper
    )
    assert told.startswith("ACCURACY: 50 bis 100; ")
    assert "0.125 × MEMORY" in told
