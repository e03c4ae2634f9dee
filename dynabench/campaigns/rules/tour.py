"""The guided tour's text: steps of Markdown in which lines stand for items of the task. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from core.text.words import with_lf

BREAK = re.compile(r"^---[ \t]*$", re.MULTILINE)
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PLACE = re.compile(
    rf"^\{{(?:(item)(?: ({UUID}))?|(context) (\d{{1,9}}))\}}[ \t]*$", re.MULTILINE | re.ASCII
)


class Named(NamedTuple):
    """A placeholder for an example (by UUID; an empty name: any) or a context (by id)."""

    kind: Literal["item", "context"]
    name: str = ""


Part = str | Named


def tour_steps(tour: str) -> list[list[Part]]:
    """Return the Markdown and placeholders of each step, in order, without empty steps."""
    steps = (list(_parts(step)) for step in BREAK.split(with_lf(tour)))
    return list(filter(None, steps))


def _parts(step: str) -> Iterator[Part]:
    """Yield the Markdown and placeholders of a step, in order."""
    start = 0
    for match in PLACE.finditer(step):
        if words := step[start : match.start()].strip():
            yield words
        start = match.end()
        _item, uuid, context, context_id = match.groups()
        if context:
            yield Named("context", context_id)
        else:
            yield Named("item", uuid or "")
    if words := step[start:].strip():
        yield words


def named_in(steps: Sequence[Sequence[Part]]) -> list[Named]:
    """Return all placeholders of a tour."""
    return [part for part in chain.from_iterable(steps) if isinstance(part, Named)]
