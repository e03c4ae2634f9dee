"""What docstrings say of functions holds: their examples run, and their parameters exist."""

import ast
import doctest
import importlib
import re

import pytest

from scripts.readability import FUNCTIONS, ROOT, product_files

FILES = [path for path in product_files() if path.parts[-2:] != ("client", "plain.py")]
WITH_EXAMPLES = [path for path in FILES if "    >>> " in path.read_text()]


@pytest.mark.own_pace
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_run(path):
    module_name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    module = importlib.import_module(module_name.removesuffix(".__init__"))
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted
    assert not results.failed


def described_parameters(docstring):
    """The names in the section "Parameters" of a docstring."""
    _, _, section = docstring.partition("Parameters\n----------\n")
    section = re.split(r"\n\w+\n-+\n", section)[0]
    names = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names += [name.strip(" *") for name in line.partition(" : ")[0].split(",")]
    return names


def parameters(function):
    """The names of a function's arguments."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def wrong_parameters(text):
    """Parameters that docstrings describe and functions do not have."""
    wrong = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FUNCTIONS):
            names = described_parameters(ast.get_docstring(node) or "")
            wrong += [(node.name, name) for name in names if name not in parameters(node)]
    return wrong


def test_a_wrong_parameter_is_found():
    code = """def draw({}):
    '''Draw.

    Parameters
    ----------
    low, high
        Ends.
    '''
"""
    assert not wrong_parameters(code.format("low, *, high=1"))
    assert wrong_parameters(code.format("low")) == [("draw", "high")]


def test_described_parameters_exist():
    wrong = {str(path.relative_to(ROOT)): wrong_parameters(path.read_text()) for path in FILES}
    assert not {name: names for name, names in wrong.items() if names}
