"""Counts of what one person, and the team, did in each week, without work of programs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

from django.db.models import CharField, Count, F, Value
from django.db.models.functions import Cast, TruncWeek
from django.utils import timezone

from annotation.models import Example
from core.accounts.models import Annotator
from leaderboard.models import WeeklyGoal
from leaderboard.people.goals import WEEK, choose_team_goal, find_monday
from tasks.models import Task
from validation.decisions.counted import (
    WorkParts,
    build_counts,
    build_try_condition,
    build_work_counts,
)
from validation.models import Consensus, GoldAnswer, Validation

SHOWN_WEEKS = 26
"""The number of weeks that are counted for a person, including the current one."""
TEAM_WEEKS = 4


@dataclass(frozen=True, slots=True)
class TeamWeek:
    """The number of different passages with an example confirmed this week, and the goal."""

    passages: int
    goal: int


def count_team_week(task: Task) -> TeamWeek:
    """Return the number of passages with examples confirmed this week, and the team's goal.

    One query.
    """
    week = find_monday(timezone.now().date())
    verified_consensuses = Consensus.objects.filter(
        round__task=task,
        is_verified=True,
        # Earlier weeks determine the goal.
        decided_at__gte=_find_midnight(week - TEAM_WEEKS * WEEK),
        example__retracted_at__isnull=True,
        example__by_program=False,
    )
    counts = (
        verified_consensuses.annotate(week=TruncWeek("decided_at", tzinfo=UTC))
        .values_list("week")
        .annotate(Count("example__context", distinct=True))
    )
    by_week = {begins.date(): number for begins, number in counts}
    this_week = by_week.pop(week, 0)
    return TeamWeek(this_week, choose_team_goal(list(by_week.values())))


@dataclass(slots=True)
class WeekWork:
    """One person's work in a week.

    tried_count: number of tries. valid_count: number of confirmed tries. judged_count: number of
    judgements.
    parts: the tries by result.
    """

    tried_count: int = 0
    valid_count: int = 0
    judged_count: int = 0
    parts: WorkParts = field(default_factory=WorkParts)


Goals = Mapping[date, int]
"""Weekly goals by the week they began in."""
TASK_PATHS = {Validation: "example__round__task", GoldAnswer: "gold__example__round__task"}
"""The models of judges' answers, with the path from each to its task; gold items count, too."""


def count_weeks(annotator: Annotator) -> Mapping[tuple[date, int], WeekWork]:
    """Count the person's work in the last 26 weeks by Monday and task, without retracted tries.

    Three queries.
    """
    weeks: dict[tuple[date, int], WeekWork] = {}
    examples = _select_written_tries(annotator)
    # One query for both: they are counts of the same rows.
    counts = {**build_counts("confirmed"), **build_work_counts()}
    for week, task, tries, valid_tries, *parts in _group_by_week(examples, "round__task", **counts):
        weeks[week.date(), task] = WeekWork(tries, valid_tries, parts=WorkParts(*parts))
    for answers, path in TASK_PATHS.items():
        for week, task, judgements in _group_by_week(
            _select_judgements(answers, annotator), path, judged=Count("pk")
        ):
            weeks.setdefault((week.date(), task), WeekWork()).judged_count += judgements
    return weeks


def count_work_of_week(
    annotator: Annotator, tasks: Collection[int], week: date
) -> tuple[int, Goals]:
    """Count the person's examples and judgements since a Monday; return the count and the goals.

    Counts the same work as `sum_work_by_week`. One query, a union of counts and goals; only goals
    have a week.
    """
    sources = [(_select_written_tries(annotator), "round__task")]
    for answers, path in TASK_PATHS.items():
        sources.append((_select_judgements(answers, annotator), path))
    counts = []
    for rows, path in sources:
        since_monday = rows.filter(created_at__gte=_find_midnight(week), **{f"{path}__in": tasks})
        # An empty week distinguishes these rows of the union from goals.
        labelled = since_monday.order_by().values(begins=Value("", CharField()))
        counts.append(labelled.annotate(times=Count("pk")))
    goal_rows = WeeklyGoal.objects.filter(annotator=annotator).order_by()
    goal_values = goal_rows.values(begins=Cast("week", CharField()), times=F("amount"))
    work_count, goals = 0, {}
    for row in goal_values.union(*counts, all=True):
        if row["begins"]:
            goals[date.fromisoformat(row["begins"])] = row["times"]
        else:
            work_count += row["times"]
    return work_count, goals


def _select_written_tries(annotator: Annotator) -> Any:
    """Return the person's tries, except retracted tries and tries submitted by their programs."""
    return Example.objects.filter(build_try_condition(), annotator=annotator)


def _select_judgements(answers: Any, annotator: Annotator) -> Any:
    """Return the person's judgements, without those by their programs."""
    return answers.objects.filter(validator=annotator, by_program=False)


def sum_work_by_week(
    weeks: Mapping[tuple[date, int], WeekWork], tasks: Collection[int]
) -> Mapping[date, int]:
    """Count examples and judgements by week (its Monday). tasks: ids of the tasks that count."""
    work_by_week: dict[date, int] = {}
    for (begins, task), week in weeks.items():
        if task in tasks:
            work_by_week[begins] = (
                work_by_week.get(begins, 0) + week.tried_count + week.judged_count
            )
    return work_by_week


def _group_by_week(rows: Any, task: str, **counts: Count) -> Any:
    """Return rows (start of the week, task, counts …) for the last 26 weeks."""
    # Whole weeks, so that the first one is not cut short.
    first_midnight = _find_midnight(find_monday(timezone.now().date()) - (SHOWN_WEEKS - 1) * WEEK)
    weeks = rows.filter(created_at__gte=first_midnight).annotate(
        week=TruncWeek("created_at", tzinfo=UTC)
    )
    return weeks.values_list("week", task).annotate(**counts).order_by()


def read_goals(annotator: Annotator) -> Goals:
    """Return the person's weekly goals by the week from which they are valid."""
    return dict(WeeklyGoal.objects.filter(annotator=annotator).values_list("week", "amount"))


def _find_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
