"""How fast the model server is: against a locked pipeline, LitServe, Mosec, and its own limit.

Every round measures every server with 1, 8 and 32 clients and the limit right after one another;
ratios are taken within a round and their median over the rounds is results, because the speed of a
shared machine changes from minute to minute. A version's limit is taken half before and half after
its load. See bench/README.md.
"""

import gzip
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import add_origin, build_parser  # noqa: E402
from bench.machine import describe_machine  # noqa: E402
from bench.peers import BareModel  # noqa: E402
from bench.verdict_page import measure_verdict_page  # noqa: E402
from evaluation.seeds import read_seed_rows  # noqa: E402
from evaluation.training.shipped import install_starter  # noqa: E402
from serving.backends import count_cores  # noqa: E402

CLIENT_COUNTS = (1, 8, 32)
BACKENDS = {"fp32": "onnx", "int8": "onnx", "bf16": "torch"}  # versions of the model: backend
LIMIT_BATCH_SIZE = 16
PACKAGES = (
    *("torch", "transformers", "onnxruntime", "gunicorn", "gunicorn_h1c", "uvloop", "tokenizers"),
    "numpy",
)
BARS = {
    "fp32 / limit at 32": 0.8,
    "fp32 / pipeline at 32": 2.5,
    "int8 / pipeline at 32": 4.5,
    "fp32 / litserve at 32": 1.0,
    "fp32 / mosec at 32": 1.0,
    "home_while_slow / home": 2.0,  # at most
}


@dataclass
class Server:
    """A server to measure."""

    name: str
    port: int
    path: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    naps: bool = False
    """Whether it stands still while others are measured: LitServe idles at a quarter of a core."""
    group: int = 0  # of its processes, once it runs


@contextmanager
def keep_awake(server: Server) -> Iterator[None]:
    """One that naps works in the block, and not after it."""
    if server.naps:
        os.killpg(server.group, signal.SIGCONT)
    try:
        yield
    finally:
        if server.naps:
            os.killpg(server.group, signal.SIGSTOP)


@contextmanager
def run_server(server: Server, log: Path) -> Iterator[None]:
    """The server's process, until the end of the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            server.command,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | server.env,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    server.group = process.pid
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGCONT)  # else it could not end
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with suppress(ProcessLookupError):  # the peers leave workers behind
            os.killpg(process.pid, signal.SIGKILL)


def wait_for_answer(server: Server, path: str, text: str, log: Path) -> None:
    """Until it answers one request."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}{path}",
        json.dumps({"inputs": {"text": text}}).encode(),
        {"Content-Type": "application/json"},
    )
    for _ in range(900):
        try:
            urllib.request.urlopen(request, timeout=30)
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{server.name} did not start: {log.read_text()[-2000:]}")


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def build_peer(
    name: str,
    python: str,
    model: Path,
    home: Path,
    *,
    batch: int = 1,
    threads: int = 1,
    padded: bool = True,
) -> Server:
    """A server of bench/peers.py, of the kind with which its name begins."""
    kind = re.split("[ ,]", name)[0]
    port = find_free_port()
    env = {
        "BENCH_PEER": kind,
        "BENCH_MODEL": str(model),
        "BENCH_CACHE": str(home / "serving"),
        "BENCH_PADDED": str(int(padded)),
        "BENCH_BATCH": str(batch),
        "BENCH_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
    }
    path = {"pipeline": "/predict", "litserve": "/predict", "mosec": "/inference"}[kind]
    command = [python, str(ROOT / "bench" / "peers.py"), str(port)]
    return Server(name, port, path, command, env, naps=kind != "pipeline")


def list_servers(model: Path, home: Path, peers_python: str, *, quick: bool) -> list[Server]:
    """What is measured: pipelines with 1 and all threads; each peer with padded batches and without
    batches, and with batches of our backend, which pads nothing."""
    named = [
        f"{precision}={model},backend={backend},precision={precision}"
        for precision, backend in BACKENDS.items()
        if not (quick and precision == "bf16")
    ]
    port = find_free_port()
    ours = Server(
        "ours",
        port,
        "",
        [sys.executable, "manage.py", "serve_model", f"--port={port}", *named],
        {"DYNABENCH_HOME": str(home)},
    )
    servers = [ours, build_peer("pipeline, 1 thread", sys.executable, model, home)]
    if not quick:
        many = count_cores()
        servers.append(
            build_peer(f"pipeline, {many} threads", sys.executable, model, home, threads=many)
        )
    for kind in ("litserve", "mosec"):
        if subprocess.run([peers_python, "-c", f"import {kind}"], capture_output=True).returncode:
            print(f"{kind} is left out: pip install -r bench/requirements.txt", file=sys.stderr)
            continue
        servers.append(build_peer(f"{kind}, one by one", peers_python, model, home))
        if not quick:
            servers += [
                build_peer(f"{kind}, batches of 16", peers_python, model, home, batch=16),
                build_peer(f"{kind} unpadded", peers_python, model, home, batch=16, padded=False),
            ]
    return servers


