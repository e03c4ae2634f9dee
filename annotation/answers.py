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

PUBLIC = {"split": "train", "is_withdrawn": False}
"""The rows of a release that everybody has with their answers and that test no model."""


def with_open_answers(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Return those examples that anybody who sees their task may see with their answers.

    They are in the training split of a released round, in no other part of any version, not
    withdrawn and no gold items.
    """
    # A version that failed, or is still being made, publishes nothing.
    public = _released_rows().filter(**PUBLIC, dataset__state="done")
    return (
        not_sealed(examples)
        .filter(
            Exists(public),
            round__state=Round.State.RELEASED,
            retracted_at__isnull=True,
        )
        .exclude(are_gold())
    )


def not_sealed(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Return those examples that no version of a release tests by, holds back or has withdrawn.

    A version that is still being made counts too. Examples of rounds without a release stay.
    """
    return examples.exclude(Exists(_released_rows().exclude(**PUBLIC)))


def may_see_answer(person: User | AnonymousUser | None, example: Example) -> bool:
    """Return whether the person may see this example with its answer."""
    # Lazy: for authors and reading roles `or` stops before this query.
    open_ones = with_open_answers(Example.objects.filter(pk=example.pk))
    return reads_answer(person, example) or open_ones.exists()


def reads_answer(person: User | AnonymousUser | None, example: Example) -> bool:
    """Return whether the person may see it though it is not public: authors and reading roles."""
    if person is None or not person.is_authenticated:
        return False
    author = example.annotator
    is_own = author is not None and author.user_id == person.pk
    return is_own or can_read(person, example.round.task)


def _released_rows() -> Any:
    """Return the rows of releases that hold the example of the outer query.

    Releases are a later stage's tables, which this stage must not import: the link that they make
    to examples leads to them.
    """
    rows: Any = Example._meta.get_field("dataset_items").related_model
    return rows.objects.order_by().filter(example=OuterRef("pk"))
