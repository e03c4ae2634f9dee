"""What one person, and the team, did in each week. What their programs did is not counted."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from django.db.models import CharField, Count, F, Value
from django.db.models.functions import Cast, TruncWeek
from django.utils import timezone

from annotation.models import Example
from core.accounts.models import Annotator
from leaderboard.models import WeeklyGoal
from leaderboard.people.goals import WEEK, monday, team_goal
from tasks.models import Task
from validation.decisions.counted import counts_of, is_try
from validation.models import Consensus, GoldAnswer, Validation

WEEKS = 26
"""How far back a person's weeks are counted."""
TEAM_WEEKS = 4


@dataclass(frozen=True, slots=True)
class TeamWeek:
    """How many different passages have an example verified this week, and what is aimed at."""

    passages: int
    goal: int


def team_week(task: Task) -> TeamWeek:
    """Count everybody's week in the task. One query."""
    week = monday(timezone.now().date())
    verified = Consensus.objects.filter(
        round__task=task,
        is_verified=True,
        decided_at__gte=_midnight(week - TEAM_WEEKS * WEEK),
        example__retracted_at__isnull=True,
        example__by_program=False,
    )
    counts = dict(
        verified.annotate(week=TruncWeek("decided_at", tzinfo=UTC))
        .values_list("week")
        .annotate(Count("example__context", distinct=True))
    )
    by_week = {begins.date(): number for begins, number in counts.items()}
    this = by_week.pop(week, 0)
    return TeamWeek(this, team_goal(list(by_week.values())))


@dataclass(slots=True)
class Week:
    """What one person did in a week: `judged` and `tried`, `valid` of these."""

    tried: int = 0
    valid: int = 0
    judged: int = 0


Goals = Mapping[date, int]
"""Weekly goals by the week they began in."""
ANSWERS = {Validation: "example__round__task", GoldAnswer: "gold__example__round__task"}
"""From what people judge to its task. People cannot tell one from the other."""


def weeks_of(annotator: Annotator) -> Mapping[tuple[date, int], Week]:
    """Count the person's last 26 weeks by Monday and task, without retracted tries.

    Three queries.
    """
    weeks: dict[tuple[date, int], Week] = {}
    wrote = _written(annotator)
    for week, task, tried, valid in _by_week(wrote, "round__task", **counts_of("confirmed")):
        weeks[week.date(), task] = Week(tried, valid)
    for answers, path in ANSWERS.items():
        for week, task, judged in _by_week(_judged(answers, annotator), path, judged=Count("pk")):
            weeks.setdefault((week.date(), task), Week()).judged += judged
    return weeks


def week_of(annotator: Annotator, tasks: Collection[int], week: date) -> tuple[int, Goals]:
    """Count the person's examples and judgements since a Monday, as `done_by_week`; their goals.

    One query.
    """
    rows = [(_written(annotator), "round__task")]
    rows += [(_judged(answers, annotator), path) for answers, path in ANSWERS.items()]
    since = _midnight(week)
    done = [
        found.filter(created_at__gte=since, **{f"{path}__in": tasks})
        .order_by()
        .values(begins=Value("", CharField()))
        .annotate(times=Count("pk"))
        for found, path in rows
    ]
    goals = WeeklyGoal.objects.filter(annotator=annotator).order_by()
    of_weeks = goals.values(begins=Cast("week", CharField()), times=F("amount"))
    every = [(row["begins"], row["times"]) for row in of_weeks.union(*done, all=True)]
    return (
        sum(times for begins, times in every if not begins),
        {date.fromisoformat(begins): times for begins, times in every if begins},
    )


def _written(annotator: Annotator) -> Any:
    return Example.objects.filter(is_try(), annotator=annotator)


def _judged(answers: Any, annotator: Annotator) -> Any:
    return answers.objects.filter(validator=annotator, by_program=False)


def done_by_week(
    weeks: Mapping[tuple[date, int], Week], tasks: Collection[int]
) -> Mapping[date, int]:
    """Count examples and judgements of each week, by its Monday. tasks: ids of those that count."""
    done: dict[date, int] = {}
    for (begins, task), week in weeks.items():
        if task in tasks:
            done[begins] = done.get(begins, 0) + week.tried + week.judged
    return done


def _by_week(rows: Any, task: str, **counts: Count) -> Any:
    """Return (first moment of the week, task, counts …) of the last 26 weeks."""
    begin = _midnight(monday(timezone.now().date()) - (WEEKS - 1) * WEEK)
    weeks = rows.filter(created_at__gte=begin).annotate(week=TruncWeek("created_at", tzinfo=UTC))
    return weeks.values_list("week", task).annotate(**counts).order_by()


def goals_of(annotator: Annotator) -> Goals:
    """Return the person's weekly goals by the week they began in."""
    return dict(WeeklyGoal.objects.filter(annotator=annotator).values_list("week", "amount"))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
