"""Programs of `bench/` find what they use of the product, also in code that they give to others.

They run too long for each check; what breaks them is mostly a function that moved.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.variables import APPS

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "bench").glob("*.py"))
OURS = (*APPS, "bench")


def imports_of(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of everything of ours that code imports, at its top and within functions.

    A text that is itself code counts as such: programs run it in the process of a site.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(OURS):
            yield from ((node.module, one.name) for one in node.names if one.name != "*")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from imports_of(parsed(node.value))


def parsed(text: str) -> ast.AST:
    """A text as code, if it is code with imports; else nothing."""
    try:
        return ast.parse(text) if "import " in text else ast.Module([], [])
    except SyntaxError:
        return ast.Module([], [])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_finds_what_it_uses(program):
    for module, name in imports_of(ast.parse(program.read_text())):
        found = importlib.import_module(module)
        assert hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}"), (module, name)