def measure_limit(model: BareModel, texts: list[str], seconds: float) -> float:
    """Inputs a second of the backend alone, fed sorted full batches by one thread a core."""
    encoded = sorted((model.codec.encode({"text": text})[0] for text in texts), key=len)
    batches = [
        encoded[start : start + LIMIT_BATCH_SIZE]
        for start in range(0, len(encoded) - LIMIT_BATCH_SIZE + 1, LIMIT_BATCH_SIZE)
    ]
    model.backend.run(batches[0])
    done = [0] * count_cores()
    stop = time.monotonic() + seconds

    def work(worker: int) -> None:
        turn = worker * len(batches) // len(done)
        while time.monotonic() < stop:
            # Steps through the lengths, so that a short run sees short and long ones alike.
            done[worker] += len(model.backend.run(batches[turn * 7 % len(batches)]))
            turn += 1

    threads = [threading.Thread(target=work, args=[worker]) for worker in range(len(done))]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - started)


def run_load(port: int, path: str, clients: int, seconds: float, file: Path) -> dict[str, float]:
    """One run of bench/load.py, in a process of its own."""
    command = [sys.executable, "bench/load.py", str(port), path, str(clients), str(seconds)]
    result = subprocess.run([*command, str(file)], cwd=ROOT, capture_output=True, check=True)
    found: dict[str, float] = json.loads(result.stdout)
    if found["failed"]:
        raise RuntimeError(f"{path}: {found['failed']} answers were not 200.")
    return found


def measure_agreement(models: dict[str, BareModel], texts: list[str]) -> dict[str, float]:
    """Shares of texts with the label of fp32; for int8 also in batches against one by one."""

    def labels(model: BareModel, size: int) -> list[str]:
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        return [answer["output"]["label"] for part in parts for answer in model(part)]

    def same(one: list[str], other: list[str]) -> float:
        return sum(a == b for a, b in zip(one, other, strict=True)) / len(texts)

    batched = {name: labels(model, LIMIT_BATCH_SIZE) for name, model in models.items()}
    shares = {name: same(found, batched["fp32"]) for name, found in batched.items()}
    return shares | {
        "int8, batches of 16 against one by one": same(batched["int8"], labels(models["int8"], 1))
    }


def measure_round(
    servers: list[Server], models: dict[str, BareModel], file: Path, seconds: float
) -> dict[str, dict[str, Any]]:
    """Requests a second (and latencies), and the versions' limits, by name and clients."""
    texts = json.loads(file.read_text())
    paths = {
        **{f"{version}": (servers[0], f"/models/{version}/predict") for version in models},
        **{server.name: (server, server.path) for server in servers[1:]},
    }
    limits: dict[str, Any] = {name: {} for name in models}
    loads: dict[str, Any] = {name: {} for name in paths}
    for clients in CLIENT_COUNTS:
        for name, (server, path) in paths.items():
            # Half before and half after what it is compared with: the machine's speed changes.
            halves = [measure_limit(models[name], texts, seconds / 2)] if name in models else []
            with keep_awake(server):
                loads[name][clients] = run_load(server.port, path, clients, seconds, file)
            if name in models:
                halves.append(measure_limit(models[name], texts, seconds / 2))
                limits[name][clients] = statistics.mean(halves)
    return {"limit": limits, "load": loads}


def compute_ratios(rounds: list[dict[str, dict[str, Any]]]) -> dict[str, float]:
    """Medians over the rounds of our rate by each peer's best setting and by the limit."""

    def rate(one: dict[str, Any], name: str, clients: int) -> float:
        """The best rate among the settings of a server."""
        return max(
            row[clients]["per_second"]
            for setting, row in one["load"].items()
            if setting.split(",")[0] == name
        )

    names = {setting.split(",")[0] for setting in rounds[0]["load"]}
    results = {}
    for clients in CLIENT_COUNTS:
        for ours in rounds[0]["limit"]:
            results[f"{ours} / limit at {clients}"] = statistics.median(
                rate(one, ours, clients) / one["limit"][ours][clients] for one in rounds
            )
            for other in sorted(names - set(rounds[0]["limit"])):
                results[f"{ours} / {other} at {clients}"] = statistics.median(
                    rate(one, ours, clients) / rate(one, other, clients) for one in rounds
                )
    return results


def read_texts(count: int) -> tuple[str, list[str]]:
    """Where sentences come from, and the sentences: written by people where the data is there."""
    data = Path(os.environ.get("DYNABENCH_DATA") or ROOT.parent / "shared" / "data")
    file = data / "dynasent-r1-dev.jsonl.gz"
    if file.exists():
        with gzip.open(file, "rt") as lines:
            return file.name, [json.loads(line)["input"]["text"] for line in lines][:count]
    return "sentiment seeds", [row["text"] for row in read_seed_rows("sentiment")][:count]


