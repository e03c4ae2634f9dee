"""Page forms and API requests that are doors to the same service, found in the product's source."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.variables import APPS

ROOT = Path(__file__).parents[2]


LOOKUPS = {"core.accounts.services.get_annotator", "tasks.services.find_account_within_limit"}
"""What many views ask for people, whatever they do then."""


class Door(NamedTuple):
    """What a function of the product uses: services, forms, and the serializers of requests."""

    services: set[str]
    forms: set[Any]
    requests: set[Any]


def doors() -> Iterator[Door]:
    """Yield each function that calls a service, with what its own module's helpers use too."""
    for room in APPS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text()
            # Most modules call no service, and need not be parsed.
            if "services" in text and "migrations" not in path.parts:
                yield from doors_of(path, ast.parse(text))


def doors_of(path: Path, tree: ast.Module) -> Iterator[Door]:
    """Yield the doors of a module."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    imported = {
        name.asname or name.name: f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            imported[node.name] = f"{module}.{node.name}"
    helpers = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.Module | ast.ClassDef):
            continue
        for function in scope.body:
            if isinstance(function, ast.FunctionDef):
                nodes = list(ast.walk(function))
                for node in list(nodes):
                    if isinstance(node, ast.Name) and node.id in helpers:
                        nodes += ast.walk(helpers[node.id])
                yield _door(nodes, imported)


def _door(nodes: list[ast.AST], imported: dict[str, str]) -> Door:
    """Return what the nodes of a function use."""
    door = Door(set(), set(), set())
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="read"), args=[ast.Name(id=name), *_]):
                door.requests.add(_value(imported.get(name, "")))
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                if imported.get(module, "").endswith("services"):
                    door.services.add(f"{imported[module]}.{name}")
            case ast.Name(id=name) if name in imported:
                module = imported[name].rpartition(".")[0]
                if module.endswith("services") and name.islower():
                    door.services.add(imported[name])
                elif name.endswith("Form") and hasattr(_value(imported[name]), "base_fields"):
                    door.forms.add(_value(imported[name]))
    return door


def _value(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute, None) if module else None


def pairs() -> set[tuple[Any, Any]]:
    """Return each serializer with each form whose functions call a service together.

    A view that gives the request to a form itself is no pair: there the form alone decides.
    """
    by_service: dict[str, tuple[set[Any], set[Any]]] = defaultdict(lambda: (set(), set()))
    for door in doors():
        for service in door.services - LOOKUPS:
            if door.requests and not door.forms:
                by_service[service][0].update(door.requests)
            elif door.forms and not door.requests:
                by_service[service][1].update(door.forms)
    found = set()
    for serializers, page_forms in by_service.values():
        found |= set(product(serializers, page_forms))
    return found
