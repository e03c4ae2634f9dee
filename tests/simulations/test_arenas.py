"""How often an interval of 95 % holds the known strength of a simulated model."""

import pytest

from leaderboard.arena.ranking import rank_models
from tests.support.arenas import simulated

RUNS = 400


@pytest.mark.parametrize(
    ("strengths", "voters", "each", "tie", "alike"),
    [
        ((0.8, 0.0, -0.8), 20, 20, -1.0, 0.5),
        ((1.5, 0.9, 0.3, -0.3, -0.9, -1.5), 60, 20, -1.0, 0.5),
        ((1.5, 0.9, 0.3, -0.3, -0.9, -1.5), 60, 20, None, 0.0),
        ((1.5, 0.9, 0.3, -0.3, -0.9, -1.5), 30, 30, 0.0, 0.8),
    ],
)
def test_intervals_of_strengths(strengths, voters, each, tie, alike):
    held = 0
    for run in range(RUNS):
        votes = simulated(run, strengths, voters=voters, each=each, tie=tie, alike=alike)
        found = rank_models(len(strengths), votes, seed=run, draws=200).strengths
        held += sum(
            one.low <= known <= one.high for one, known in zip(found, strengths, strict=True)
        )
    share = held / RUNS / len(strengths)
    print(f"{len(strengths)} models, {voters} voters, {tie}, {alike}: {share:.3f}")
    assert 0.93 <= share <= 0.97
