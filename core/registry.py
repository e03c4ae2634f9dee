"""Registries of classes that are found automatically in the files of a folder.

A base class lists in PARTS what each member must define. To add a member, write one file: importing
it registers the class. A class that lacks a part is refused at import, not when somebody first
opens the page that needs the part.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def import_modules(path: Iterable[str], package: str) -> list[ModuleType]:
    """Import every module of a package, so that its members register; return the modules.

    path: the package's `__path__`. package: its `__name__`.
    """
    return [import_module(module.name) for module in iter_modules(path, f"{package}.")]


def check_parts(member: type, parts: Sequence[str], noun: str, name: str) -> None:
    """Raise TypeError, naming all missing parts, if a class lacks some.

    An abstract method counts as missing. noun, name: the kind and the name of the class for the
    message, such as "field type" and "year".
    """
    missing_parts = []
    for part in parts:
        value = getattr(member, part, None)
        # A base class may declare a part with None, or as an abstract method.
        if value is None or getattr(value, "__isabstractmethod__", False):
            missing_parts.append(part)
    if missing_parts:
        raise TypeError(f"The {noun} {name} lacks: {', '.join(missing_parts)}.")


def register_member(
    member: Any, name: str, registry: dict[str, Any], *, noun: str, max_chars: int | None = None
) -> None:
    """Set a class's name, and add an instance of it to a registry.

    Raises TypeError if the class lacks one of its PARTS, or if the name is taken or too long.

    noun: the kind of the class, such as "notice". max_chars: the width of the column that stores
    names.
    """
    check_parts(member, member.PARTS, noun, name)
    if name in registry:
        raise TypeError(f"There is a {noun} {name} already.")
    if max_chars is not None and len(name) > max_chars:
        raise TypeError(f"The name {name} has more than {max_chars} letters.")
    member.name = name
    registry[name] = member()
