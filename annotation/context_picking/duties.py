"""A writer's progress with the examples that a duty asks for."""

from annotation.models import Assignment, Example
from core.accounts.models import Annotator
from tasks.members.duties.selectors import progress_words, within, writing_duty
from tasks.models import Duty


def written_for(duty: Duty, annotator: Annotator) -> int:
    """Count the person's examples since the duty was set, without retracted ones."""
    own_examples = Example.objects.filter(annotator=annotator, retracted_at=None)
    return own_examples.filter(within(duty, "round"), created_at__gte=duty.set_at).count()


def is_done(assignment: Assignment, submitting: int) -> bool:
    """Return whether the person has written enough, with the texts now being submitted."""
    duty = writing_duty(assignment.round, assignment.annotator.user_id)
    if duty is None or duty.amount is None:
        return False
    return written_for(duty, assignment.annotator) + submitting >= duty.amount


def words(assignment: Assignment) -> str:
    """Describe the person's progress with their duty; empty when they have none."""
    duty = writing_duty(assignment.round, assignment.annotator.user_id)
    return progress_words(duty, written_for(duty, assignment.annotator)) if duty else ""
