"""Questions about judging and studies, which later rooms implement (`core.questions`)."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet

from annotation.models import Example
from annotation.rules.writing_conditions import WritingPlan
from core.accounts.models import Annotator
from core.questions import UnansweredQuestion, declare_question
from tasks.models import Round, Task


class Votes(NamedTuple):
    """The number of votes on an example, and their result.

    given: the number of votes. `state`, `still_needed` and `is_verified` are None without votes.
    needed: the number of equal votes that decide under the round's policy; None without a policy.
    """

    given: int = 0
    state: str | None = None
    still_needed: int | None = None
    is_verified: bool | None = None
    is_validated_error: bool | None = None
    needed: int | None = None


@declare_question
def build_verified_condition() -> Q:
    """Return the condition for examples that judges confirmed."""
    raise UnansweredQuestion


@declare_question
def build_catch_condition() -> Q:
    """Return the condition for examples that judges confirmed and the models got wrong."""
    raise UnansweredQuestion


@declare_question
def build_decided_condition() -> Q:
    """Return the condition for examples on which people have decided, confirmed or not."""
    raise UnansweredQuestion


@declare_question
def build_judged_condition() -> Q:
    """Return the condition for examples that have a vote."""
    raise UnansweredQuestion


@declare_question
def build_sent_back_condition() -> Q:
    """Return the condition for examples that a reviewer sent back to their authors."""
    raise UnansweredQuestion


@declare_question
def build_gold_condition() -> Q:
    """Return the condition for gold items, which test judges and whose answers stay secret."""
    raise UnansweredQuestion


@declare_question
def select_catches_between(
    examples: QuerySet[Example], round: Round, first: int, last: int
) -> QuerySet[Example]:
    """Return the round's catches among the examples, with ids from `first` to `last`.

    Sorted by id and read from the index of catches, so that few rows are read.
    """
    raise UnansweredQuestion


@declare_question
def get_return_reason(example_id: int) -> str:
    """Return why a reviewer sent an example back; empty if it is not sent back."""
    raise UnansweredQuestion


@declare_question
def count_votes(example: Example) -> Votes:
    """Return the votes on an example. One query."""
    raise UnansweredQuestion


@declare_question
def build_empty_votes(round: Round) -> Votes:
    """Return the votes on a new example of the round, without counting.

    No query if the relations of `get_votes_relation` were loaded by `select_related`.
    """
    raise UnansweredQuestion


@declare_question
def get_votes_relation() -> str:
    """Return the relation that `select_related` must load for `build_empty_votes`."""
    raise UnansweredQuestion


@declare_question
def count_examples_to_judge(annotator: Annotator, task: Task) -> int:
    """Return how many examples of the task the person can judge now.

    0 if the person may not judge in this task.
    """
    raise UnansweredQuestion


@declare_question
def has_study_at_work(annotator: Annotator, task: Task) -> bool:
    """Return whether the person is currently working in a study of the task. One query."""
    raise UnansweredQuestion


@declare_question
def find_study_rounds(annotator: Annotator, task: Task) -> set[int]:
    """Return the ids of the task's rounds that the person's active studies chose. One query.

    Empty if no study chose any, and then all rounds count.
    """
    raise UnansweredQuestion


@declare_question
def find_writing_plan(annotator: Annotator, round: Round) -> WritingPlan:
    """Return what the person's current campaign draws for their assignments. One query.

    A plan without deterrents for people who are in no campaign.
    """
    raise UnansweredQuestion


@declare_question
def find_pausing_study(annotator: Annotator, task: Task) -> str | None:
    """Return the slug of a study of the task in which the person is paused, or None."""
    raise UnansweredQuestion


@declare_question
def is_submitted(annotator: Annotator, task: Task, done_at: datetime) -> bool:
    """Return whether work done at this time was submitted in a study of the task.

    Locks the person's places in the task's studies, so that nobody is paid for work that they
    withdraw at the same moment.
    """
    raise UnansweredQuestion
