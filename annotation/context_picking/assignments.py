"""A writer's progress with the examples that an assignment asks for."""

from annotation.models import Assignment, Example
from core.accounts.models import Annotator
from tasks.members.assignments.selectors import progress_words, within, writing_assignment
from tasks.models import Duty


def count_written(work_assignment: Duty, annotator: Annotator) -> int:
    """Count the person's examples since the assignment was made, without retracted ones."""
    own_examples = Example.objects.filter(annotator=annotator, retracted_at=None)
    return own_examples.filter(
        within(work_assignment, "round"), created_at__gte=work_assignment.set_at
    ).count()


def is_done(assignment: Assignment, submitting_count: int) -> bool:
    """Return whether the person has written enough.

    submitting_count: number of texts that are being submitted, which count as written.
    """
    work_assignment = writing_assignment(assignment.round, assignment.annotator.user_id)
    if work_assignment is None or work_assignment.amount is None:
        return False
    return (
        count_written(work_assignment, assignment.annotator) + submitting_count
        >= work_assignment.amount
    )


def describe_progress(assignment: Assignment) -> str:
    """Describe the person's progress with their assignment; empty if they have none."""
    work_assignment = writing_assignment(assignment.round, assignment.annotator.user_id)
    return (
        progress_words(work_assignment, count_written(work_assignment, assignment.annotator))
        if work_assignment
        else ""
    )
