"""docs/testing.md names each fixture, factory and helper, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs/testing.md").read_text()
ROWS = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
NAMED = set(re.findall(r"`(\w+)", ROWS))


def public_functions(file: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def fixtures() -> set[str]:
    """The public fixtures of this project's own, of all folders but tests/servers."""
    names = set()
    for file in TESTS.rglob("conftest.py"):
        if file.parent.name in ("servers", "simulations"):  # run by hand, with few of their own
            continue
        for node in public_functions(file):
            marks = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(mark.startswith("pytest.fixture") for mark in marks):
                names.add(node.name)
    return {name for name in names if not name.startswith("django_db_")}  # of pytest-django


def test_the_page_names_each_fixture_factory_and_helper() -> None:
    factories = {node.name for node in public_functions(TESTS / "support/factories.py")}
    helpers = {file.stem for file in (TESTS / "support").glob("[!_]*.py")} - {"factories"}
    there = fixtures() | factories | helpers
    assert not there - NAMED, "docs/testing.md lacks a row for these"
    folders = {"tests"}
    assert not NAMED - there - folders, "docs/testing.md names what is not there"
