"""A writer's progress with the examples that an assignment asks for."""

from annotation.models import Assignment, Example
from core.accounts.models import Annotator
from tasks.members.assignments.selectors import (
    build_span_condition,
    describe_done_count,
    find_writing_assignment,
)
from tasks.models import Duty


def count_written_examples(work_assignment: Duty, annotator: Annotator) -> int:
    """Count the person's examples since the assignment was made, without retracted ones."""
    own_examples = Example.objects.filter(annotator=annotator, retracted_at=None)
    return own_examples.filter(
        build_span_condition(work_assignment, "round"), created_at__gte=work_assignment.set_at
    ).count()


def is_work_done(assignment: Assignment, submitting_count: int) -> bool:
    """Return whether the person has written as many examples as their assignment asks for.

    submitting_count: number of texts that are being submitted, which count as written. False if the
    person has no assignment, or one without a number.
    """
    work_assignment = find_writing_assignment(assignment.round, assignment.annotator.user_id)
    if work_assignment is None or work_assignment.amount is None:
        return False
    return (
        count_written_examples(work_assignment, assignment.annotator) + submitting_count
        >= work_assignment.amount
    )


def describe_progress(assignment: Assignment) -> str:
    """Describe the person's progress with their assignment; empty if they have none."""
    work_assignment = find_writing_assignment(assignment.round, assignment.annotator.user_id)
    return (
        describe_done_count(
            work_assignment, count_written_examples(work_assignment, assignment.annotator)
        )
        if work_assignment
        else ""
    )
