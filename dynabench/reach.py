"""The numbers of people and catches in the site's public tasks, for visitors."""

from dataclasses import dataclass

from annotation.models import Example
from core.data.adaptive_cache import read_or_count
from tasks.models import SIMULATED_TASK_CODE, Round, Task
from validation.decisions.counted import build_measure_condition, build_try_condition

MIN_CATCHES, MIN_PEOPLE = 20, 5
"""The minimum numbers of catches and people to show. Smaller numbers would put visitors off."""


@dataclass(frozen=True)
class Reach:
    """What people did in all public tasks, except sensitive tasks and the demo."""

    catches: int
    people: int
    rounds: int

    @property
    def is_worth_showing(self) -> bool:
        """Return whether the numbers are large enough for a visitor."""
        return self.catches >= MIN_CATCHES and self.people >= MIN_PEOPLE


def find_reach() -> Reach | None:
    """Return the numbers for visitors; None while they are too small. Cached."""
    reach = read_or_count("reach", _count_reach)
    return reach if reach.is_worth_showing else None


def _count_reach() -> Reach:
    task_ids = [
        task.pk
        for task in Task.objects.filter(is_visible=True).exclude(code=SIMULATED_TASK_CODE)
        if not task.is_sensitive
    ]
    rounds = Round.objects.filter(task__in=task_ids, opened_at__isnull=False)
    tries = Example.objects.filter(build_try_condition(), round__in=rounds)
    return Reach(
        catches=tries.filter(build_measure_condition("catches")).count(),
        people=tries.values("annotator").distinct().count(),
        rounds=rounds.count(),
    )
