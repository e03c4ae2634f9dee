"""Questions of annotation to later rooms: about judging, and about studies."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet

from annotation.models import Example
from core.accounts.models import Annotator
from core.questions import Unanswered, question
from tasks.models import Round, Task


class Votes(NamedTuple):
    """The number of votes on an example, and their result.

    `state`, `still_needed` and `is_verified` are None without votes. needed: number of
    equal votes that decides by the round's policy; None if it has none.
    """

    given: int = 0
    state: str | None = None
    still_needed: int | None = None
    is_verified: bool | None = None
    is_validated_error: bool | None = None
    needed: int | None = None


@question
def are_verified() -> Q:
    """Return the condition for examples that judges confirmed."""
    raise Unanswered


@question
def are_catches() -> Q:
    """Return the condition for examples that judges confirmed and the models got wrong."""
    raise Unanswered


@question
def are_judged() -> Q:
    """Return the condition for examples that have a vote."""
    raise Unanswered


@question
def are_sent_back() -> Q:
    """Return the condition for examples that a reviewer sent back to their authors."""
    raise Unanswered


@question
def are_gold() -> Q:
    """Return the condition for gold items, which test judges and whose answers stay secret."""
    raise Unanswered


@question
def select_catches_between(
    examples: QuerySet[Example], round: Round, first: int, last: int
) -> QuerySet[Example]:
    """Return those of the examples that are catches of the round with ids from first to last.

    In order of ids, using the index of catches, so that few rows are read.
    """
    raise Unanswered


@question
def get_return_reason(example_id: int) -> str:
    """Return why a reviewer sent an example back; empty if it is not sent back."""
    raise Unanswered


@question
def count_votes(example: Example) -> Votes:
    """Return the votes on an example. One query."""
    raise Unanswered


@question
def build_empty_votes(round: Round) -> Votes:
    """Return the votes on a new example of the round, without counting.

    No query if the relations of `get_votes_relation` were loaded by `select_related`.
    """
    raise Unanswered


@question
def get_votes_relation() -> str:
    """Return the relation that `select_related` must load for `build_empty_votes`."""
    raise Unanswered


@question
def has_study_at_work(annotator: Annotator, task: Task) -> bool:
    """Return whether the person is currently working in a study of the task. One query."""
    raise Unanswered


@question
def find_study_rounds(annotator: Annotator, task: Task) -> set[int]:
    """Return ids of the task's rounds that belong to studies the person takes part in.

    One query.
    """
    raise Unanswered


@question
def find_pausing_study(annotator: Annotator, task: Task) -> str | None:
    """Return the slug of a study of the task in which the person is paused, or None."""
    raise Unanswered


@question
def is_submitted(annotator: Annotator, task: Task, done_at: datetime) -> bool:
    """Return whether work of this time was submitted in a study of the task.

    Locks the person's places in the task, as submitting does, so work withdrawn at the same
    moment is either unpaid or not withdrawn.
    """
    raise Unanswered
