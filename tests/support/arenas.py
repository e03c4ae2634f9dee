"""Comparisons of models whose strengths are known."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from leaderboard.arena.battles.breaking import break_ranking
from leaderboard.arena.ranking import LEFT, RIGHT, TIE, Votes
from leaderboard.arena.services import import_comparisons
from tasks.config.parsing import dump_yaml
from tasks.models import Task

OUTCOMES = {"left": LEFT, "right": RIGHT, "tie": TIE}


def votes_of(rows: Iterable[tuple[int, int, str, int]]) -> Votes:
    """Votes from rows of left, right, winner and voter."""
    left, right, winner, voter = zip(*rows, strict=True)
    return Votes(*map(np.array, (left, right, [OUTCOMES[one] for one in winner], voter)))


def simulated(
    seed: int,
    strengths: Sequence[float],
    *,
    voters: int,
    each: int,
    tie: float | None = -1.0,
    alike: float = 0.5,
) -> Votes:
    """Davidson's model, in which a voter repeats an earlier opinion of a pair.

    tie: the logarithm of a tie's weight; None: no ties. each: votes of a voter. alike: the chance
    that a vote is what the voter always says of this pair.
    """
    draw, known = np.random.default_rng(seed), np.array(strengths)
    count, size = len(known), voters * each
    voter, left = np.repeat(np.arange(voters), each), draw.integers(count, size=size)
    right = (left + draw.integers(1, count, size=size)) % count
    first, second = np.minimum(left, right), np.maximum(left, right)
    keys, opinion = np.unique((voter * count + first) * count + second, return_inverse=True)

    def outcomes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        half = (known[first] - known[second]) / 2
        ties = np.full(len(half), -np.inf if tie is None else tie)
        shares = np.exp(np.column_stack([half, -half, ties])).cumsum(axis=1)
        return (draw.random(len(half))[:, None] * shares[:, -1:] > shares).sum(axis=1)

    always = outcomes(keys // count % count, keys % count)[opinion]
    found = np.where(draw.random(size) < alike, always, outcomes(first, second))
    return Votes(left, right, np.where(found == TIE, TIE, found ^ (left > right)), voter)


def make_arena(code: str, **fields: Any) -> Task:
    """An arena that everybody may see."""
    text = dump_yaml({"version": 1, "kind": "arena", "name": code.capitalize()})
    return Task.objects.create(
        code=code, **{"name": code.capitalize(), "config_text": text, "is_visible": True} | fields
    )


def compare(task: Task, *rows: str) -> None:
    """Store comparisons, each written as "voter left right winner"."""
    known = task.comparisons.count()
    file = [",".join((str(known + n), *row.split())) for n, row in enumerate(rows)]
    lines = [f"{line}\n".encode() for line in ("id,worker,left,right,winner", *file)]
    import_comparisons(
        lines=lines, code=task.code, create=False, owner="", on_bad_line=lambda *bad: print(bad)
    )


def styled(
    seed: int,
    strengths: Sequence[float],
    effects: Sequence[float],
    *,
    voters: int,
    each: int,
    tie: float | None = -1.0,
    alike: float = 0.5,
) -> tuple[Votes, np.ndarray]:
    """Davidson's model with covariates: votes, and of each what the left has more of.

    Each model has a style of its own, about which its answers vary. alike: the chance that a vote
    falls by the same chance as the voter's other votes on this pair.
    """
    draw, count, size = np.random.default_rng(seed), len(strengths), voters * each
    voter, left = np.repeat(np.arange(voters), each), draw.integers(count, size=size)
    right = (left + draw.integers(1, count, size=size)) % count
    habits = draw.normal(0, 0.5, (count, len(effects)))
    style = habits[left] - habits[right] + draw.normal(0, 1, (size, len(effects)))
    always = draw.random((voters, count, count))
    first, second = np.minimum(left, right), np.maximum(left, right)
    chance = np.where(draw.random(size) < alike, always[voter, first, second], draw.random(size))
    chance = np.where(left > right, 1 - chance, chance)  # high for the same model
    known = np.array(strengths)
    half = (known[left] - known[right] + style @ np.array(effects)) / 2
    ties = np.full(size, -np.inf if tie is None else tie)
    shares = np.exp(np.column_stack([half, ties, -half])).cumsum(axis=1)
    outcome = (chance[:, None] * shares[:, -1:] > shares).sum(axis=1)
    return Votes(left, right, np.array([LEFT, TIE, RIGHT])[outcome], voter), style


def ranked(
    seed: int, strengths: Sequence[float], *, voters: int, each: int, answers: int, alike: float = 0
) -> tuple[list[list[int]], Votes]:
    """Rankings by Plackett and Luce's model, best first, and the votes that they break into.

    alike: the chance that a ranking falls by the same chance as the voter's other rankings.
    """
    draw, count = np.random.default_rng(seed), len(strengths)
    rankings, rows, weights = [], [], []
    for voter in range(voters):
        habit = draw.gumbel(size=count)
        for _ in range(each):
            shown = draw.permutation(count)[:answers]
            # The order of Gumbel noise on the strengths is a ranking of this model.
            noise = habit if draw.random() < alike else draw.gumbel(size=count)
            worth = np.array(strengths) + noise
            places = {str(model): int((worth[shown] > worth[model]).sum()) + 1 for model in shown}
            rankings.append(sorted(shown.tolist(), key=lambda model: places[str(model)]))
            for vote in break_ranking(places):
                rows.append((int(vote.first), int(vote.second), vote.winner, voter))
                weights.append(vote.weight)
    return rankings, votes_of(rows)._replace(weight=np.array(weights))
