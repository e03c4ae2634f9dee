"""How often a leak of 5 points is found, and how often one that isn't there.

Simulates rounds whose authors are drawn at random into a released and a held-back half, and models
that know some of the released answers by heart. See docs/statistics.md, "Leaks".
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from bench.command import add_origin, build_parser  # noqa: E402
from evaluation.dataset_releases.splits import (  # noqa: E402
    HELD_SPLIT,
    TEST,
    RowCounts,
    SplitSizes,
    make_plan,
)
from evaluation.scoring.leaks import (  # noqa: E402
    ALARM_CHANCE,
    TrialHalf,
    estimate_leak,
    plan_smallest_leak,
)

LEAK = 0.05
EARLIER_MODELS = 8
ROWS_PER_AUTHOR = (5, 35)
HALF_ROWS = 1000
"""At least this many rows in each half find a leak of five points in 80 % of the cases."""


def draw_halves(random: np.random.Generator, half_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's author, and its half: 0 released, 1 held back. By the release's draw."""
    low, high = ROWS_PER_AUTHOR
    counts = RowCounts()
    author_count = 4 * half_rows // ((low + high) // 2)
    sizes = random.integers(low, high, author_count)
    for author, size in enumerate(sizes.tolist()):
        counts.add(author, "a", is_verified=True, row_count=size)
    seed = int(random.integers(2**31))
    plan = make_plan(counts, SplitSizes(None, 0, half_rows, half_rows), seed=seed)
    authors, halves = [], []
    for (author, _label), rows in plan.cells.items():
        for half, split in enumerate((TEST, HELD_SPLIT)):
            authors += [author] * rows.get(split, 0)
            halves += [half] * rows.get(split, 0)
    return np.array(authors), np.array(halves)


def simulate_trial(random: np.random.Generator, half_rows: int, leak: float) -> Any:
    """Return the estimate of one model in a new round. leak: points gained on released rows."""
    authors, halves = draw_halves(random, half_rows)
    difficulty = random.normal(0, 1, len(authors))
    # Rows of one author are alike: some write harder ones.
    difficulty += random.normal(0, 0.35, authors.max() + 1)[authors]
    abilities = random.normal(1.0, 0.4, EARLIER_MODELS + 1)
    chances = 1 / (1 + np.exp(-(abilities[:, None] - difficulty)))
    is_right = random.random(chances.shape) < chances
    expected = is_right[1:].mean(axis=0)
    model = is_right[0].astype(float)
    # It knows so many wrong released answers by heart that its accuracy there rises by `leak`.
    wrong_share = 1 - chances[0].mean()
    knows = (halves == 0) & (random.random(len(model)) < leak / wrong_share)
    model[knows] = 1
    sides = [
        TrialHalf(model[halves == half], expected[halves == half], authors[halves == half].tolist())
        for half in (0, 1)
    ]
    return estimate_leak(*sides)


def measure(random: np.random.Generator, trials: int, half_rows: int, leak: float) -> Counter[str]:
    """Return how many estimates are found, hold the truth, and the sum of the smallest leaks."""
    counts: Counter[str] = Counter()
    for _ in range(trials):
        estimate = simulate_trial(random, half_rows, leak)
        low, high = estimate.interval
        counts["found"] += estimate.p_value <= ALARM_CHANCE
        counts["held"] += low <= leak <= high
        counts["excluded"] += estimate.largest_leak < leak
        counts["smallest"] += estimate.smallest_leak
    return counts


def main() -> None:
    args = build_parser(__doc__, quick="200 trials").parse_args()
    trials = 20 if args.smoke else 200 if args.quick else 2000
    random = np.random.default_rng(44)
    leaking = measure(random, trials, HALF_ROWS, LEAK)
    honest = measure(random, trials, HALF_ROWS, 0.0)
    few = measure(random, trials, 150, 0.0)
    results: dict[str, Any] = {
        "rows in each half": HALF_ROWS,
        "trials": trials,
        "leak of 5 points found": leaking["found"] / trials,
        "leak of 5 points in the 95% interval": leaking["held"] / trials,
        "leak of 5 points wrongly excluded": leaking["excluded"] / trials,
        "false alarms": honest["found"] / trials,
        "false alarms with 150 rows in each half": few["found"] / trials,
        "mean smallest leak": honest["smallest"] / trials,
        "planned smallest leak": plan_smallest_leak(HALF_ROWS, HALF_ROWS, sum(ROWS_PER_AUTHOR) / 2),
    }
    if args.json:
        # Shares of cases are no ratios of speed, so nothing is better on a faster machine.
        print(json.dumps(add_origin({**results, "ratios": {}}, "numpy", "scipy"), indent=2))
        return
    for name, value in results.items():
        print(f"{name:42} {value:10.4g}")


if __name__ == "__main__":
    main()
