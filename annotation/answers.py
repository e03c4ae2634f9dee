"""Decide who may see an example with its answers. Every page that shows one asks this module.

Answers are sealed unless they are known to be public. An example is
sealed if it is a gold item, if its round has no release, or if a release has it in a test split or
holds it back.
"""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet

from annotation.models import Example
from annotation.questions import build_gold_condition
from core.accounts.models import User
from tasks.models import Round
from tasks.permissions import can_read

PUBLIC_ROWS = {"split": "train", "is_withdrawn": False}
"""The filter for rows of a release that are public with their answers and test no model."""


def filter_open_answers(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Return the examples whose answers are open to everybody who can see the task.

    These examples are in the training split of a released round, and in no other part of any
    version. They are not withdrawn and not gold items.
    """
    # A version that failed, or is still being made, publishes nothing.
    public_rows = _select_released_rows().filter(**PUBLIC_ROWS, dataset__state="done")
    return (
        exclude_sealed_examples(examples)
        .filter(
            Exists(public_rows),
            round__state=Round.State.RELEASED,
            retracted_at__isnull=True,
        )
        .exclude(build_gold_condition())
    )


def exclude_sealed_examples(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Exclude examples that any version of a release tests on, holds back or has withdrawn.

    Versions that are still being made count, too. Examples of rounds without a release remain.
    """
    return examples.exclude(Exists(_select_released_rows().exclude(**PUBLIC_ROWS)))


def may_see_answer(person: User | AnonymousUser | None, example: Example) -> bool:
    """Return whether the person may see this example with its answer."""
    # Lazy: for authors and reading roles `or` stops before this query.
    public_examples = filter_open_answers(Example.objects.filter(pk=example.pk))
    return may_read_private_answer(person, example) or public_examples.exists()


def may_read_private_answer(person: User | AnonymousUser | None, example: Example) -> bool:
    """Return whether the person may see the answer even if it is not public.

    Authors may, and people with a role that reads examples.
    """
    if person is None or not person.is_authenticated:
        return False
    author = example.annotator
    is_own = author is not None and author.user_id == person.pk
    return is_own or can_read(person, example.round.task)


def _select_released_rows() -> Any:
    """Return the rows of releases that contain the outer query's example.

    The tables of releases belong to a later app, which this app must not import, so they
    are reached through their relation to examples.
    """
    rows: Any = Example._meta.get_field("dataset_items").related_model
    return rows.objects.order_by().filter(example=OuterRef("pk"))
