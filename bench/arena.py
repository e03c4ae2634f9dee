"""How long the ranking of an arena takes: 100,000 simulated comparisons of 100 models.

Also with the style of answers held constant (four covariates), fit and report.

See bench/README.md.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import django  # noqa: E402
import numpy as np  # noqa: E402

django.setup()

from bench.command import add_origin, build_parser  # noqa: E402
from leaderboard.arena.ranking import count_outcomes, pair_models, rank_models  # noqa: E402
from leaderboard.arena.report import STYLE_DRAWS  # noqa: E402
from tests.support.arenas import simulated, styled  # noqa: E402

MODEL_COUNT = 100
BARS = {  # at most
    "fit seconds": 1.0,
    "report seconds": 10.0,
    "style fit seconds": 1.0,
    "style report seconds": 20.0,
}


def measure_unit_seconds() -> float:
    """Return the processor seconds of solving ten systems of 400 equations."""
    matrix = np.eye(400) * 400 + np.arange(400)
    started_at = time.process_time()
    for _ in range(10):
        np.linalg.solve(matrix, matrix)
    return time.process_time() - started_at


def main() -> None:
    args = build_parser(__doc__, quick="10,000 comparisons").parse_args()
    voters = 4 if args.smoke else 200 if args.quick else 2000
    unit = measure_unit_seconds()
    votes = simulated(1, np.linspace(-2, 2, MODEL_COUNT).tolist(), voters=voters, each=50)
    started = time.process_time()
    pairs, cells = pair_models(MODEL_COUNT, votes.left, votes.right, votes.outcome)
    pairs.fit(count_outcomes(pairs, cells))
    fitted = time.process_time()
    rank_models(MODEL_COUNT, votes)
    seconds_by_step = {
        "fit seconds": fitted - started,
        "report seconds": time.process_time() - fitted,
    }
    strengths = np.linspace(-2, 2, MODEL_COUNT).tolist()
    votes, style = styled(1, strengths, (0.5, 0, 0, 0.2), voters=voters, each=50)
    for name, draws in (("style fit seconds", 0), ("style report seconds", STYLE_DRAWS)):
        started = time.process_time()
        independent_votes = votes if draws else votes._replace(voter=np.zeros_like(votes.voter))
        rank_models(MODEL_COUNT, independent_votes, style=style, draws=draws)
        seconds_by_step[name] = time.process_time() - started
    ratios = {
        f"{name.removesuffix(' seconds')} / solve": seconds_by_step[name] / unit
        for name in seconds_by_step
    }
    results = seconds_by_step | {"ratios": ratios, "comparisons": len(votes.left), "bars": BARS}
    if args.json:
        print(json.dumps(add_origin(results, "numpy", "scipy", lower=ratios), indent=2))
        return
    for name, seconds in seconds_by_step.items():
        print(f"{name:15} {seconds:6.2f}   at most {BARS[name]:g}")


if __name__ == "__main__":
    main()
