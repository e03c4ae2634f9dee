"""How often an interval of 95 % holds the known strength of a simulated model."""

import pytest

from leaderboard.arena.ranking import rank_models
from tests.support.arenas import ranked, simulated, styled

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


EFFECTS = (0.5, -0.3, 0.0, 0.2)


@pytest.mark.parametrize(
    ("strengths", "voters", "each", "tie", "alike"),
    [
        ((0.8, 0.0, -0.8), 30, 30, -1.0, 0.5),
        ((1.5, 0.9, 0.3, -0.3, -0.9, -1.5), 60, 20, None, 0.5),
    ],
)
def test_intervals_with_style_held_constant(strengths, voters, each, tie, alike):
    held, effects_held = 0, 0
    for run in range(RUNS):
        votes, style = styled(
            run, strengths, EFFECTS, voters=voters, each=each, tie=tie, alike=alike
        )
        found = rank_models(len(strengths), votes, style=style, seed=run, draws=200)
        held += sum(
            one.low <= known <= one.high
            for one, known in zip(found.strengths, strengths, strict=True)
        )
        effects_held += sum(
            low <= known <= high for (_, low, high), known in zip(found.style, EFFECTS, strict=True)
        )
    shares = held / RUNS / len(strengths), effects_held / RUNS / len(EFFECTS)
    print(f"{len(strengths)} models, {voters} voters, {tie}, {alike}: {shares}")
    assert all(0.93 <= share <= 0.97 for share in shares)


@pytest.mark.parametrize(
    ("strengths", "voters", "each", "answers", "alike"),
    [
        ((0.8, 0.0, -0.8), 20, 20, 3, 0.5),
        ((1.5, 0.9, 0.3, -0.3, -0.9, -1.5), 60, 10, 4, 0.5),
        ((1.5, 0.9, 0.3, -0.3, -0.9, -1.5), 40, 10, 5, 0.0),
    ],
)
def test_intervals_from_rankings(strengths, voters, each, answers, alike):
    held = 0
    for run in range(RUNS):
        _, votes = ranked(run, strengths, voters=voters, each=each, answers=answers, alike=alike)
        found = rank_models(len(strengths), votes, seed=run, draws=200).strengths
        held += sum(
            one.low <= known <= one.high for one, known in zip(found, strengths, strict=True)
        )
    share = held / RUNS / len(strengths)
    print(f"{len(strengths)} models, {voters} voters, {answers} answers, {alike}: {share:.3f}")
    assert 0.93 <= share <= 0.97
