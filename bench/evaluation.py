"""How fast submitted models are evaluated in the sandbox, next to the most that the machine can do.

A model's folder (random weights, MiniLM's and roberta-base's size) is run by the Docker runner over
10,000 short examples. In turns with it, the same model in process: the same backend and threads,
fed full sorted batches that are encoded already. See bench/README.md.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

from docker.errors import DockerException

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from bench.serving import (  # noqa: E402
    LIMIT_BATCH_SIZE,
    Server,
    find_free_port,
    read_texts,
    run_load,
    run_server,
    wait_for_answer,
)
from evaluation.contract import MIB, Ending, Outcome, Runnable, Usage  # noqa: E402
from evaluation.isolation.sandbox.containers import RUNTIME_IMAGE, DockerRunner  # noqa: E402
from evaluation.isolation.sandbox.harness import arguments  # noqa: E402
from evaluation.isolation.sandbox.harness.answering import read_examples  # noqa: E402
from evaluation.isolation.sandbox.harness.batches import make_batches  # noqa: E402
from evaluation.isolation.sandbox.harness.loading import Model  # noqa: E402
from evaluation.isolation.sandbox.harness.loading import load_classifier as load_model  # noqa: E402
from evaluation.isolation.sandbox.images import has_image  # noqa: E402
from evaluation.isolation.sandbox.limits import Limits  # noqa: E402
from evaluation.isolation.sandbox.monitor import Runner  # noqa: E402
from serving.backends import count_cores  # noqa: E402
from tests.support.serving_models import KINDS, tokenizer_files  # noqa: E402

EXAMPLE_COUNT, QUICK_EXAMPLE_COUNT = 10_000, 800
KIND = "sequence-classification"
SIZES: dict[str, dict[str, int]] = {
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536},
    "roberta-base": {"vocab_size": 50_265, "max_position_embeddings": 514, "type_vocab_size": 1},
}
BARS = {"without start-up / limit": 0.85, "with start-up / limit": 0.7}
PAPER_RATES = (
    7.0,
    10.0,
)  # examples a second of base-size models on eight processors (Dynaboard, 2021)
HTTP_SECONDS = 10.0
_loaded: tuple[Model, list[list[Any]]]  # in the limit's process


def make_model(folder: Path, size: str) -> Path:
    """A folder with random weights as it is submitted, for everybody to read."""
    import transformers

    name = "Roberta" if size.startswith("roberta") else "Bert"
    settings: dict[str, Any] = dict(SIZES[size], pad_token_id=0, num_attention_heads=12)
    config = getattr(transformers, f"{name}Config")(**settings)
    getattr(transformers, f"{name}ForSequenceClassification")(config).save_pretrained(folder)
    tokenizer_files(folder)
    (folder / "dynabench.json").write_text(json.dumps({"kind": KIND, **KINDS[KIND]}))
    for file in folder.iterdir():
        file.chmod(0o644)
    return folder


class Limit:
    """The backend alone in a process of its own, set up as the sandbox's before torch is imported.

    In a process that has torch already, `prepare` comes too late: each thread would start more.
    """

    def __init__(self, asked: Runnable, inputs: Path) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"
        self._process = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=_load_model, initargs=(asked, inputs)
        )

    def run(self, turn: int) -> tuple[int, float]:
        """Examples and processor seconds of every other batch."""
        return self._process.submit(_measure_limit, turn).result()


class LimitHere:
    """The backend in this process: for a smoke form, where nobody looks at the rate."""

    def __init__(self, asked: Runnable, inputs: Path) -> None:
        _load_model(asked, inputs)

    def run(self, turn: int) -> tuple[int, float]:
        """Examples and processor seconds of every other batch."""
        return _measure_limit(turn)


def _load_model(asked: Runnable, inputs: Path) -> None:
    """Load the model as the harness does, and keep every batch encoded."""
    global _loaded
    command_line = arguments.build_command_line(
        asked, folder=str(asked.folder), inputs=str(inputs), threads=count_cores()
    )
    options: Namespace = arguments.read_command_line(command_line)
    model = load_model(options)
    with inputs.open("rb") as lines:
        examples = list(read_examples(lines, model.codec))
    encoded = [
        [model.codec.encode({"text": example.texts[0]})[0] for example in batch]
        for batch in make_batches(examples)
    ]
    _loaded = model, encoded


def _measure_limit(turn: int) -> tuple[int, float]:
    model, encoded = _loaded
    chosen = encoded[turn::2]
    with ThreadPoolExecutor(model.workers) as pool:
        list(pool.map(model.backend.run, chosen[-2 * model.workers :]))  # every thread is warm
        used = time.process_time()
        list(pool.map(model.backend.run, chosen))
    return sum(map(len, chosen)), time.process_time() - used


def run_in_sandbox(runner: Runner, asked: Runnable, inputs: Path, count: int) -> dict[str, float]:
    """One run in the sandbox, from asking for a container until it is gone."""
    lines: list[bytes] = []
    started = time.monotonic()
    ending = runner.run(
        asked, inputs, Limits(cpus=count_cores()), take=lines.append, beat=lambda: None
    )
    seconds = time.monotonic() - started
    usage = ending.usage
    if ending.outcome != Outcome.OK or len(lines) != count:
        raise RuntimeError(f"The run ended with {ending}.")
    return {
        "per_second": usage.examples_per_second,
        "start_seconds": usage.start_seconds,
        "overhead_seconds": seconds - count / usage.examples_per_second,
        "cpu_seconds": usage.cpu_seconds,
        "peak_mib": usage.peak_bytes / 2**20,
        "mean_mib": usage.mean_bytes / 2**20,
    }


def measure_round(
    limit: Limit | LimitHere, runner: Runner, asked: Runnable, inputs: Path, count: int
) -> dict[str, float]:
    """The limit, the sandbox, and the limit again.

    The limit is the rate if the limit had every core to itself. Measured by the clock it would be
    lower while others use the machine, and the sandbox could beat it.
    """
    before = limit.run(0)
    figures = run_in_sandbox(runner, asked, inputs, count)
    after = limit.run(1)
    count, cpu = (sum(pair) for pair in zip(before, after, strict=True))
    rate = count * count_cores() / cpu
    whole = EXAMPLE_COUNT / (figures["overhead_seconds"] + EXAMPLE_COUNT / figures["per_second"])
    return figures | {
        "limit_per_second": rate,
        "limit_cpu_seconds": cpu,
        "without start-up / limit": figures["per_second"] / rate,
        "with start-up / limit": whole / rate,
        "processor time, limit / sandbox": cpu / figures["cpu_seconds"],
    }


def measure_one_by_one(folder: Path, texts: list[str], seconds: float, home: Path) -> float:
    """Examples a second of our model server, one HTTP request after another."""
    port = find_free_port()
    command = [sys.executable, "manage.py", "serve_model", f"--port={port}"]
    server = Server(
        "ours",
        port,
        "/models/bench/predict",
        [*command, f"bench={folder},backend=torch"],
        {"DYNABENCH_HOME": str(home)},
    )
    file, log = home / "texts.json", home / "log"
    file.write_text(json.dumps(texts[:640]))
    with run_server(server, log):
        wait_for_answer(server, server.path, texts[0], log)
        return run_load(port, server.path, 1, seconds, file)["per_second"]


def measure(size: str, count: int, rounds: int, http_seconds: float) -> dict[str, Any]:
    """All figures of one model; ratios are medians over the rounds."""
    source, texts = read_texts(3600)
    texts = list(islice(cycle(texts), count))
    with tempfile.TemporaryDirectory() as place:
        folder = make_model(Path(place, "model"), size)
        inputs, asked = write_examples(Path(place), folder, texts)
        limit, runner = Limit(asked, inputs), DockerRunner(f"bench-{uuid4().hex}")
        rounds_figures = [measure_round(limit, runner, asked, inputs, count) for _ in range(rounds)]
        single = measure_one_by_one(folder, texts, http_seconds, Path(place))
    return add_ratios(size, count, source, rounds_figures, single)


def measure_small() -> dict[str, Any]:
    """The same of a few sentences, where the runner's answers are given; without HTTP."""
    from bench.prepared import build_tiny_model_here, set_up_site_here

    set_up_site_here()
    from tests.support.evaluations import ScriptedRunner  # which reads models

    folder, count = build_tiny_model_here(), 2 * LIMIT_BATCH_SIZE
    source, texts = read_texts(count)
    with tempfile.TemporaryDirectory() as place:
        inputs, asked = write_examples(Path(place), folder, texts)
        usage = Usage(
            2.0, examples_per_second=3.0, start_seconds=1.0, cpu_seconds=1.5, peak_bytes=MIB,
            mean_bytes=MIB,
        )  # fmt: skip
        runner = ScriptedRunner(ending=Ending(Outcome.OK, usage))
        found = measure_round(LimitHere(asked, inputs), runner, asked, inputs, count)
    return add_ratios("tiny", count, source, [found], 1.0)


