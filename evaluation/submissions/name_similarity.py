"""Check that the names of models in a task do not look alike."""

from django.db.models import Q

from core.days import get_today
from core.text.taken_names import check_name_is_free, lock_names
from evaluation.models import Submission
from evaluation.submissions.selectors import build_public_condition


def check_name_is_distinct(submission: Submission) -> None:
    """Raise Invalid if another owner's published model has this name or one that looks like it.

    Locks the names of the task's models until the transaction ends. The name of an unpublished
    model is secret, so it belongs to whoever publishes it first.
    """
    # Store the name before reading, so that the second of two similar models sees the first.
    lock_names(f"models of task {submission.task_id}")
    is_own = Q(owner__isnull=False, owner=submission.owner_id)
    if submission.team_id:
        is_own |= Q(team=submission.team_id)
    # An anonymous model's name is secret, and a refusal would reveal it.
    shows_names = Q(anonymous_until=None) | Q(anonymous_until__lte=get_today())
    shown_models = Submission.objects.filter(
        build_public_condition(), shows_names, task=submission.task_id
    )
    check_name_is_free(
        submission.name, shown_models.exclude(is_own).order_by().values_list("name", flat=True)
    )
