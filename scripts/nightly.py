"""Print the nightly parts of the tests that changed files call for, or with --all every part.

A part is what takes long and seldom tells something new. `.ci/run` names its parts in NIGHTLY.
Compared is with the commit in CI_BASE, else with where this branch left origin's, else with the
commit before.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = {
    "architectures": (
        *("requirements.txt", "serving/*", "evaluation/isolation/sandbox/harness/*"),
        *("tests/support/architectures.py", "tests/unit/evaluation/test_architectures.py"),
    ),
    "cluster": (
        *("requirements-ray.txt", "evaluation/runs/*", "evaluation/isolation/sandbox/*"),
        *("evaluation/training/*", "tests/support/cluster.py", "tests/integration/test_cluster.py"),
    ),
    "debian13": (
        *("requirements*.txt", "pyproject.toml", "test", ".ci/run"),
        *("scripts/debian13.sh", "scripts/venv.sh"),
    ),
    "fuzz": (
        *("docs/openapi-v1.yaml", "core/web/api*", "requirements*.txt"),
        *("tests/api/test_schemathesis.py", "tests/api/world.py"),
    ),
    "harnesses": (
        *(
            "requirements*.txt",
            "evaluation/dataset_releases/*",
            "evaluation/isolation/inference/elsewhere.py",
        ),
        *("evaluation/scoring/*", "serving/generation/*"),
        "tests/integration/test_elsewhere.py",
    ),
    "releases": (
        *("*/migrations/*.py", "tests/releases/*", "tests/support/old_databases.py"),
        "tests/integration/test_upgrade.py",
    ),
}
"""Patterns of the files by which a part may fail; `*` is for folders too."""


def parts_of(files: Iterable[str]) -> list[str]:
    """The parts that changes of these files call for."""
    files = list(files)
    return [
        part
        for part, patterns in PARTS.items()
        if any(fnmatchcase(file, pattern) for file in files for pattern in patterns)
    ]


def changed_files() -> list[str] | None:
    """What was changed since the base; None if git does not know."""
    head = _git("rev-parse", "HEAD")
    bases = [_git("merge-base", "HEAD", one) for one in (os.environ.get("CI_BASE"), "origin/HEAD")
             if one]  # fmt: skip
    base = next((one for one in bases if one and one != head), "HEAD^")
    changed = _git("diff", "--name-only", base)
    return None if changed is None else changed.splitlines()


def _git(*command: str) -> str | None:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return None if done.returncode else done.stdout.strip()


if __name__ == "__main__":
    if "--all" in sys.argv:
        print(*PARTS)
    elif (files := changed_files()) is None:
        print("Which files changed is unknown: NIGHTLY=1 runs the nightly parts.", file=sys.stderr)
    else:
        print(*parts_of(files))