def write_examples(place: Path, folder: Path, texts: list[str]) -> tuple[Path, Runnable]:
    """Write the examples, and say how the model is asked."""
    inputs = place / "examples.jsonl"
    rows = [{"id": f"x{n}", "inputs": {"text": text}} for n, text in enumerate(texts)]
    inputs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = tuple(json.loads((folder / "dynabench.json").read_text())["labels"])
    return inputs, Runnable(folder=folder, fields=("text",), output="label", labels=labels)


def add_ratios(
    size: str, count: int, source: str, found: list[dict[str, float]], single: float
) -> dict[str, Any]:
    """Return medians over the rounds, and the ratios."""
    medians = {name: statistics.median(one[name] for one in found) for name in found[0]}
    results: dict[str, Any] = {
        "examples": count,
        "sentences": source,
        "ratios": {name: value for name, value in medians.items() if " / " in name},
        "medians": {name: value for name, value in medians.items() if " / " not in name},
        "http_per_second": single,
        "rounds": found,
    }
    results["ratios"]["sandbox / one HTTP request an example"] = medians["per_second"] / single
    if size == "roberta-base":
        results["ratios"]["sandbox / paper's 10 a second"] = medians["per_second"] / PAPER_RATES[1]
        results["ratios"]["sandbox / paper's 7 a second"] = medians["per_second"] / PAPER_RATES[0]
    return results


