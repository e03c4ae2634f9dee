"""How much of a task the confirmed errors of a person or an arm cover. Pure.

A task is divided into cells: each topic with each challenge, and with none. A topic is a tag of the
texts, or where texts have no tags, one text.
"""

from collections.abc import Collection, Iterable
from itertools import product
from typing import NamedTuple


class TaskCell(NamedTuple):
    """A part of a task: a topic, and the challenge that writers took up; empty for none."""

    topic: str
    challenge: str


def list_cells(topics: Iterable[str], challenges: Iterable[str]) -> frozenset[TaskCell]:
    """Return all cells of a task: each topic with no challenge, and with each of them.

    >>> len(list_cells(["news", "sport"], ["negation"]))
    4
    """
    return frozenset(TaskCell(*pair) for pair in product(set(topics), {"", *challenges}))


def compute_coverage(cells: Collection[TaskCell], filled: Iterable[TaskCell]) -> float | None:
    """Return the share of the cells that are filled, 0 to 1; None if there are none.

    filled: the cells of confirmed errors. Those that the task no longer has don't count.

    >>> compute_coverage(list_cells(["news", "sport"], []), [TaskCell("news", "")] * 2)
    0.5
    """
    if not cells:
        return None
    return len(set(filled) & set(cells)) / len(cells)
