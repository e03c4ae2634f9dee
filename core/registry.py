"""Registries: classes in the files of a folder that are found by themselves, or refused.

A base class lists in PARTS what each member must bring. Whoever adds a member writes one file:
importing it registers the class, and a class that lacks a part is refused at that moment, not when
somebody first opens the page that needs the part.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


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


def register_member(
    member: Any, name: str, registry: dict[str, Any], *, noun: str, max_chars: int | None = None
) -> None:
    """Give a class its name, and put an instance of it into a registry.

    Raises TypeError if the class lacks one of its PARTS, or if the name is taken or too long.

    noun: what it is, such as "notice". max_chars: the width of the column that stores names.
    """
    check_parts(member, member.PARTS, noun, name)
    if name in registry:
        raise TypeError(f"There is a {noun} {name} already.")
    if max_chars is not None and len(name) > max_chars:
        raise TypeError(f"The name {name} has more than {max_chars} letters.")
    member.name = name
    registry[name] = member()
