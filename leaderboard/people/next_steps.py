"""What a person may do next, for the first page."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from annotation.models import Assignment
from annotation.selectors import count_usage
from core.accounts.models import Annotator
from leaderboard.people.activity import count_week
from leaderboard.people.goals import find_goal, find_monday
from tasks.models import Round


@dataclass(frozen=True)
class NextSteps:
    """A person's open assignment, the number of their next try, and their week.

    goal: None if the person has none.
    """

    assignment: Assignment | None
    try_number: int
    done: int
    goal: int | None


def find_next_steps(me: Annotator, mild: Collection[int]) -> NextSteps:
    """Return the person's next steps. Three queries.

    mild: ids of the tasks that count for the week.
    """
    current = Assignment.objects.filter(
        annotator=me, left_at__isnull=True, round__state=Round.State.OPEN
    )
    latest_assignment = current.select_related("round__task").order_by("-assigned_at").first()
    week = find_monday(datetime.now(UTC).date())
    work_count, goals = count_week(me, mild, week)
    try_number = 0
    if latest_assignment:
        try_number = count_usage(latest_assignment).here + 1
    return NextSteps(latest_assignment, try_number, work_count, find_goal(goals, week))
