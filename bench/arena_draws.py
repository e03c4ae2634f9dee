"""How many votes are saved where pairs are drawn by information and weighted back, and the bias.

    python -m bench.arena_draws            # 100 simulated arenas of each case, minutes
    python -m bench.arena_draws --quick    # 8
    python -m bench.arena_draws --json     # print one object

Voters are simulated. They repeat themselves, and in one case they follow no strengths. Each arena
is played twice, with pairs drawn by the product's rule and with equal chances. The target is the
fit to endless votes on pairs with equal chances. docs/statistics.md has the formula.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import django  # noqa: E402
import numpy as np  # noqa: E402

django.setup()

from bench.command import add_origin, build_parser  # noqa: E402
from leaderboard.arena.battles.pairing import compute_pair_chances  # noqa: E402
from leaderboard.arena.ranking import (  # noqa: E402
    LEFT,
    RIGHT,
    TIE,
    Floats,
    Pairs,
    PositionArray,
    Votes,
    rank_models,
)

TIE_PARAMETER = -1.0
ALIKE = 0.3
"""The chance that a vote is what the voter always says of this pair."""
BATCH_VOTES = 50
"""Votes between two computations of the chances. The site computes them at most once a minute."""
DRAWS = 100
VOTES_PER_VOTER = 20


class Case(NamedTuple):
    """An arena: the leads of all pairs, and how many votes come before and after a model joins.

    watched: the models whose intervals are measured; None: all. late: models that join later.
    """

    name: str
    leads: Floats
    votes_before: int
    votes: int
    watched: tuple[int, ...] | None = None
    late: int = 0

    @property
    def stages(self) -> list[tuple[int, int]]:
        """Return the number of live models and of votes, before and after the late ones join."""
        count = len(self.leads)
        return [(count - self.late, self.votes_before), (count, self.votes)]


def make_cases() -> list[Case]:
    """Return the arenas that are simulated."""
    twenty = np.random.default_rng(0).normal(0, 1, 20)
    strange = _subtract(np.linspace(1.5, -1.5, 8))
    # Models that lose to all others beat the best ones, which no strengths can say.
    strange[:2, -2:], strange[-2:, :2] = -2, 2
    return [
        Case("10 models, strengths from −2 to 2", _subtract(np.linspace(2, -2, 10)), 0, 1500),
        Case("20 models", _subtract(twenty), 0, 3000),
        Case("a model joins 20", _subtract(np.append(twenty, 0.3)), 4000, 500, (20,), 1),
        Case("no strengths, 2 of 8 models join", strange, 1000, 1000, None, 2),
    ]


def _subtract(strengths: Floats) -> Floats:
    leads: Floats = strengths[:, None] - strengths[None, :]
    return leads


def compute_target(case: Case) -> Floats:
    """Return the strengths that votes on pairs with equal chances would have without luck."""
    count = len(case.leads)
    first, second = np.triu_indices(count, 1)
    games = np.zeros(len(first))
    # Before a model joins, equal chances are those of the other pairs.
    for live_count, size in case.stages:
        is_live = second < live_count
        games += is_live * size / is_live.sum()
    counts = games[:, None] * compute_outcome_chances(case.leads[first, second])
    return Pairs(count, first, second).fit(counts).strengths


def compute_outcome_chances(leads: Floats) -> Floats:
    """Return the chances that the first model wins, that it loses, and of a tie."""
    weights = np.column_stack(
        [np.exp(leads / 2), np.exp(-leads / 2), np.full(len(leads), np.exp(TIE_PARAMETER))]
    )
    chances: Floats = weights / weights.sum(axis=1, keepdims=True)
    return chances


class Arena:
    """An arena that is played vote by vote."""

    def __init__(self, case: Case, seed: int, *, is_informed: bool) -> None:
        self.case, self.is_informed = case, is_informed
        self.random = np.random.default_rng(seed)
        count = len(case.leads)
        voters = (case.votes_before + case.votes) // VOTES_PER_VOTER + 1
        # One number for each voter and pair: what the voter says whenever the habit decides.
        self.habits = self.random.random((voters, count, count))
        empty = np.empty(0, dtype=np.intp)
        self.votes = Votes(empty, empty, empty, empty, draw_weight=np.empty(0))

    def play(self) -> Votes:
        """Return all votes, before and after the late models join."""
        for live_count, size in self.case.stages:
            for start in range(0, size, BATCH_VOTES):
                self._add_votes(np.arange(live_count), min(BATCH_VOTES, size - start))
        return self.votes

    def _add_votes(self, live: PositionArray, size: int) -> None:
        if self.is_informed:
            pairs, chances = compute_pair_chances(len(self.case.leads), self.votes, live)
        else:
            pairs = np.column_stack(np.triu_indices(len(live), 1))
            chances = np.full(len(pairs), 1 / len(pairs))
        drawn = self.random.choice(len(pairs), size, p=chances)
        left, right = pairs[drawn].T
        voter = (len(self.votes.left) + np.arange(size)) // VOTES_PER_VOTER
        numbers = np.where(
            self.random.random(size) < ALIKE,
            self.habits[voter, left, right],
            self.random.random(size),
        )
        shares = compute_outcome_chances(self.case.leads[left, right])[:, [0, 2, 1]].cumsum(axis=1)
        place = (numbers[:, None] > shares).sum(axis=1).clip(max=2)
        new = (left, right, np.array([LEFT, TIE, RIGHT])[place], voter)
        columns = [np.append(old, more) for old, more in zip(self.votes[:4], new, strict=True)]
        weights = np.append(self.votes.draw_weight, 1 / (len(pairs) * chances[drawn]))
        self.votes = Votes(*columns, draw_weight=weights)


class Measured(NamedTuple):
    """Errors of the strengths of the watched models, the squares of half-widths, and hits."""

    errors: list[Floats]
    squares: list[Floats]
    hits: list[Floats]

    def add(self, case: Case, votes: Votes, target: Floats) -> None:
        """Rank the models by these votes, and compare the strengths with the target."""
        watched = list(case.watched or range(len(case.leads)))
        strengths = rank_models(len(case.leads), votes, draws=DRAWS).strengths
        values, lows, highs = np.array(
            [(each.value, each.low, each.high) for each in strengths], dtype=float
        )[watched].T
        self.errors.append(values - target[watched])
        self.squares.append(((highs - lows) / 2) ** 2)
        self.hits.append((lows <= target[watched]) & (target[watched] <= highs))


def simulate(case: Case, runs: int) -> dict[str, Any]:
    """Return coverage, bias and votes saved of a case, over `runs` simulated arenas."""
    target = compute_target(case)
    rules = {name: Measured([], [], []) for name in ("informed", "unweighted", "equal")}
    for run in range(runs):
        informed_votes = Arena(case, run, is_informed=True).play()
        rules["informed"].add(case, informed_votes, target)
        rules["unweighted"].add(case, informed_votes._replace(draw_weight=None), target)
        rules["equal"].add(case, Arena(case, run, is_informed=False).play(), target)
    widths = {name: float(np.mean(rule.squares)) for name, rule in rules.items()}
    spreads = {name: float(np.var(rule.errors, axis=0).mean()) for name, rule in rules.items()}
    return {
        "case": case.name,
        "arenas": runs,
        "coverage95": {name: round(float(np.mean(rule.hits)), 3) for name, rule in rules.items()},
        # The greatest mean error of a model, which has a random error of about `bias_error`.
        "bias": {
            name: round(float(np.abs(np.mean(rule.errors, axis=0)).max()), 3)
            for name, rule in rules.items()
        },
        "bias_error": round(float(np.sqrt(spreads["informed"] / runs)), 3),
        # The square of a width falls with one over the votes.
        "votes_saved": round(1 - widths["informed"] / widths["equal"], 3),
        "votes_saved_unweighted": round(1 - widths["unweighted"] / widths["equal"], 3),
        "votes_saved_by_spread": round(1 - spreads["informed"] / spreads["equal"], 3),
    }


def main() -> None:
    args = build_parser(__doc__, quick="8 arenas of each case").parse_args()
    runs = 2 if args.smoke else 8 if args.quick else 100
    cases = make_cases()
    results = []
    for case in cases[-1:] if args.smoke else cases:
        results.append(simulate(case, runs))
        if not args.json:
            print(json.dumps(results[-1], ensure_ascii=False), flush=True)
    by_name = {each["case"]: each for each in results}
    strange = by_name[cases[-1].name]
    joined = by_name.get(cases[2].name, strange)
    ratios = {
        "distance of mean coverage from 95 %": round(
            abs(float(np.mean([each["coverage95"]["informed"] for each in results])) - 0.95), 4
        ),
        "votes saved for a model that joins": joined["votes_saved"],
        "bias weighted ÷ unweighted, without strengths": round(
            strange["bias"]["informed"] / strange["bias"]["unweighted"], 3
        ),
    }
    lower = {name for name in ratios if "saved" not in name}
    if args.json:
        output = add_origin({"ratios": ratios, "cases": results}, "numpy", "scipy", lower=lower)
        print(json.dumps(output, ensure_ascii=False, indent=1))
    else:
        print(json.dumps(ratios, ensure_ascii=False))


if __name__ == "__main__":
    main()
