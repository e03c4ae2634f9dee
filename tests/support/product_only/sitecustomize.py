"""For a process with this folder on PYTHONPATH: packages that only tests install are not there.

Python imports this file by itself at its start. What it leaves is what requirements.txt brings.
"""

import sys
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]


def pinned(file: str) -> list[Requirement]:
    """What a file pins, and the files that it names."""
    lines = (ROOT / file).read_text().splitlines()
    stated = [line.partition("#")[0].strip() for line in lines]
    own = [Requirement(line) for line in stated if line and not line.startswith("-r")]
    named = [line.split()[1] for line in stated if line.startswith("-r")]
    return own + [one for other in named for one in pinned(other)]


def brought() -> set[str]:
    """Names of the distributions that requirements.txt brings, directly or not."""
    found, waiting = set(), pinned("requirements.txt")
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            try:
                needed = [Requirement(line) for line in requires(name) or []]
            except PackageNotFoundError:
                continue
            for one in needed:
                if one.marker is None or one.marker.evaluate({"extra": extra}):
                    waiting.append(one)
    return {name for name, _ in found}


def tests_own() -> set[str]:
    """Names of the modules that come with other distributions alone."""
    product = brought() | {"pip", "setuptools"}
    return {
        module
        for module, names in packages_distributions().items()
        if not product & {canonicalize_name(name) for name in names}
    }


class Product(PathFinder):
    """Finds what is installed, but nothing that only tests install."""

    hidden = tests_own()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name in cls.hidden:
            return None
        return super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Product
