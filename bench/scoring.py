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

from bench.command import parser_of, with_origin  # noqa: E402
from evaluation.contract import Answer, SetRow  # noqa: E402
from evaluation.scoring.bootstrap import score  # noqa: E402

LABELS = ("entailment", "neutral", "contradiction")
OF_LABELS = ("accuracy", "macro_f1", "matthews_correlation", "dataperf_f1")
OF_TEXTS = ("exact_match", "squad_f1", "vqa_accuracy", "bleu", "chrf", "chrf_pp")
BARS = {"accuracy / bare loop": 6.0, "MB": 500.0}  # at most


def rows(metric: str, count: int) -> Iterator[tuple[SetRow, Answer]]:
    """Right labels, or sentences of twelve words, and answers that are partly right."""
    chance = random.Random(7)
    if metric in OF_LABELS:
        pool = [(chance.choice(LABELS), chance.choice(LABELS)) for _ in range(1000)]
    else:
        words = [f"w{number}" for number in range(2000)]
        pool = []
        for _ in range(20_000):
            right = chance.choices(words, k=12)
            said = right[: chance.randrange(13)] + chance.choices(words, k=chance.randrange(6))
            pool.append((" ".join(right), " ".join(said)))
    for number in range(count):
        right, said = pool[number * 7919 % len(pool)]
        if metric not in OF_LABELS:
            said = " ".join([said, *(f"w{number + more}" for more in range(number % 23))])
        parts = {"tag": (f"t{number % 7}",), "language": (f"l{number % 50}",)}
        yield SetRow(str(number), {}, (right,), parts), Answer(said)


def step(metric: str, count: int) -> dict[str, float]:
    """One metric, in a process of its own. CPU seconds, which other work delays less."""
    started = time.process_time()
    right = sum(answer.value in row.gold for row, answer in rows(metric, count))
    bare = max(time.process_time() - started, 1e-6)
    started, wall = time.process_time(), time.perf_counter()
    found = score(
        rows(metric, count), metrics=[metric], labels=LABELS, slices=("tag", "language"), seed=1
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


def step_apart(metric: str, count: int) -> dict[str, float]:
    """Return what `step` finds in a process of its own, whose memory is that of the metric."""
    command = [sys.executable, "-m", "bench.scoring", "--rows", str(count), "--step", metric]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def measure(
    count: int, metrics: tuple[str, ...], one: Callable[[str, int], dict[str, float]] = step_apart
) -> dict[str, Any]:
    """Every metric's figures."""
    found: dict[str, dict[str, float]] = {}
    for metric in metrics:
        found[metric] = one(metric, count)
        print(
            metric, {key: round(value, 3) for key, value in found[metric].items()}, file=sys.stderr
        )
    return {
        "ratios": {
            f"{metric} / bare loop": one["seconds"] / one["bare_seconds"]
            for metric, one in found.items()
        },
        "MB": max(one["MB"] for one in found.values()),
        "rows": count,
        "metrics": found,
    }


def main() -> None:
    parser = parser_of(__doc__, quick="50,000 rows and no chrF")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--step", help=SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(step(given.step, given.rows)))
        return
    metrics = OF_LABELS + (OF_TEXTS[:-2] if given.quick else OF_TEXTS)
    if given.smoke:
        results = measure(20, ("accuracy", "exact_match"), step)
    else:
        results = measure(50_000 if given.quick else given.rows, metrics)
    results = with_origin(results, "numpy", "sacrebleu", lower=results["ratios"])
    if given.json:
        print(json.dumps(results, indent=2))
        return
    for metric, one in results["metrics"].items():
        ratio = results["ratios"][f"{metric} / bare loop"]
        times = f"{one['seconds']:8.1f} s {ratio:7.1f} × bare loop"
        print(f"{metric:22} {times} {one['MB']:5.0f} MB")
    print(f"wanted: {BARS}")


if __name__ == "__main__":
    main()
