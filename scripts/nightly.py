"""Print the nightly parts of the tests that changed files call for, or with --all every part.

    python scripts/nightly.py [--all | COMMIT]

A part takes long and can seldom fail by a change of other files. `.ci/run` names the parts of its
change in NIGHTLY, compared as `scripts.repository.changed_files` says; `./test --changed` does so
for COMMIT. Where git knows no commit to compare with, every part is called for.
"""

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script it would find only its own folder

from scripts.repository import PURE_FILES, changed_files  # noqa: E402

PARTS = {
    "architectures": (
        *("requirements.txt", "serving/*", "evaluation/isolation/*", "evaluation/training/*"),
        *(
            "evaluation/contract.py",
            "tests/support/architectures.py",
            "tests/unit/evaluation/test_architectures.py",
        ),
    ),
    "benches": ("bench/*", "tests/integration/test_benches.py"),
    "cluster": (
        *("requirements-ray.txt", "evaluation/runs/*", "evaluation/isolation/sandbox/*"),
        *("evaluation/training/*", "tests/support/cluster.py", "tests/integration/test_cluster.py"),
    ),
    "coverage": (*PURE_FILES, "tests/unit/*", "tests/test_translation.py", "pyproject.toml"),
    "debian13": (
        *("requirements*.txt", "pyproject.toml", "test", ".ci/run"),
        *("scripts/debian13.sh", "scripts/venv.sh"),
    ),
    "engines": (
        *("templates/*", "static/*", "core/web/*", "annotation/writing/*", "validation/judging/*"),
        *("tests/engines/*", "tests/support/engines.py"),
    ),
    "fields": (
        *("tasks/config/field_types/*", "tasks/config/components.py", "annotation/writing/*"),
        *("validation/judging/*", "evaluation/dataset_releases/*", "templates/annotation/*"),
        *("templates/components/*", "templates/validation/*", "static/*"),
        "tests/browser/test_every_field.py",
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
    "local_model": (
        *("serving/*", "requirements*.txt", "tasks/targets/*", "annotation/writing/*"),
        *("static/*", "templates/annotation/*", "tests/browser/test_chat.py"),
    ),
    "looks": (
        *("templates/*", "static/*", "*/templatetags/*", "*/forms.py", "core/web/*"),
        *("core/charts.py", "dynabench/manage/*", "tests/browser/*"),
    ),
    "releases": (
        *("*/migrations/*.py", "tests/releases/*", "tests/support/old_databases.py"),
        "tests/integration/test_upgrade.py",
    ),
    "starters": (
        *("requirements.txt", "serving/*", "evaluation/training/*", "evaluation/isolation/*"),
        *("evaluation/seeds.py", "evaluation/task_shape.py", "evaluation/scoring/*"),
        *("tasks/official/*", "tasks/config/*", "tasks/contexts/scenes/*"),
        *("bench/reference_talks.py", "tests/unit/evaluation/test_starters.py"),
        *("tests/unit/evaluation/test_picture_starter.py", "tests/unit/evaluation/test_looking.py"),
    ),
}
"""Patterns of the files by which a part may fail; `*` is for folders too."""


def parts_of(files: Iterable[str]) -> list[str]:
    """Return the parts that changes of these files call for."""
    files = list(files)
    return [
        part
        for part, patterns in PARTS.items()
        if any(fnmatchcase(file, pattern) for file in files for pattern in patterns)
    ]


if __name__ == "__main__":
    if "--all" in sys.argv:
        print(*PARTS)
    elif (files := changed_files(*sys.argv[1:2])) is None:
        print("Which files changed is unknown, so every nightly part runs.", file=sys.stderr)
        print(*PARTS)
    else:
        print(*parts_of(files))
