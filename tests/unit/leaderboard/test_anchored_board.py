"""The anchored board: as the command scores, whatever other models there are."""

import dataclasses

import pytest

from leaderboard.board.query import asked
from leaderboard.board.ranked import ranked
from leaderboard.board.tables import anchors_of as page_anchors
from leaderboard.scoring.anchored import anchors_of, scored
from leaderboard.scoring.formula import PLACE, SENTENCE, formula
from leaderboard.scoring.pools import Pool
from leaderboard.scoring.weights import OF_SET, Weighting, WeightsError
from tests.support.matrices import METRICS, chance_matrix

WEIGHTS = {"accuracy": 4.0, "throughput": 1.0, "memory": 1.0, "fairness": 1.0, "robustness": 1.0}

POOL = Pool(
    1,
    "accuracy",
    "docker",
    {
        "majority": {"accuracy": 50.0, "throughput": 900.0, "memory": 0.5, "fairness": 100.0,
                     "robustness": 100.0},
        "words": {"accuracy": 60.0, "throughput": 400.0, "memory": 1.0, "fairness": 50.0,
                  "robustness": 50.0},
        "encoder": {"accuracy": 80.0, "throughput": 10.0, "memory": 16.0, "fairness": 60.0,
                    "robustness": 60.0},
    },
)  # fmt: skip


def weighting(matrix):
    return Weighting(WEIGHTS, {one.name: OF_SET for one in matrix.counting})


def anchored(**options):
    return dataclasses.replace(chance_matrix(**options), pool=POOL)


def test_an_anchored_board_scores_as_the_command_does():
    matrix = anchored(models=4)
    found = ranked(matrix, weighting(matrix))
    assert (found.mode, matrix.modes[0]) == ("anchored", "anchored")
    table = {
        row.model.name: {name: cell.value for name, cell in row.metrics.items()}
        for row in found.rows
    }
    anchors = anchors_of(POOL.rows, "accuracy", METRICS)
    expected = {one.model: one.dynascore for one in scored(anchors, WEIGHTS, table)}
    for row in found.rows:
        assert row.dynascore.value == pytest.approx(expected[row.model.name])
        assert sum(row.parts.values()) == pytest.approx(row.dynascore.value)
        assert 0 <= row.dynascore.low <= row.dynascore.value <= row.dynascore.high <= 100


def test_no_further_model_changes_a_score_of_an_anchored_board():
    matrix = anchored(models=6)
    kept = dataclasses.replace(
        matrix,
        models=matrix.models[:4],
        numbers=dataclasses.replace(
            matrix.numbers,
            **{
                name: getattr(matrix.numbers, name)[:4]
                for name in ("values", "low", "high", "n", "in_the_loop", "warned", "outdated",
                             "kept_back", "runners")
            },
            draws=matrix.numbers.draws[:, :, :4],
        ),
    )  # fmt: skip

    def scores(some):
        return {row.model.name: row.dynascore for row in ranked(some, weighting(some)).rows}

    assert scores(kept).items() <= scores(matrix).items()


def test_what_is_not_run_adds_nothing_to_an_anchored_score():
    matrix = anchored(models=3, missing=[(0, 0, "memory"), (1, 0, "accuracy")])
    found = {row.place: row for row in ranked(matrix, weighting(matrix)).rows}
    assert (found[0].parts["memory"], found[0].missing[0].partition(" ")[0]) == (0, "memory")
    assert found[0].rank
    assert (found[1].rank, found[1].dynascore.value, found[1].parts) == ("", None, {})
    assert found[2].missing == ()


def test_a_board_without_a_pool_is_not_anchored():
    matrix = chance_matrix()
    assert matrix.modes == ("robust", "classic")
    assert ranked(matrix, weighting(matrix)).mode == "robust"
    with pytest.raises(WeightsError):
        asked({"mode": ["anchored"]}, weighting(matrix), matrix.modes)


def test_the_formula_names_each_share_and_anchor():
    matrix = anchored()
    board = ranked(matrix, weighting(matrix))
    told = formula(WEIGHTS, "accuracy", page_anchors(matrix, board))
    for part in ("0.5 +", "0.125 × memory", "accuracy from 50 to 100", "memory from 16 to 1"):
        assert part in told
    assert formula(WEIGHTS, "accuracy", None) == ""


def test_the_formula_is_said_in_another_language():
    matrix = anchored()
    board = ranked(matrix, weighting(matrix))
    catalogue = {
        SENTENCE: "%(places)s; %(main)s; %(shares)s; %(version)s",
        PLACE: "%(metric)s: %(low)s bis %(high)s",
    }
    anchors = page_anchors(matrix, board)
    told = formula(WEIGHTS, "accuracy", anchors, say=catalogue.__getitem__, words=str.upper)
    assert told.startswith("ACCURACY: 50 bis 100; ")
    assert "0.125 × MEMORY" in told
