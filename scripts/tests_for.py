"""Name the tests that a change needs.

    python scripts/tests_for.py [COMMIT]

Compares the work tree with a commit (HEAD) and prints test files, one a line: those that changed,
those that import or name a changed module, or one that imports it inside the same room, those that
have the name of a changed file or its folder, and those of changed templates, documents and
scripts. `./test --changed` runs them; all tests run before a change is merged all the same, since
any page may use any module.
"""

import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script it would find only its own folder; grimp, the rooms

from scripts.repository import PACKAGES, changed_files  # noqa: E402

ALWAYS = ("tests/test_house.py", "tests/test_readability.py")
BY_PATTERN = (
    (r"\.md$", ("tests/unit/test_docs.py",)),
    (r"/migrations/", ("tests/unit/test_migrations.py", "tests/integration/test_upgrade.py")),
    (r"^locale/", ("tests/unit/test_catalogues.py", "tests/test_translation.py")),
    (r"^static/", ("tests/browser",)),
    (r"^requirements.*\.txt$", ("tests/unit/test_licences.py",)),
    (
        r"^(dynabench/client/|scripts/client_|docs/openapi)",
        ("tests/unit/client", "tests/integration/test_client_wheel.py"),
    ),
    (r"^evaluation/isolation/sandbox/harness/", ("tests/docker",)),
    (r"^bench/", ("tests/unit/test_benches.py",)),
    (r"^deploy/", ("tests/unit/test_deploy.py",)),
)
"""Tests of files that no test imports."""
VAGUE = {"__init__", "views", "services", "selectors", "models", "forms", "urls", "api", "rules"}
"""Names of files that say nothing of their subject."""


@cache
def test_texts() -> dict[str, str]:
    """Return the text of each test file by its path."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text() for file in files}


def module_of(path: str) -> str:
    """Return the dotted name of a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def modules_beside(modules: set[str]) -> set[str]:
    """Return the modules, and what imports one of them inside its own room."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    beside = set(modules)
    for module in modules & graph.modules:
        for importer in graph.find_modules_that_directly_import(module):
            if importer.split(".")[0] == module.split(".")[0]:
                beside.add(importer)
    return beside


def modules_with_template(template: str) -> set[str]:
    """Return the modules of the product that name a template."""
    name = template.removeprefix("templates/")
    modules = set()
    for room in PACKAGES:
        for file in (ROOT / room).rglob("*.py"):
            if name in file.read_text():
                modules.add(module_of(str(file.relative_to(ROOT))))
    return modules


def tests_naming(modules: Iterable[str]) -> set[str]:
    """Return test files that import a module or name it in a string, helpers' users included."""
    names = "|".join(re.escape(module) for module in sorted(modules))
    if not names:
        return set()
    parents = "|".join(
        rf"from {re.escape(module.rpartition('.')[0])} import [^\n]*\b{module.rpartition('.')[2]}\b"
        for module in sorted(modules)
        if "." in module
    )
    rule = re.compile(rf"(?<![\w.])(?:{names})\b|{parents or '(?!)'}")
    naming = {path for path, text in test_texts().items() if rule.search(text)}
    helpers = {module_of(path) for path in naming if not Path(path).name.startswith("test_")}
    tests = {path for path in naming if Path(path).name.startswith("test_")}
    if helpers:
        users = "|".join(re.escape(helper) for helper in sorted(helpers))
        tests |= {
            path
            for path, text in test_texts().items()
            if Path(path).name.startswith("test_") and re.search(rf"from (?:{users}) import", text)
        }
    return tests


def tests_named_like(file: str) -> set[str]:
    """Return the tests that have the name of a file, or of its folder, in theirs.

    Pages are tested by their addresses, so no import tells which tests show a view or a template.
    """
    path = Path(file)
    words = {path.stem.strip("_"), path.parent.name} - VAGUE - set(PACKAGES)
    named = set()
    for test in test_texts():
        test_name = Path(test).name
        if test_name.startswith("test_") and words & set(re.split(r"[_.]", test_name)):
            named.add(test)
    return named


def tests_for(files: Iterable[str]) -> list[str]:
    """Return the test files and folders that changes of these files need."""
    tests = set(ALWAYS)
    modules = set()
    for file in files:
        if file.startswith("tests/") and file.endswith(".py"):
            if Path(file).name.startswith("test_"):
                tests.add(file)
            else:
                modules.add(module_of(file))
        elif file.endswith(".py"):
            modules.add(module_of(file))
        elif file.startswith("templates/"):
            modules |= modules_with_template(file)
        if file.startswith("templates/") or file.endswith(".py"):
            tests |= tests_named_like(file)
        for pattern, named in BY_PATTERN:
            if re.search(pattern, file):
                tests |= set(named)
    tests |= tests_naming(modules_beside(modules))
    return sorted(test for test in tests if (ROOT / test).exists())


if __name__ == "__main__":
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    commit = named[0] if named else "HEAD"
    files = changed_files(commit)
    if files is None:
        sys.exit(f"git knows no commit {commit}.")
    print(*tests_for(files), sep="\n")
