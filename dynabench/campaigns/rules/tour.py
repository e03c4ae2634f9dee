"""The guided tour's text: steps of Markdown in which lines stand for items of the task. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from core.text.words import with_lf

BREAK = re.compile(r"^---[ \t]*$", re.MULTILINE)
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PLACE = re.compile(
    rf"^\{{(?:(item)(?: ({UUID}))?|(context) (\d{{1,9}}))\}}[ \t]*$", re.MULTILINE | re.ASCII
)


class Named(NamedTuple):
    """A place for an example, by its UUID or any (an empty name), or for a context by its id."""

    kind: Literal["item", "context"]
    name: str = ""


Part = str | Named


def steps_of(tour: str) -> list[list[Part]]:
    """Each step's Markdown and places, in order; steps without any are left out."""
    steps = [list(_parts(step)) for step in BREAK.split(with_lf(tour))]
    return [step for step in steps if step]


def _parts(step: str) -> Iterator[Part]:
    start = 0
    for found in PLACE.finditer(step):
        if words := step[start : found.start()].strip():
            yield words
        start = found.end()
        yield Named("context", found[4]) if found[3] else Named("item", found[2] or "")
    if words := step[start:].strip():
        yield words


def named_in(steps: Sequence[Sequence[Part]]) -> list[Named]:
    """All places of a tour."""
    return [part for step in steps for part in step if isinstance(part, Named)]