def measure(model: Path, home: Path, options: Namespace) -> dict[str, Any]:
    """The whole run as one object."""
    seconds, turns = (1.0, 1) if options.quick else (options.seconds, options.rounds)
    source, texts = read_texts(320 if options.quick else 3600)
    results: dict[str, Any] = {"machine": describe_machine()}
    servers = list_servers(model, home, options.peers, quick=options.quick)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file, log = Path(folder, "texts.json"), Path(folder, "log")
        file.write_text(json.dumps(texts[:640]))
        ours = {name: b for name, b in BACKENDS.items() if not options.quick or name != "bf16"}
        stack.enter_context(run_server(servers[0], log))
        for name in ours:  # first, so that the others find the ONNX files
            wait_for_answer(servers[0], f"/models/{name}/predict", texts[0], log)
        BareModel(str(model), home / "serving", backend="onnx", precision="fp32", padded=True)
        for server in servers[1:]:
            stack.enter_context(run_server(server, log))
        for server in servers[1:]:
            with keep_awake(server):
                wait_for_answer(server, server.path, texts[0], log)
        models = {
            name: BareModel(str(model), home / "serving", backend=backend, precision=name)
            for name, backend in ours.items()
        }
        rounds = [measure_round(servers, models, file, seconds) for _ in range(turns)]
    results["ratios"] = compute_ratios(rounds)
    results["verdict_page"] = measure_verdict_page(
        model, 60 if options.quick else 300, find_free_port
    )
    slow = "home_while_slow / home"
    results["ratios"][slow] = results["verdict_page"].pop(slow)
    results["bars"] = {
        name: {"wanted": bar, "found": results["ratios"].get(name)} for name, bar in BARS.items()
    }
    results["agreement"] = {
        "sentences": source,
        "count": len(texts),
        **measure_agreement(models, texts),
    }
    results["machine"]["load_average_at_end"] = os.getloadavg()[0]
    results["seconds"], results["rounds"] = seconds, rounds
    return results


def measure_here() -> dict[str, Any]:
    """Return a short round of a tiny model, whose server is a copy of this process."""
    from bench.prepared import build_tiny_model_here, run_manage_here, set_up_site_here

    home, port = set_up_site_here(), find_free_port()
    model = build_tiny_model_here()
    bare = BareModel(str(model), home / "serving", backend="torch", precision="fp32")
    named = f"fp32={model},backend=torch,precision=fp32"  # nothing is exported, which takes long
    texts = read_texts(2 * LIMIT_BATCH_SIZE)[1]
    (file := home / "texts.json").write_text(json.dumps(texts))
    url = f"http://127.0.0.1:{port}/models/fp32/health"
    with run_manage_here(url, "serve_model", f"--port={port}", named):
        one = measure_round([Server("ours", port, "", [])], {"fp32": bare}, file, 0.1)
    return {"machine": describe_machine(), "ratios": compute_ratios([one]), "rounds": [one]}


def print_results(results: dict[str, Any]) -> None:
    """Medians a person can read."""
    print(f"{results['machine']}\n{results['versions']}\n")
    rounds = results["rounds"]
    print(f"{'requests a second with clients':34}" + "".join(f"{c:>10}" for c in CLIENT_COUNTS))
    for name in rounds[0]["load"]:
        _print_line(
            name, [[one["load"][name][c]["per_second"] for one in rounds] for c in CLIENT_COUNTS]
        )
    for name in rounds[0]["limit"]:
        _print_line(
            f"{name}, limit", [[one["limit"][name][c] for one in rounds] for c in CLIENT_COUNTS]
        )
    print("\nratios (median of the rounds)")
    for name, ratio in results["ratios"].items():
        bar = BARS.get(name)
        print(f"{name:34}{ratio:10.2f}" + (f"   wanted {bar}" if bar else ""))
    page = ", ".join(f"{name} {value:.1f}" for name, value in results["verdict_page"].items())
    print(f"\nverdict page (ms, medians; wanted: page minus model at most 15): {page}")
    print(f"\nagreement with fp32: {results['agreement']}")


def _print_line(name: str, cells: list[list[float]]) -> None:
    print(f"{name:34}" + "".join(f"{statistics.median(cell):10.0f}" for cell in cells))


def main() -> None:
    parser = build_parser(__doc__, quick="under a minute, one short round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--peers", default=sys.executable, help="Python that has the peers")
    default = os.environ.get("DYNABENCH_HOME") or ROOT / "var"
    parser.add_argument("--home", type=Path, default=default, help="where models are kept")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if options.smoke:
        results = measure_here()
    else:
        home = options.home.resolve()
        results = measure(install_starter("sentiment", home), home, options)
    lower = {"home_while_slow / home"}
    results = add_origin(results, *PACKAGES, lower=lower) | {"machine": results["machine"]}
    print(json.dumps(results)) if options.json else print_results(results)


if __name__ == "__main__":
    main()
