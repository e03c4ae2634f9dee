"""Registries: classes in the files of a folder that are found by themselves, or refused.

A base class lists in PARTS what each member must bring. Whoever adds a member writes one file:
importing it registers the class, and a class that lacks a part is refused at that moment, not when
somebody first opens the page that needs the part.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def import_modules(path: Iterable[str], package: str) -> list[ModuleType]:
    """Import every module of a folder, so that what is in it registers itself; return them.

    path: the package's `__path__`. package: its `__name__`.
    """
    return [import_module(module.name) for module in iter_modules(path, f"{package}.")]


def check_parts(member: type, parts: Sequence[str], noun: str, name: str) -> None:
    """Raise TypeError if a class lacks parts, with the names of all that it lacks.

    An abstract method is lacking. noun, name: of what and which, such as "field type" and "year".
    """
    missing_parts = []
    for part in parts:
        value = getattr(member, part, None)
        if value is None or getattr(value, "__isabstractmethod__", False):
            missing_parts.append(part)
    if missing_parts:
        raise TypeError(f"The {noun} {name} lacks: {', '.join(missing_parts)}.")
