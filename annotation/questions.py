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

    `state`, `still_needed` and `is_verified` are None until somebody has. needed: equal votes that
    decide by the round's own policy; None where it has none.
    """

    given: int = 0
    state: str | None = None
    still_needed: int | None = None
    is_verified: bool | None = None
    is_validated_error: bool | None = None
    needed: int | None = None


@question
def are_verified() -> Q:
    """Return the condition of examples with whose author people agree."""
    raise Unanswered


@question
def are_catches() -> Q:
    """Return the condition of examples that people confirmed and the models got wrong."""
    raise Unanswered


@question
def are_judged() -> Q:
    """Return the condition of examples on which somebody has voted."""
    raise Unanswered


@question
def are_sent_back() -> Q:
    """Return the condition of examples that a reviewer has asked their authors to mend."""
    raise Unanswered


@question
def are_gold() -> Q:
    """Return the condition of examples that test judges, whose answers stay secret."""
    raise Unanswered


@question
def catches_between(
    examples: QuerySet[Example], round: Round, first: int, last: int
) -> QuerySet[Example]:
    """Return the catches of a round with ids from first to last among these, in the order of ids.

    It follows the index of catches, so that few rows are read, however many examples there are.
    """
    raise Unanswered


@question
def reason_of_return(example_id: int) -> str:
    """Return why a reviewer sent an example back; empty where its author need not mend it."""
    raise Unanswered


@question
def votes_on(example: Example) -> Votes:
    """Return the votes on an example. One query."""
    raise Unanswered


@question
def no_votes_yet(round: Round) -> Votes:
    """Return the votes on an example of the round that was just written.

    No query where the relations of `joined_for_votes` are joined.
    """
    raise Unanswered


@question
def joined_for_votes() -> str:
    """Return the relation of a round that `no_votes_yet` reads, for `select_related`."""
    raise Unanswered


@question
def has_study_at_work(annotator: Annotator, task: Task) -> bool:
    """Return whether a study of the task has the person work now. One query."""
    raise Unanswered


@question
def rounds_of_studies(annotator: Annotator, task: Task) -> set[int]:
    """Return the ids of the task's rounds that studies of the person chose. One query."""
    raise Unanswered


@question
def pause_of(annotator: Annotator, task: Task) -> str | None:
    """Return the address name of a study of the task that has paused the person; None without."""
    raise Unanswered


@question
def is_submitted(annotator: Annotator, task: Task, done_at: datetime) -> bool:
    """Return whether work of this time was submitted in a study of the task.

    Locks the person's places in the task, as submitting does: of work that is taken back at that
    moment either nothing is paid, or it stays.
    """
    raise Unanswered
