"""How long one ruler takes, and how often its intervals hold.

    python -m bench.ruler --quick --json   # 1,000 items, 6 worlds of each kind, under a minute
    python -m bench.ruler                  # 10,000 items, 60 worlds of each kind

Times are of 200 simulated models: properties of items, a new model without a fit, and the same by
the functions of the site's job. Coverage is over simulated worlds whose models are left out as
wholes (`bench/ruler_worlds.py`). See bench/README.md.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from bench.command import add_origin, build_parser  # noqa: E402
from bench.ruler_job import measure_new_model  # noqa: E402
from bench.ruler_worlds import (  # noqa: E402
    COVERAGE,
    COVERAGE_REACH,
    WELL_SPECIFIED,
    measure_coverage,
)
from evaluation.scoring.ruler.linking import fit_ruler  # noqa: E402
from evaluation.scoring.ruler.matrices import ItemGroups  # noqa: E402
from evaluation.scoring.ruler.response_model import estimate_abilities, fit_items  # noqa: E402

MODEL_COUNT = 200
ANCHOR_COUNT = 100
BARS = {  # at most
    "item fit seconds": 30.0,
    "memory MiB": 500.0,
    "new model seconds": 1.0,
    "predicted model seconds": 1.0,
    "joined model seconds": 1.0,
}


def simulate_answers(item_count: int) -> np.ndarray:
    """Return right (True) and wrong answers: one row for each model, one column for each item."""
    random = np.random.default_rng(1)
    abilities = random.normal(0, 1, (MODEL_COUNT, 1))
    logits = random.lognormal(0, 0.4, item_count) * (abilities - random.normal(0, 1, item_count))
    return random.random(logits.shape) < 1 / (1 + np.exp(-logits))


def measure_unit_seconds() -> float:
    """Return the processor seconds of ten products of matrices of 400 rows and columns."""
    matrix = np.ones((400, 400))
    started_at = time.process_time()
    for _ in range(10):
        matrix @ matrix
    return max(time.process_time() - started_at, 1e-6)


def main() -> None:
    args = build_parser(__doc__, quick="1,000 items, 6 worlds of each kind").parse_args()
    item_count = 150 if args.smoke else 1000 if args.quick else 10_000
    world_count = 1 if args.smoke else 6 if args.quick else 60
    unit = measure_unit_seconds()
    is_right = simulate_answers(item_count)
    is_answered = np.ones_like(is_right)

    started_at = time.process_time()
    items = fit_items(is_right, is_answered)
    fitted_at = time.process_time()
    estimate_abilities(items.discriminations, items.intercepts, is_right[:1], is_answered[:1])
    placed_at = time.process_time()
    groups = ItemGroups(("old", "new"), (np.arange(item_count) >= item_count * 2 // 3).astype(int))
    names = [str(model) for model in range(MODEL_COUNT)]
    ruler = fit_ruler(is_right, groups, names, min(ANCHOR_COUNT, item_count // 2), seed=1)
    linked_at = time.process_time()
    ruler.predict(is_right[:1, ruler.anchors])
    results: dict[str, Any] = {
        "item fit seconds": fitted_at - started_at,
        "new model seconds": placed_at - fitted_at,
        "ruler fit seconds": linked_at - placed_at,
        "predicted model seconds": time.process_time() - linked_at,
        # The most that this process ever had, with Python and numpy.
        "memory MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    # Afterwards, because Django would count as memory of the fit.
    results["joined model seconds"] = measure_new_model(ruler, is_right)
    coverage = measure_coverage(world_count)
    ratios = {
        f"{name} / products": results[f"{name} seconds"] / unit
        for name in ("item fit", "ruler fit")
    }
    if args.json:
        results |= {"ratios": ratios, "items": item_count, "models": MODEL_COUNT, "bars": BARS}
        results |= {"coverage": coverage, "worlds": world_count}
        print(json.dumps(add_origin(results, "numpy", lower=ratios), indent=2))
        return
    for name, value in results.items():
        bar = f"   at most {BARS[name]:g}" if name in BARS else ""
        print(f"{name:24} {value:8.3f}{bar}")
    for kind, found in coverage.items():
        bar = f"   {COVERAGE} ± {COVERAGE_REACH}" if kind == WELL_SPECIFIED else ""
        print(f"coverage, {kind:18} {found['coverage']:.3f} ± {found['error']:.3f}{bar}")


if __name__ == "__main__":
    main()
