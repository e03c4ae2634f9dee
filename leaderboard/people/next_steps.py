"""A person's next steps, for the first page."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from annotation.models import Assignment
from annotation.selectors import count_usage
from core.accounts.models import Annotator
from leaderboard.people.activity import count_work_of_week
from leaderboard.people.goals import DEFAULT_GOAL, find_goal, find_monday
from tasks.models import Round


@dataclass(frozen=True)
class NextSteps:
    """A person's open assignment, the number of their next try, and their week.

    try_number: 0 without an assignment. goal: 0 for a pause.
    """

    assignment: Assignment | None
    try_number: int
    done: int
    goal: int


def find_next_steps(annotator: Annotator, task_ids: Collection[int]) -> NextSteps:
    """Return the person's next steps. Three queries.

    task_ids: ids of the tasks that count for the week.
    """
    open_assignments = Assignment.objects.filter(
        annotator=annotator, left_at__isnull=True, round__state=Round.State.OPEN
    )
    latest_assignment = (
        open_assignments.select_related("round__task").order_by("-assigned_at").first()
    )
    week = find_monday(datetime.now(UTC).date())
    work_count, goals = count_work_of_week(annotator, task_ids, week)
    try_number = 0
    if latest_assignment:
        try_number = count_usage(latest_assignment).context_count + 1
    goal = find_goal(goals, week)
    if goal is None:
        goal = DEFAULT_GOAL
    return NextSteps(latest_assignment, try_number, work_count, goal)
