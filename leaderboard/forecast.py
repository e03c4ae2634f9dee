"""Check by simulation how often the forecast of the next round's catch rate holds.

    python -m leaderboard.forecast --worlds 1000 --json

In each world of the treadmill, people write against the newest model of a path of rounds. Each
author finds errors at a rate of their own. Prints the share of worlds in which the 90% interval
contained the rate that the next round measured. See docs/statistics.md, "The next round's catch
rate".
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass

import numpy as np

from leaderboard.rounds.forecast import MIN_ROUNDS, forecast_catch_rate
from leaderboard.rounds.treadmill import LEARNERS, LearnerName, World, simulate_catch_rates

MAX_ROUNDS = 8
"""The most rounds from which the next one is forecast."""
POPULATION = 2_000
"""Texts of a world: fewer than the treadmill's own, because there are many worlds."""
AUTHORS = (10, 60)
"""The range of the number of authors of a world's rounds."""
TRIES = 10
"""The number of tries of each author in a round."""


@dataclass(frozen=True)
class ForecastCoverage:
    """How often the interval contained the next rate, over worlds of one learner.

    rounds: the number of rounds known. coverage: a share (0-1). width: the mean width (0-1).
    """

    learner: LearnerName
    rounds: int
    coverage: float
    width: float


def simulate_measured_rates(
    learner: LearnerName, rounds: int, generator: np.random.Generator
) -> list[float]:
    """Return the catch rates that the rounds of a random world measure.

    The learner's error is between 2% and 20%, and up to 5% of the labels are wrong.
    """
    world = World(generator.uniform(0.02, 0.2), generator.uniform(0, 0.05), learner, POPULATION)
    true_rates = simulate_catch_rates(world, rounds, int(generator.integers(2**31)))
    author_count = int(generator.integers(*AUTHORS))
    # How alike authors are: the weight of the Beta distribution of their rates.
    likeness = generator.uniform(5, 40)
    measured = []
    for rate in true_rates:
        # A Beta distribution has no parameter of 0.
        inner_rate = min(max(rate, 1e-6), 1 - 1e-6)
        author_rates = generator.beta(
            inner_rate * likeness, (1 - inner_rate) * likeness, author_count
        )
        catches = generator.binomial(TRIES, author_rates).sum()
        measured.append(float(catches) / (TRIES * author_count))
    return measured


def check_forecasts(worlds: int, seed: int) -> list[ForecastCoverage]:
    """Return the coverage for each learner and number of rounds. worlds: for each learner."""
    generator = np.random.default_rng(seed)
    found = []
    for learner in LEARNERS:
        histories = [
            simulate_measured_rates(learner, MAX_ROUNDS + 1, generator) for _ in range(worlds)
        ]
        for rounds in range(MIN_ROUNDS, MAX_ROUNDS + 1):
            hits, widths = 0, 0.0
            for rates in histories:
                forecast = forecast_catch_rate(rates[:rounds])
                assert forecast is not None
                hits += forecast.low <= rates[rounds] <= forecast.high
                widths += forecast.high - forecast.low
            found.append(ForecastCoverage(learner, rounds, hits / worlds, widths / worlds))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the coverage. Return 0, or 2 if the input can't be used."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.forecast",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--worlds", type=int, default=1000, help="worlds per learner (1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (1)")
    parser.add_argument("--json", action="store_true", help="print one object")
    args = parser.parse_args(arguments)
    if args.worlds < 1:
        print("error: At least one world is needed.", file=sys.stderr)
        return 2
    rows = check_forecasts(args.worlds, args.seed)
    coverage = sum(row.coverage for row in rows) / len(rows)
    if args.json:
        body = {"worlds": args.worlds, "coverage90": coverage, "by": [asdict(row) for row in rows]}
        print(json.dumps(body))
        return 0
    print("learner   rounds  coverage  mean width")
    for row in rows:
        print(f"{row.learner:9} {row.rounds:6}  {row.coverage:8.3f}  {row.width:10.3f}")
    print(f"all       {'':6}  {coverage:8.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
