"""Which environment variables the code reads."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
APPS = (
    "core",
    "serving",
    "dynabench",
    "tasks",
    "annotation",
    "validation",
    "evaluation",
    "leaderboard",
)
READERS = re.compile(r"read_env_\w+|os\.(environ|environ\.get|getenv)")


@cache
def variables(*folders: str) -> frozenset[str]:
    """Environment variables that Python files below the folders read by a literal name."""
    found = set()
    for folder in folders:
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                found |= read_here(node)
    return frozenset(found)


def read_here(node: ast.AST) -> set[str]:
    """The variables that one expression reads.

    >>> read_here(ast.parse('read_env_secret("KEY")', mode="eval").body) == {"KEY", "KEY_FILE"}
    True
    """
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        reader, name = node.value, node.slice
    elif isinstance(node, ast.Call) and node.args:
        reader, name = node.func, node.args[0]
    else:
        return set()
    said = ast.unparse(reader)
    if not READERS.fullmatch(said) or not isinstance(name, ast.Constant):
        return set()
    return {name.value, f"{name.value}_FILE"} if said == "read_env_secret" else {name.value}