def print_results(results: dict[str, Any]) -> None:
    """What a person can read."""
    print(f"{results['machine']}\n{results['versions']}")
    for size, found in results["models"].items():
        print(f"\n{size}: {found['examples']} examples")
        for name, value in found["medians"].items():
            print(f"  {name:40}{value:10.1f}")
        print(f"  {'http_per_second':40}{found['http_per_second']:10.1f}")
        for name, value in found["ratios"].items():
            bar = BARS.get(name)
            print(f"  {name:40}{value:10.2f}" + (f"   wanted {bar}" if bar else ""))


def main() -> None:
    parser = build_parser(__doc__, quick="under a minute: MiniLM, one round")
    parser.add_argument("--rounds", type=int, default=3, help="of MiniLM; roberta-base has one")
    parser.add_argument("--examples", type=int, default=EXAMPLE_COUNT)
    parser.add_argument("--size", choices=SIZES, help="only this model")
    options = parser.parse_args()
    try:
        is_there = options.smoke or has_image(RUNTIME_IMAGE)
    except DockerException:
        parser.exit(EXIT_UNAVAILABLE, "No Docker engine answers.\n")
    if not is_there:
        parser.exit(
            EXIT_UNAVAILABLE, f"{RUNTIME_IMAGE} is missing: scripts/runtime_image.sh builds it.\n"
        )
    sizes = [options.size] if options.size else ["minilm"] if options.quick else list(SIZES)
    results: dict[str, Any] = {"bars": BARS, "models": {}}
    if options.smoke:
        sizes, results["models"] = [], {"tiny": measure_small()}
    for size in sizes:
        count = QUICK_EXAMPLE_COUNT if options.quick else options.examples
        rounds = options.rounds if size == "minilm" and not options.quick else 1
        results["models"][size] = measure(
            size, count, rounds, 2.0 if options.quick else HTTP_SECONDS
        )
    results["paper"] = "7 to 10 examples a second: base-size models on eight processors (Dynaboard)"
    packages = ("torch", "transformers", "tokenizers", "numpy", "docker")
    results["ratios"] = {
        f"{size}: {name}": ratio
        for size, found in results["models"].items()
        for name, ratio in found["ratios"].items()
    }
    results = add_origin(results, *packages)
    print(json.dumps(results)) if options.json else print_results(results)


if __name__ == "__main__":
    main()
