"""Work submitted in a study: it is paid for, so it stays as it is."""

from datetime import datetime

from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.questions import is_submitted
from annotation.refusals import NotAllowed
from core.accounts.models import Annotator
from tasks.models import Task


class Submitted(NotAllowed):
    """Raised for a change to work that was submitted in a study."""

    code = "submitted"


def check_not_submitted(annotator: Annotator, task: Task, done_at: datetime) -> None:
    """Check that the person did not submit work of this time in a study of the task.

    Locks the person's places in the task, as submitting does, so work withdrawn at the same
    moment is either unpaid or not withdrawn. Call it in a transaction, before other locks.
    Raises Submitted.
    """
    if is_submitted(annotator, task, done_at):
        raise Submitted(_("You submitted this for a study, so it stays as it is."))


def check_may_retract(example: Example) -> None:
    """Check that the author did not submit the example in a study. Raises Submitted.

    Locks as `check_not_submitted` does.
    """
    if example.annotator and example.retracted_at is None:
        check_not_submitted(example.annotator, example.round.task, example.created_at)
