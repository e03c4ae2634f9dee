"""Access to examples together with their answers: every place that shows one asks here.

What is not known to be public is sealed: rows of a test split, rows that are held back, rounds that
are not released, gold items.
"""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet

from annotation.models import Example
from annotation.questions import are_gold
from core.accounts.models import User
from tasks.models import Round
from tasks.permissions import can_read

PUBLIC_ROWS = {"split": "train", "is_withdrawn": False}
"""The rows of a release that everybody has with their answers and that test no model."""


def filter_open_answers(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Filter the examples to those whose answers everybody who sees the task may see.

    They are in the training split of a released round and in no other part of any version,
    not withdrawn, and not gold items.
    """
    # A version that failed, or is still being made, publishes nothing.
    public_rows = _select_released_rows().filter(**PUBLIC_ROWS, dataset__state="done")
    return (
        exclude_sealed(examples)
        .filter(
            Exists(public_rows),
            round__state=Round.State.RELEASED,
            retracted_at__isnull=True,
        )
        .exclude(are_gold())
    )


def exclude_sealed(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Filter out examples that a version of a release tests on, holds back or has withdrawn.

    A version that is still being made counts, too. Keeps examples of rounds without a
    release.
    """
    return examples.exclude(Exists(_select_released_rows().exclude(**PUBLIC_ROWS)))


def may_see_answer(person: User | AnonymousUser | None, example: Example) -> bool:
    """Return whether the person may see this example with its answer."""
    # Lazy: for authors and reading roles `or` stops before this query.
    open_ones = filter_open_answers(Example.objects.filter(pk=example.pk))
    return may_read_private_answer(person, example) or open_ones.exists()


def may_read_private_answer(person: User | AnonymousUser | None, example: Example) -> bool:
    """Return whether the person may see the answer though it is not public.

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
