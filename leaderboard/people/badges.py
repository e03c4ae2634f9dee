"""Badges: each is a line of BADGES with the rule that earns it.

They are read from what is stored, so a badge can go again.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Example
from core.accounts.models import Annotator
from tasks.models import Task
from validation.models import Validation


@dataclass
class Work:
    """One person's work in some tasks; each number costs one query when it is first read.

    careful: whether their judgements agree with others' (`validation.rewards.scores`).
    """

    annotator: Annotator
    tasks: Collection[Task]
    careful: bool

    @property
    def valid(self) -> Any:
        """Return the person's confirmed examples."""
        return Example.objects.filter(
            annotator=self.annotator,
            by_program=False,
            round__task__in=self.tasks,
            retracted_at__isnull=True,
            consensus__is_verified=True,
        )

    @cached_property
    def goals(self) -> dict[int, set[str]]:
        """Return the goals of the person's valid examples, by task."""
        goals: dict[int, set[str]] = {}
        for task, goal in self.valid.values_list("round__task", "goal").distinct():
            goals.setdefault(task, set()).add(goal)
        return goals

    @property
    def labels(self) -> tuple[int, int]:
        """Return the number of goals that valid examples cover in the best task, and its total."""
        coverages = []
        for task in self.tasks:
            choices = task.config.goal_choices
            if choices:
                covered = self.goals.get(task.pk, set()).intersection(choices)
                coverages.append((len(covered), len(choices)))
        return max(coverages, key=lambda pair: pair[0] / pair[1], default=(0, 1))

    @cached_property
    def models_fooled(self) -> int:
        """Return how many different targets the person's valid examples fooled."""
        fooled = self.valid.filter(consensus__is_validated_error=True, target_outputs__fooled=True)
        models = fooled.aggregate(models=Count("target_outputs__target", distinct=True))
        return int(models["models"])

    @cached_property
    def has_shared_flag(self) -> bool:
        """Return whether other people also raised one of the person's flags."""
        return Validation.objects.filter(
            validator=self.annotator,
            by_program=False,
            verdict="flagged",
            example__round__task__in=self.tasks,
            example__consensus__verdict="flagged",
        ).exists()


BADGES: tuple[tuple[str, str, Callable[[Work], tuple[int, int]]], ...] = (
    (
        gettext_noop("First one"),
        gettext_noop("a confirmed example"),
        lambda work: (len(work.goals), 1),
    ),
    (
        gettext_noop("Every label"),
        gettext_noop("a confirmed example for each label of a task"),
        lambda work: work.labels,
    ),
    (
        gettext_noop("Three tasks"),
        gettext_noop("confirmed examples in three tasks"),
        lambda work: (len(work.goals), 3),
    ),
    (
        gettext_noop("Two models"),
        gettext_noop("confirmed examples that fooled two different models"),
        lambda work: (work.models_fooled, 2),
    ),
    (
        gettext_noop("Careful judge"),
        gettext_noop("30 judgements that agree well with the others'"),
        lambda work: (int(work.careful), 1),
    ),
    (
        gettext_noop("Good eye"),
        gettext_noop("a flag that others raised too"),
        lambda work: (int(work.has_shared_flag), 1),
    ),
)
"""Name, purpose, and the rule: what somebody's work has reached, and what the badge needs."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A badge with its progress, earned or not."""

    name: str
    words: str
    reached: int
    needed: int

    @property
    def is_earned(self) -> bool:
        """Return whether the badge is earned."""
        return self.reached >= self.needed


def list_badges(annotator: Annotator, tasks: Collection[Task], careful: bool) -> list[Badge]:
    """Return all badges with the person's progress in these `tasks`. Three queries.

    careful: see `Work`.
    """
    work = Work(annotator, tasks, careful)
    return [Badge(_(name), _(words), *rule(work)) for name, words, rule in BADGES]
