"""How much sooner a set is answered by three nodes of a Ray cluster, and whether the scores stay.

    python -m bench.cluster --quick --json

The nodes are raylets on this machine. A model waits 20 ms an example, so that the machine's cores
do not decide. See bench/README.md.
"""

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.machine import machine, versions  # noqa: E402
from evaluation.contract import Runnable, SetRow  # noqa: E402
from evaluation.inference.evaluate import Attempt, Question, evaluate  # noqa: E402
from evaluation.runs.ray_driver import Connected, Job  # noqa: E402
from evaluation.runs.ray_runner import RayRunner  # noqa: E402
from evaluation.sandbox.limits import Limits  # noqa: E402
from evaluation.sandbox.process import ProcessRunner  # noqa: E402
from evaluation.task_shape import labels_of, runnable  # noqa: E402
from tasks.config.loading import load_config  # noqa: E402
from tests.support.cluster import LIMITS, SECONDS, Nodes, nodes, waiting  # noqa: E402
from tests.support.serving_models import tiny_model  # noqa: E402

NODES, SHARDS = 3, 6
QUICK, WHOLE = 100, 400  # examples of a shard
TIMES = 3  # that three nodes are measured, as they meet other users of the machine more often
BARS = {"3 nodes / 1, waiting": 2.6, "scores equal": 1}


def seconds(job: Job, times: int) -> float:
    """The median of a set that is answered so often, by nodes whose workers have started."""
    first = job.inputs.with_name("first.jsonl")
    first.write_text("".join(job.inputs.read_text().splitlines(keepends=True)[: 2 * NODES]))
    with redirect_stdout(sys.stderr), Connected(job) as connected:
        connected.job = replace(job, inputs=first, shard=1)
        connected.run(lambda answers: None)
        connected.job, took = job, list[float]()
        for _ in range(times):
            began = time.perf_counter()
            ending = connected.run(lambda answers: None)
            took.append(time.perf_counter() - began)
            assert ending.usage.answers == SHARDS * job.shard, ending
    return statistics.median(took)


def waiting_seconds(cluster: Nodes, folder: Path, shard: int) -> dict[str, float]:
    """Of one node and of three; the cluster has one at first."""
    inputs = folder / "waiting.jsonl"
    rows = [{"id": f"x{n}", "inputs": {}} for n in range(SHARDS * shard)]
    inputs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = Job(cluster.address, shard, "waiting", Runnable(), inputs, LIMITS, waiting)
    one = seconds(job, 1)
    for _ in range(NODES - 1):
        cluster.add()
    return {"1": one, "3": seconds(job, TIMES)}


def are_equal(cluster: Nodes, folder: Path, size: int) -> bool:
    """Whether a float model has the same answers and scores on the cluster, to the last digit."""
    config = load_config((ROOT / "tasks/official/nli/task.yaml").read_text())
    labels = labels_of(config) or ()
    rows = [
        SetRow(
            f"u{n}",
            {"premise": "It rained. " * (n % 40 + 1), "hypothesis": f"Number {n} is wet."},
            (labels[n % len(labels)],),
        )
        for n in range(size)
    ]
    model = runnable(config, folder=tiny_model(folder / "model", "pair-classification"))
    limits, found = Limits(cpus=1, memory_bytes=LIMITS.memory_bytes), []
    for name, runner in (
        ("here", ProcessRunner()),
        ("there", RayRunner(cluster.address, size // 2, "scores")),
    ):
        (folder / name).mkdir()
        attempt = Attempt(model, runner, limits, lambda progress, message: None, folder / name)
        ended = evaluate(Question(config, lambda: rows), attempt)
        assert ended.predictions, ended.ending
        found.append((ended.numbers, gzip.decompress(ended.predictions.read_bytes())))
    return found[0] == found[1]


def measure(shard: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with nodes(1, folder / "cache") as cluster:
            took = waiting_seconds(cluster, folder, shard)
            equal = are_equal(cluster, folder, 4 * shard)
    return {
        "ratios": {
            "3 nodes / 1, waiting": took["1"] / took["3"],
            "scores equal": int(equal),
        },
        "seconds": took,
        "examples": SHARDS * shard,
        "least seconds": SECONDS * SHARDS * shard,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="600 examples instead of 2,400")
    parser.add_argument("--json", action="store_true", help="print one object")
    given = parser.parse_args()
    results = measure(QUICK if given.quick else WHOLE)
    results |= {"bars": BARS, "machine": machine(), "versions": versions("ray", "torch")}
    if given.json:
        print(json.dumps(results, indent=2))
        return
    for name, value in results["ratios"].items():
        print(f"{name}: {value:.2f} (bar: {BARS[name]})")


if __name__ == "__main__":
    main()
