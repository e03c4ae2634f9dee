"""Reads about people: who ranks where, what they did in a week, what the team reached.

What their programs did counts for nothing here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from django.db.models import Count, Q
from django.db.models.functions import TruncWeek
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example
from dynabench.accounts.models import Annotator
from leaderboard.models import WeeklyGoal
from leaderboard.people.goals import WEEK, monday, team_goal
from leaderboard.people.ranking import Standing
from tasks.models import Task
from validation.models import Consensus, GoldAnswer, Validation

WEEKS = 26
"""How far back one's own weeks are looked at."""
TEAM_WEEKS = 4


def may_play(annotator: Annotator) -> bool:
    """Whether rankings, goals and badges are for this person: nobody who is paid by a panel."""
    return annotator.source == Annotator.Source.SITE


def standings(task: Task) -> list[Standing]:
    """Everybody who chose to appear and has asked a model in the task. One query.

    Tries that were retracted count: else taking back what failed would raise the rate.
    """
    asked = Example.objects.filter(
        round__task=task,
        by_program=False,
        annotator__in_ranking=True,
        annotator__source=Annotator.Source.SITE,
        outcome__in=[
            Example.Outcome.FOOLED,
            Example.Outcome.NOT_FOOLED,
            Example.Outcome.UNDECIDED,
        ],
    )
    counts = asked.values_list("annotator__pseudonym").annotate(
        tries=Count("pk"),
        fooled=Count("pk", filter=Q(consensus__is_validated_error=True, retracted_at__isnull=True)),
    )
    return [Standing(*row) for row in counts.order_by()]


@dataclass(frozen=True, slots=True)
class TeamWeek:
    """How many different passages have an example verified this week, and what is aimed at."""

    passages: int
    goal: int


def team_week(task: Task) -> TeamWeek:
    """Everybody's week in the task. One query."""
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


def weeks_of(annotator: Annotator) -> Mapping[tuple[date, int], Week]:
    """By Monday and task: the person's last 26 weeks, retracted tries left out. Three queries."""
    weeks: dict[tuple[date, int], Week] = {}
    wrote = Example.objects.filter(annotator=annotator, retracted_at__isnull=True, by_program=False)
    verified = Count("pk", filter=Q(consensus__is_verified=True))
    for week, task, tried, valid in _by_week(
        wrote, "round__task", tried=Count("pk"), valid=verified
    ):
        weeks[week.date(), task] = Week(tried, valid)
    for answers in (Validation, GoldAnswer):  # people cannot tell one from the other
        rows = answers.objects.filter(validator=annotator, by_program=False)
        path = "example__round__task" if answers is Validation else "gold__example__round__task"
        for week, task, judged in _by_week(rows, path, judged=Count("pk")):
            weeks.setdefault((week.date(), task), Week()).judged += judged
    return weeks


def _by_week(rows: Any, task: str, **counts: Count) -> Any:
    """(first moment of the week, task, counts …) of the last 26 weeks."""
    begin = _midnight(monday(timezone.now().date()) - (WEEKS - 1) * WEEK)
    weeks = rows.filter(created_at__gte=begin).annotate(week=TruncWeek("created_at", tzinfo=UTC))
    return weeks.values_list("week", task).annotate(**counts).order_by()


def goals_of(annotator: Annotator) -> Mapping[date, int]:
    """The person's weekly goals by the week they began in."""
    return dict(WeeklyGoal.objects.filter(annotator=annotator).values_list("week", "amount"))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


@dataclass(frozen=True, slots=True)
class Badge:
    """Something done well once; `is_earned` is read from what is stored, and can go again."""

    name: str
    words: str
    is_earned: bool


def badges_of(annotator: Annotator, tasks: Collection[Task], careful: bool) -> list[Badge]:
    """The badges, earned or not, for work in these `tasks`. Three queries.

    careful: the person's judgements agree with the others' (`validation.rewards.scores`).
    """
    wrote = Example.objects.filter(
        annotator=annotator,
        by_program=False,
        round__task__in=tasks,
        retracted_at__isnull=True,
        consensus__is_verified=True,
    )
    goals: dict[int, set[str]] = {}
    for task, goal in wrote.values_list("round__task", "goal").distinct():
        goals.setdefault(task, set()).add(goal)
    all_labels = any(
        choices and goals.get(task.pk, set()).issuperset(choices)
        for task in tasks
        for choices in [task.config.goal_choices]
    )
    fooled = wrote.filter(consensus__is_validated_error=True, target_outputs__fooled=True)
    models = fooled.aggregate(models=Count("target_outputs__target", distinct=True))
    flags = Validation.objects.filter(
        validator=annotator,
        by_program=False,
        verdict="flagged",
        example__round__task__in=tasks,
        example__consensus__verdict="flagged",
    )
    return [
        Badge(_("First one"), _("a valid example"), bool(goals)),
        Badge(_("Every label"), _("a valid example for each label of a task"), all_labels),
        Badge(_("Three tasks"), _("valid examples in three tasks"), len(goals) >= 3),
        Badge(
            _("Two models"),
            _("valid examples that fooled two different models"),
            models["models"] > 1,
        ),
        Badge(_("Careful judge"), _("30 judgements that agree well with the others'"), careful),
        Badge(_("Good eye"), _("a flag that others raised too"), flags.exists()),
    ]
