"""How long scores take, and how much memory: each metric over a million answers, in two slices.

For comparison: a bare loop over the same rows, which makes them and counts equal answers. See
bench/README.md.
"""

import json
import random
import resource
import subprocess
import sys
import time
from argparse import SUPPRESS
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import add_origin, build_parser  # noqa: E402
from evaluation.contract import Answer, SetRow  # noqa: E402
from evaluation.scoring.bootstrap import compute_scores  # noqa: E402

LABELS = ("entailment", "neutral", "contradiction")
LABEL_METRICS = ("accuracy", "macro_f1", "matthews_correlation", "dataperf_f1")
TEXT_METRICS = ("exact_match", "squad_f1", "vqa_accuracy", "bleu", "chrf", "chrf_pp")
BARS = {"accuracy / bare loop": 6.0, "MB": 500.0}  # at most


def generate_rows(metric: str, count: int) -> Iterator[tuple[SetRow, Answer]]:
    """Right labels, or sentences of twelve words, and answers that are partly right."""
    rng = random.Random(7)
    if metric in LABEL_METRICS:
        pool = [(rng.choice(LABELS), rng.choice(LABELS)) for _ in range(1000)]
    else:
        words = [f"w{number}" for number in range(2000)]
        pool = []
        for _ in range(20_000):
            right = rng.choices(words, k=12)
            answer_text = right[: rng.randrange(13)] + rng.choices(words, k=rng.randrange(6))
            pool.append((" ".join(right), " ".join(answer_text)))
    for number in range(count):
        right, answer_text = pool[number * 7919 % len(pool)]
        if metric not in LABEL_METRICS:
            answer_text = " ".join(
                [answer_text, *(f"w{number + more}" for more in range(number % 23))]
            )
        parts = {"tag": (f"t{number % 7}",), "language": (f"l{number % 50}",)}
        yield SetRow(str(number), {}, (right,), parts), Answer(answer_text)


def measure_metric(metric: str, count: int) -> dict[str, float]:
    """One metric, in a process of its own. CPU seconds, which other work delays less."""
    started = time.process_time()
    right = sum(answer.value in row.gold for row, answer in generate_rows(metric, count))
    bare = max(time.process_time() - started, 1e-6)
    started, wall = time.process_time(), time.perf_counter()
    found = compute_scores(
        generate_rows(metric, count),
        metrics=[metric],
        labels=LABELS,
        slices=("tag", "language"),
        seed=1,
    )
    seconds, wall = time.process_time() - started, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    value = found[0].value
    assert value is not None
    assert found[0].n == count
    assert metric != "accuracy" or value == right / count
    return {
        "bare_seconds": bare,
        "seconds": seconds,
        "wall_seconds": wall,
        "MB": peak,
        "value": value,
    }


def measure_metric_apart(metric: str, count: int) -> dict[str, float]:
    """Return what `step` finds in a process of its own, whose memory is that of the metric."""
    command = [sys.executable, "-m", "bench.scoring", "--rows", str(count), "--step", metric]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def measure(
    count: int,
    metrics: tuple[str, ...],
    one: Callable[[str, int], dict[str, float]] = measure_metric_apart,
) -> dict[str, Any]:
    """Every metric's figures."""
    figures: dict[str, dict[str, float]] = {}
    for metric in metrics:
        figures[metric] = one(metric, count)
        print(
            metric,
            {key: round(value, 3) for key, value in figures[metric].items()},
            file=sys.stderr,
        )
    return {
        "ratios": {
            f"{metric} / bare loop": one["seconds"] / one["bare_seconds"]
            for metric, one in figures.items()
        },
        "MB": max(one["MB"] for one in figures.values()),
        "rows": count,
        "metrics": figures,
    }


def main() -> None:
    parser = build_parser(__doc__, quick="50,000 rows and no chrF")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--step", help=SUPPRESS)
    args = parser.parse_args()
    if args.step:
        print(json.dumps(measure_metric(args.step, args.rows)))
        return
    metrics = LABEL_METRICS + (TEXT_METRICS[:-2] if args.quick else TEXT_METRICS)
    if args.smoke:
        results = measure(20, ("accuracy", "exact_match"), measure_metric)
    else:
        results = measure(50_000 if args.quick else args.rows, metrics)
    results = add_origin(results, "numpy", "sacrebleu", lower=results["ratios"])
    if args.json:
        print(json.dumps(results, indent=2))
        return
    for metric, one in results["metrics"].items():
        ratio = results["ratios"][f"{metric} / bare loop"]
        times = f"{one['seconds']:8.1f} s {ratio:7.1f} × bare loop"
        print(f"{metric:22} {times} {one['MB']:5.0f} MB")
    print(f"wanted: {BARS}")


if __name__ == "__main__":
    main()
