"""How much sooner a set is answered by three nodes of a Ray cluster, and whether the scores stay.

    python -m bench.cluster --quick --json

The nodes are raylets on this machine. A model waits 20 ms an example, so that the machine's cores
do not decide. See bench/README.md.
"""

import gzip
import json
import statistics
import sys
import tempfile
import time
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from evaluation.contract import Runnable, SetRow  # noqa: E402
from evaluation.isolation.inference.evaluate import Attempt, Question, evaluate_set  # noqa: E402
from evaluation.isolation.sandbox.limits import Limits  # noqa: E402
from evaluation.isolation.sandbox.monitor import Runner  # noqa: E402
from evaluation.isolation.sandbox.process import ProcessRunner  # noqa: E402
from evaluation.runs.ray_driver import ClusterJob, RunConnection  # noqa: E402
from evaluation.runs.ray_runner import RayRunner  # noqa: E402
from evaluation.task_shape import get_labels, make_runnable  # noqa: E402
from tasks.config.loading import load_config  # noqa: E402
from tests.support.cluster import LIMITS, SECONDS, Nodes, nodes, waiting  # noqa: E402
from tests.support.serving_models import tiny_model  # noqa: E402

NODES, SHARDS = 3, 6
QUICK, WHOLE = 100, 400  # examples of a shard
REPETITIONS = 3  # that three nodes are measured, as they meet other users of the machine more often
BARS = {"3 nodes / 1, waiting": 2.6, "scores equal": 1}


def measure_seconds(job: ClusterJob, times: int) -> float:
    """The median of a set that is answered so often, by nodes whose workers have started."""
    first = job.inputs.with_name("first.jsonl")
    first.write_text("".join(job.inputs.read_text().splitlines(keepends=True)[: 2 * NODES]))
    with redirect_stdout(sys.stderr), RunConnection(job) as connected:
        connected.job = replace(job, inputs=first, shard_size=1)
        connected.run(lambda answers: None)
        connected.job, took = job, list[float]()
        for _ in range(times):
            began = time.perf_counter()
            ending = connected.run(lambda answers: None)
            took.append(time.perf_counter() - began)
            assert ending.usage.answers == SHARDS * job.shard_size, ending
    return statistics.median(took)


def measure_waiting_seconds(cluster: Nodes, folder: Path, shard: int) -> dict[str, float]:
    """Of one node and of three; the cluster has one at first."""
    inputs = folder / "waiting.jsonl"
    rows = [{"id": f"x{n}", "inputs": {}} for n in range(SHARDS * shard)]
    inputs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = ClusterJob(cluster.address, shard, "waiting", Runnable(), inputs, LIMITS, waiting)
    one = measure_seconds(job, 1)
    for _ in range(NODES - 1):
        cluster.add()
    return {"1": one, "3": measure_seconds(job, REPETITIONS)}


def are_equal(here: Runner, there: Runner, folder: Path, size: int) -> bool:
    """Whether a float model has the same answers and scores by both, to the last digit."""
    config = load_config((ROOT / "tasks/official/nli/task.yaml").read_text())
    labels = get_labels(config) or ()
    rows = [
        SetRow(
            f"u{n}",
            {"premise": "It rained. " * (n % 40 + 1), "hypothesis": f"Number {n} is wet."},
            (labels[n % len(labels)],),
        )
        for n in range(size)
    ]
    model = make_runnable(config, folder=tiny_model(folder / "model", "pair-classification"))
    limits, found = Limits(cpus=1, memory_bytes=LIMITS.memory_bytes), []
    for name, runner in (("here", here), ("there", there)):
        (folder / name).mkdir()
        attempt = Attempt(model, runner, limits, lambda progress, message: None, folder / name)
        ended = evaluate_set(Question(config, lambda: rows), attempt)
        assert ended.predictions, ended.ending
        found.append((ended.numbers, gzip.decompress(ended.predictions.read_bytes())))
    return found[0] == found[1]


def measure(shard: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with nodes(1, folder / "cache") as cluster:
            took = measure_waiting_seconds(cluster, folder, shard)
            there = RayRunner(cluster.address, 2 * shard, "scores")
            equal = are_equal(ProcessRunner(), there, folder, 4 * shard)
    return build_results(took, equal, shard)


def measure_small() -> dict[str, Any]:
    """The parts that need no cluster: tests/integration/test_cluster.py starts a real one."""
    from bench.prepared import set_up_site_here

    set_up_site_here()
    from tests.support.evaluations import ScriptedRunner  # which reads models

    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        inputs = Path(name, "waiting.jsonl")
        inputs.write_text(json.dumps({"id": "x", "inputs": {}}) + "\n")
        model = waiting(Runnable(), "", None)
        model.run(Runnable(), inputs, LIMITS, take=lambda line: None, beat=lambda: None)
        took = time.perf_counter() - began
        equal = are_equal(ScriptedRunner(), ScriptedRunner(), Path(name), 8)
    return build_results({"1": took, "3": took}, equal, 1)


def build_results(took: dict[str, float], equal: bool, shard: int) -> dict[str, Any]:
    """Return the seconds that nodes took, and the ratios."""
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
    parser = build_parser(__doc__, quick="600 examples instead of 2,400")
    args = parser.parse_args()
    if not find_spec("ray"):
        parser.exit(EXIT_UNAVAILABLE, "ray is missing: requirements-ray.txt pins it.\n")
    results = measure_small() if args.smoke else measure(QUICK if args.quick else WHOLE)
    results = add_origin(results | {"bars": BARS}, "ray", "torch")
    if args.json:
        print(json.dumps(results, indent=2))
        return
    for name, value in results["ratios"].items():
        print(f"{name}: {value:.2f} (bar: {BARS[name]})")


if __name__ == "__main__":
    main()
