"""Find out what a task lacks before its first round can open. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

from tasks.config.schema import TaskConfig


@dataclass(frozen=True)
class Preparation:
    """The state of a round's preparation: how many contexts, targets and judges it has.

    context_count: the contexts that can be assigned. has_sample_judge: False if the configuration
    names a judge model that the round can't have.
    """

    context_count: int
    target_count: int
    judge_count: int | None
    """The number of members who may judge; None if everybody may."""
    has_sample_judge: bool = True


class Gap(NamedTuple):
    """Something that is missing. is_needed: whether the round cannot open without it."""

    name: str
    is_needed: bool


def find_gaps(config: TaskConfig, preparation: Preparation) -> list[Gap]:
    """Return what is missing, with what is required for opening first.

    Authors do not judge their own examples, so one more person is needed than there are votes. In a
    task with rows to judge, there are no authors and no target answers.
    """
    has_good_example = bool(config.examples.good)
    # True counts as 1: the author.
    needed_people_count = config.validation.votes.needed + (not config.has_rows_to_judge)
    has_texts = bool(preparation.context_count)
    needs_one_target = config.talk is not None or config.verdict.type == "criteria"
    missing_by_gap = {
        Gap("rows", True): config.has_rows_to_judge and not has_texts,
        Gap("contexts", True): bool(config.context) and not (config.has_rows_to_judge or has_texts),
        Gap("one_target", True): needs_one_target and preparation.target_count != 1,
        Gap("sample_judge", True): not preparation.has_sample_judge,
        Gap("target", False): not (
            needs_one_target or config.has_rows_to_judge or preparation.target_count
        ),
        Gap("instructions", False): not config.instructions.strip(),
        Gap("examples", False): not has_good_example,
        Gap("judges", False): preparation.judge_count is not None
        and preparation.judge_count < needed_people_count,
    }
    return [gap for gap, is_missing in missing_by_gap.items() if is_missing]
