"""Which changes call for what takes long (`scripts/nightly.py`)."""

import re
import subprocess
import sys
from fnmatch import fnmatchcase

import pytest

from scripts.nightly import PARTS, ROOT, parts_of
from scripts.repository import changed_files


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ("tasks/migrations/0099_more.py", ["releases"]),
        ("dynabench/campaigns/migrations/0099_more.py", ["releases"]),
        ("requirements-web.txt", ["debian13", "fuzz", "harnesses", "local_model"]),
        ("docs/openapi-v1.yaml", ["fuzz"]),
        (
            "evaluation/isolation/sandbox/harness/loading.py",
            ["architectures", "cluster", "starters"],
        ),
        ("leaderboard/ranking/pareto.py", ["coverage"]),
        ("templates/own/_preview.html", ["engines", "looks"]),
        ("docs/developers.md", []),
    ],
)
def test_a_change_calls_for_what_may_fail_by_it(file: str, parts: list[str]) -> None:
    assert parts_of(["README.md", file]) == parts


def test_each_pattern_is_of_files_that_are_there() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = listed.stdout.splitlines()
    if not files:
        pytest.skip("no work tree of git")
    for pattern in (one for patterns in PARTS.values() for one in patterns):
        assert any(fnmatchcase(file, pattern) for file in files), pattern


def test_each_part_is_one_that_tests_or_the_script_run_and_each_of_these_is_a_part() -> None:
    written = [(ROOT / "test").read_text()]
    written += [file.read_text() for file in (ROOT / "tests").rglob("test_*.py")]
    named = re.findall(
        r'(?:mark\.nightly|at_night)\("(\w+)"\)|NIGHTLY:-\} " = \*" (\w+) "', "".join(written)
    )
    assert {one or other for one, other in named} == PARTS.keys()


def test_without_a_commit_to_compare_with_every_part_runs() -> None:
    assert changed_files("0" * 40) is None
    script = [sys.executable, "scripts/nightly.py", "0" * 40]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*PARTS]
