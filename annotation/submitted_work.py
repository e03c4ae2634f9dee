"""A refusal of changes to work that was submitted in a study, because it is paid for."""

from datetime import datetime

from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.questions import is_submitted
from annotation.refusals import NotAllowed
from core.accounts.models import Annotator
from tasks.models import Task


class WorkSubmitted(NotAllowed):
    """Raised for a change to work that was submitted in a study."""

    code = "submitted"


def check_not_submitted(annotator: Annotator, task: Task, done_at: datetime) -> None:
    """Check that work done at this time was not submitted in a study of the task.

    Locks the person's places in the task's studies: nobody may be paid for work that they withdraw
    at the same moment. Call it in a transaction, before other locks. Raises WorkSubmitted.
    """
    if is_submitted(annotator, task, done_at):
        raise WorkSubmitted(_("You submitted this example for a study, so you can't change it."))


def check_may_retract(example: Example) -> None:
    """Check that it is no decision, and that its author did not submit it in a study.

    Locks the author's places in studies of the task. Raises NotAllowed or WorkSubmitted.
    """
    # Who may take decisions back would keep those about the easy cases.
    if example.retracted_at is None and example.round.task.config.verdict.type == "decide":
        raise NotAllowed(_("You can't withdraw a decision."))
    # Retracting twice changes nothing, so it is never refused.
    if example.annotator and example.retracted_at is None:
        check_not_submitted(example.annotator, example.round.task, example.created_at)
