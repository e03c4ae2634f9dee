"""What a task lacks before its first round opens; pure."""

from dataclasses import dataclass
from typing import NamedTuple

from tasks.config.schema import TaskConfig


@dataclass(frozen=True)
class Preparation:
    """What a round has: contexts to assign, targets, and people who may judge."""

    contexts: int
    targets: int
    judges: int | None
    """Members who may judge; None: everybody may."""


class Gap(NamedTuple):
    """Something that is missing, and whether the round cannot open without it."""

    name: str
    is_needed: bool


def find_gaps(config: TaskConfig, preparation: Preparation) -> list[Gap]:
    """Return what is missing; what is required to open comes first.

    Authors do not judge their own examples, so one more person is needed than there are votes. In a
    task with rows to judge, there are no authors and no target answers.
    """
    has_shown = bool(config.examples.good)
    # True counts as 1: the author.
    people = config.validation.votes.needed + (not config.judges_rows)
    has_texts = bool(preparation.contexts)
    missing_by_gap = {
        Gap("rows", True): config.judges_rows and not has_texts,
        Gap("contexts", True): bool(config.context) and not (config.judges_rows or has_texts),
        Gap("one_target", True): config.talk is not None and preparation.targets != 1,
        Gap("target", False): not (config.talk or config.judges_rows or preparation.targets),
        Gap("instructions", False): not config.instructions.strip(),
        Gap("examples", False): not has_shown,
        Gap("judges", False): preparation.judges is not None and preparation.judges < people,
    }
    return [gap for gap, is_missing in missing_by_gap.items() if is_missing]
