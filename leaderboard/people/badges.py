"""Badges. Each entry of BADGES has the rule by which people earn the badge.

They are computed from stored work, so a badge can be lost again.
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

    is_careful: whether their judgements agree with others' (`validation.rewards.scores`).
    """

    annotator: Annotator
    tasks: Collection[Task]
    is_careful: bool

    @property
    def valid_examples(self) -> Any:
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
        for task, goal in self.valid_examples.values_list("round__task", "goal").distinct():
            goals.setdefault(task, set()).add(goal)
        return goals

    @property
    def covered_labels(self) -> tuple[int, int]:
        """Return how many goals valid examples cover in the best task, and how many goals it has.

        The best task is the one with the greatest covered share. (0, 1) if no task has goals.
        """
        coverages = []
        for task in self.tasks:
            choices = task.config.goal_choices
            if choices:
                covered = self.goals.get(task.pk, set()).intersection(choices)
                coverages.append((len(covered), len(choices)))
        # By share: two of two labels are closer to the badge than three of ten.
        # If no task has goals, the badge needs one unreachable label.
        return max(coverages, key=lambda pair: pair[0] / pair[1], default=(0, 1))

    @cached_property
    def fooled_models_count(self) -> int:
        """Return how many different targets the person's valid examples fooled."""
        # Both conditions: a catch has fooled a model, but with several models maybe not this one.
        fooled = self.valid_examples.filter(
            consensus__is_validated_error=True, target_outputs__fooled=True
        )
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
        gettext_noop("First catch"),
        gettext_noop("Get one example confirmed"),
        lambda work: (len(work.goals), 1),
    ),
    (
        gettext_noop("Every label"),
        gettext_noop("Get an example confirmed for each label of a task"),
        lambda work: work.covered_labels,
    ),
    (
        gettext_noop("Three tasks"),
        gettext_noop("Get examples confirmed in three tasks"),
        lambda work: (len(work.goals), 3),
    ),
    (
        gettext_noop("Two models"),
        gettext_noop("Fool two different models with confirmed examples"),
        lambda work: (work.fooled_models_count, 2),
    ),
    (
        gettext_noop("Careful judge"),
        gettext_noop("Judge 30 examples in good agreement with others"),
        lambda work: (int(work.is_careful), 1),
    ),
    (
        gettext_noop("Good eye"),
        gettext_noop("Raise a flag that others confirm"),
        lambda work: (int(work.has_shared_flag), 1),
    ),
)
"""Name, purpose and rule of each badge; a rule returns the reached and the needed number."""


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

    @property
    def percent(self) -> int:
        """Return the progress in percent."""
        return min(100, 100 * self.reached // self.needed)


def list_badges(annotator: Annotator, tasks: Collection[Task], is_careful: bool) -> list[Badge]:
    """Return all badges with the person's progress in these `tasks`. Three queries.

    is_careful: see `Work`.
    """
    work = Work(annotator, tasks, is_careful)
    return [Badge(_(name), _(words), *rule(work)) for name, words, rule in BADGES]
