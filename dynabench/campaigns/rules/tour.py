"""The text of a guided tour: steps of Markdown, with placeholders for items of the task. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from core.text.words import normalise_line_ends

STEP_BREAK_PATTERN = re.compile(r"^---[ \t]*$", re.MULTILINE)
UUID_PATTERN = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PLACEHOLDER_PATTERN = re.compile(
    rf"^\{{(?:(item)(?: ({UUID_PATTERN}))?|(context) (\d{{1,9}}))\}}[ \t]*$",
    re.MULTILINE | re.ASCII,
)


class Placeholder(NamedTuple):
    """A placeholder for an item of the task in a tour.

    name: an example's UUID, a context's id, or "" for any example.
    """

    kind: Literal["item", "context"]
    name: str = ""


Part = str | Placeholder


def parse_tour(tour: str) -> list[list[Part]]:
    """Return the Markdown and placeholders of each step, in order, without empty steps."""
    steps = (
        list(_parse_step(step)) for step in STEP_BREAK_PATTERN.split(normalise_line_ends(tour))
    )
    return list(filter(None, steps))


def _parse_step(step: str) -> Iterator[Part]:
    """Yield the Markdown and placeholders of a step, in order."""
    start = 0
    for match in PLACEHOLDER_PATTERN.finditer(step):
        if words := step[start : match.start()].strip():
            yield words
        start = match.end()
        _item, uuid, context, context_id = match.groups()
        if context:
            yield Placeholder("context", context_id)
        else:
            yield Placeholder("item", uuid or "")
    if words := step[start:].strip():
        yield words


def list_placeholders(steps: Sequence[Sequence[Part]]) -> list[Placeholder]:
    """Return all placeholders of a tour."""
    return [part for part in chain.from_iterable(steps) if isinstance(part, Placeholder)]
