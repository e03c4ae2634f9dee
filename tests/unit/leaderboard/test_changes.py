"""What changed between two snapshots."""

import copy

import pytest

from leaderboard.board.exports import have_same_values
from leaderboard.snapshots.diff import describe_changes


def row(key, rank, score=80.0):
    return {"id": key, "model": f"Model {key}", "rank": rank, "dynascore": {"value": score}}


TABLE = {
    "date": "2026-01-01",
    "code": "0.1 (a)",
    "mode": "robust",
    "rates": {"accuracy": 1.0, "memory": 0.5},
    "weights": {"metrics": {"accuracy": 4.0, "memory": 1.0}, "sets": {"round-1": 5.0}},
    "metrics": [{"name": "accuracy", "version": 1}],
    "sets": [{"name": "round-1", "version": 1, "access": "scoring"}],
    "rows": [row("a", "1"), row("b", "2="), row("c", "2="), row("d", "")],
}


def changed(**parts):
    return {**copy.deepcopy(TABLE), **parts}


def test_another_day_alone_is_no_change():
    assert have_same_values(TABLE, changed(date="2026-01-02", code="0.2 (b)"))
    assert not have_same_values(TABLE, changed(mode="classic"))
    assert len(describe_changes(TABLE, changed(date="2026-01-02"))) == 1


@pytest.mark.parametrize(
    ("parts", "sentences"),
    [
        ({"code": "0.2 (b)"}, ["The code changed from version 0.1 (a) to 0.2 (b)."]),
        (
            {"mode": "classic", "rates": {}},
            ["The Dynascore's mode changed from robust to classic."],
        ),
        (
            {"anchors": {"accuracy": [40, 100]}},
            ["The reference models changed, so every score changes."],
        ),
        ({"rates": {}}, ["The exchange rates changed, so every score changes."]),
        (
            {"weights": {"metrics": {"accuracy": 2.5, "f1": 1.0}, "sets": {"round-1": 0.0}}},
            [
                "The weight of accuracy changed from 4 to 2.5.",
                "The weight of f1 changed from 0 to 1.",
                "The weight of memory changed from 1 to 0.",
                "The weight of round-1 changed from 5 to 0.",
            ],
        ),
        (
            {"metrics": [{"name": "accuracy", "version": 2}, {"name": "f1", "version": 1}]},
            ["accuracy is computed differently: version 2, was 1."],
        ),
        (
            {
                "sets": [
                    {"name": "round-1", "version": 2, "access": "standard"},
                    {"name": "round-2", "version": 1, "access": "scoring"},
                ]
            },
            [
                "round-1 changed from v1 to v2.",
                "round-1 changed from scoring to standard.",
                "round-2 v1 is a new set.",
            ],
        ),
        ({"sets": []}, ["round-1 is no longer shown."]),
        (
            {"rows": [row("e", "1"), row("a", "2"), row("b", "2=", 79.0), row("d", "4")]},
            [
                "Model e is new, at rank 1.",
                "Model c was removed (was at rank 2=).",
                "Model a is now at rank 2 (was at rank 1).",
                "Model d is now at rank 4 (was not run).",
                "1 model has a new score at the same rank.",
            ],
        ),
        (
            {"rows": [row("a", "1", 1.0), row("b", "2=", 2.0), row("c", "2="), row("d", "")]},
            ["2 models have a new score at the same rank."],
        ),
    ],
)
def test_changes_are_told(parts, sentences):
    assert describe_changes(TABLE, changed(**parts)) == sentences


def test_of_many_models_some_are_named():
    told = describe_changes(
        TABLE, changed(rows=[*TABLE["rows"], *(row(f"n{k}", "9") for k in range(23))])
    )
    assert len(told) == 21
    assert told[-1] == "3 more are new."


def test_of_an_arena_the_models_and_their_votes_are_told():
    before = {"battles": 10, "models": [{"name": "a", "rank": 1}, {"name": "b", "rank": 2}]}
    now = [{"name": "b", "rank": 1}, {"name": "a", "rank": 1}, {"name": "c", "rank": None}]
    told = describe_changes(before, {"battles": 1500, "models": now})
    assert told == [
        "c is new, not run.",
        "b is now at rank 1 (was at rank 2).",
        "1,490 new comparisons.",
    ]
    assert len(describe_changes(before, before)) == 1
