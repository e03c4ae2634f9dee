"""Names of models that look like one another in a task."""

from django.db.models import Q

from core.days import today
from core.text.taken_names import check_free, lock_names
from evaluation.models import Submission
from evaluation.submissions.selectors import are_visible_to_all


def check_looks(submission: Submission) -> None:
    """Raise Invalid if another owner's published model has this name or one that looks like it.

    Locks the names of the task's models until the transaction ends. The name of an unpublished
    model is secret, so it belongs to whoever publishes it first.
    """
    # The names first, then the read: of two models that look alike, the second sees the first.
    lock_names(f"models of task {submission.task_id}")
    is_own = Q(owner__isnull=False, owner=submission.owner_id)
    if submission.team_id:
        is_own |= Q(team=submission.team_id)
    # An anonymous model's name is a secret, which a refusal would tell.
    is_named = Q(anonymous_until=None) | Q(anonymous_until__lte=today())
    others = Submission.objects.filter(are_visible_to_all(), is_named, task=submission.task_id)
    check_free(submission.name, others.exclude(is_own).order_by().values_list("name", flat=True))
