"""The arm of a person's next text in a mixed round, drawn at random from an urn of their own."""

from random import SystemRandom
from typing import NamedTuple

from annotation.models import Assignment, Attempt
from annotation.rules.draws import draw_arm
from core.accounts.models import Annotator
from tasks.arms import reduce_shares
from tasks.models import Round


class AssignedArm(NamedTuple):
    """An arm with the probability of its draw, as columns of `Assignment`."""

    arm: str = ""
    arm_probability: float | None = None
    shares_number: int | None = None
    keeps_arm: bool = False


def draw_next_arm(round: Round, annotator: Annotator) -> AssignedArm:
    """Return the arm of a person's next text; without an arm outside of mixed rounds.

    A text that the person leaves unwritten passes its arm on to the next one, so nobody gets
    another arm by skipping. Call it with the round locked, because each draw follows from the
    person's earlier ones.
    """
    if not round.arm_shares:
        return AssignedArm()
    # Corrections of earlier texts are in the arms of those, and are no draws.
    assigned = Assignment.objects.filter(
        annotator=annotator, round=round, shares_number=round.shares_number, mends=None
    ).order_by("pk")
    last = assigned.last()
    if last and not _is_written(last):
        return AssignedArm(last.arm, last.arm_probability, last.shares_number, keeps_arm=True)
    earlier_arms = assigned.filter(keeps_arm=False).values_list("arm", flat=True)
    draw = draw_arm(reduce_shares(round.arm_shares), earlier_arms, SystemRandom())
    return AssignedArm(draw.arm, draw.probability, round.shares_number)


def _is_written(assignment: Assignment) -> bool:
    """Return whether the person has submitted a text of this assignment.

    What a program submits in their name counts for no arm.
    """
    attempts = Attempt.objects.filter(assignment=assignment, by_program=False)
    return attempts.exclude(state=Attempt.State.FAILED).exists()
