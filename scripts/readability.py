"""Measure how the product's code reads: density, names and docstrings, for each 1,000 lines.

    python scripts/readability.py                    # every measure, with its limit
    python scripts/readability.py evaluation/runs    # the same of a folder
    python scripts/readability.py --list docstrings tasks    # where they are

Tests and migrations are left out. `tests/test_readability.py` fails when a figure passes its limit.
"""

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script it would find only its own folder

from scripts.repository import PACKAGES  # noqa: E402

PRIVATE_WORDS = {
    *("found", "said", "told", "made", "asked", "wanted", "shown", "kept", "known", "one", "mine"),
    *("given", "held", "part"),
}
"""Names that say how a value was come by and not what it is."""
DOORS = {"get", "post", "put", "patch", "delete", "handle", "save", "clean", "main", "run"}
"""Names that a framework asks for."""
VERBS = set((ROOT / "scripts/verbs.txt").read_text().split())
"""The base forms that a docstring of a function may begin with."""


class Place(NamedTuple):
    """A line of a file that a measure counted, and what stands there."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


class Limit(NamedTuple):
    """How far a measure may go: at most, or at least, so many."""

    value: float
    is_least: bool = False
    is_total: bool = False
    is_percent: bool = False


LIMITS = {
    "comprehensions": Limit(18),
    "double comprehensions": Limit(0),
    "conditional expressions": Limit(10),
    "stars": Limit(4),
    "comments": Limit(35, is_least=True),
    "private words": Limit(3),
    "repeated functions": Limit(15, is_total=True),
    "repeated classes": Limit(0, is_total=True),
    "docstrings": Limit(85, is_least=True, is_percent=True),
}


def product_files(folders: Iterable[str] = ()) -> list[Path]:
    """Return the product's modules, of all rooms or of some folders."""
    listed = subprocess.run(
        ["git", "ls-files", *(folders or PACKAGES)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    paths = [ROOT / name for name in listed if name.endswith(".py")]
    return [path for path in paths if path.exists() and "migrations" not in path.parts]


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def stored_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node gives to values: variables, arguments, attributes, keywords."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.keyword(arg=str() as name):
            yield name


def begins_with_verb(docstring: str) -> bool:
    """Return whether the first word is the base form of a verb that the list has."""
    return docstring.split(maxsplit=1)[0].rstrip(".,:;") in VERBS


def count_node(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield measure and line of what counts in a node of the syntax tree, docstrings apart."""
    match node:
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield "comprehensions", node.lineno
            if len(node.generators) > 1:
                yield "double comprehensions", node.lineno
        case ast.IfExp():
            yield "conditional expressions", node.lineno
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            for item in items:
                if isinstance(item, ast.Starred):
                    yield "stars", item.lineno
    for name in stored_names(node):
        if name in PRIVATE_WORDS:
            yield "private words", node.lineno


def count_docstring(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Yield measure, line and text of a function's docstring: one of all, and one without verb."""
    if not isinstance(node, FUNCTIONS):
        return
    docstring = ast.get_docstring(node)
    if docstring is None:
        return
    first_line = docstring.split("\n")[0]
    yield "all docstrings", node.lineno, first_line
    if not begins_with_verb(docstring):
        yield "docstrings", node.lineno, f"{node.name}: {first_line}"


def measure_file(path: Path) -> dict[str, list[Place]]:
    """Return the places of a module by the measure that counts them."""
    source = path.read_text()
    lines = source.splitlines()
    places: dict[str, list[Place]] = defaultdict(list)
    for node in ast.walk(ast.parse(source)):
        for measure_name, line in count_node(node):
            places[measure_name].append(Place(path, line, lines[line - 1].strip()))
        for measure_name, line, text in count_docstring(node):
            places[measure_name].append(Place(path, line, text))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            places["comments"].append(Place(path, token.start[0], token.string))
    return places


def public_names(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield kind, name and line of each public function and class at the top of a module."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
            if node.name not in DOORS:
                yield "repeated functions", node.name, node.lineno
        elif isinstance(node, ast.ClassDef) and node.name not in {"Command", "Meta"}:
            yield "repeated classes", node.name, node.lineno


def repeated_names(paths: list[Path]) -> dict[str, list[Place]]:
    """Return public functions of one name in three places or more, and classes in four."""
    homes: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for path in paths:
        for kind, name, line in public_names(path):
            homes[kind, name].append(Place(path, line, name))
    least = {"repeated functions": 3, "repeated classes": 4}
    repeated: dict[str, list[Place]] = {kind: [] for kind in least}
    for (kind, _), places in sorted(homes.items()):
        if len(places) >= least[kind]:
            repeated[kind] += places
    return repeated


class Measurement(NamedTuple):
    """The figure of one measure, and the places that make it."""

    figure: float
    places: list[Place]


def measure(paths: list[Path]) -> dict[str, Measurement]:
    """Return what each measure comes to over these modules."""
    places: dict[str, list[Place]] = defaultdict(list)
    lines = 0
    for path in paths:
        lines += len(path.read_text().splitlines())
        for name, counted in measure_file(path).items():
            places[name] += counted
    measurements = {}
    for name, limit in LIMITS.items():
        if limit.is_total or not lines:
            continue
        figure = 1000 * len(places[name]) / lines
        if limit.is_percent:
            figure = 100 * (1 - len(places[name]) / max(1, len(places["all docstrings"])))
        measurements[name] = Measurement(figure, places[name])
    for name, repeated in repeated_names(paths).items():
        names = Counter(place.text for place in repeated)
        measurements[name] = Measurement(len(names), repeated)
    return measurements


def keeps(limit: Limit, figure: float) -> bool:
    """Return whether a figure stays within its limit."""
    return figure >= limit.value if limit.is_least else figure <= limit.value


def main() -> None:
    """Print the figures of some folders, or the places of one measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", help="the whole product where none is named")
    parser.add_argument("--list", choices=LIMITS, help="print the places of this measure")
    options = parser.parse_args()
    measurements = measure(product_files(options.folders))
    if options.list:
        for place in measurements[options.list].places:
            print(place)
        return
    for name, limit in LIMITS.items():
        bound = "at least" if limit.is_least else "at most"
        unit = "%" if limit.is_percent else "names" if limit.is_total else "in 1,000 lines"
        print(f"{name:25}{measurements[name].figure:7.1f}  {bound} {limit.value:g} {unit}")
    if not all(keeps(limit, measurements[name].figure) for name, limit in LIMITS.items()):
        sys.exit(1)


if __name__ == "__main__":
    main()
