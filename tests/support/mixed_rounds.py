"""Mixed rounds of the sentiment task, with a scripted generator."""

from annotation.context_picking.services import assign
from annotation.models import Assignment, Attempt, Example
from core.accounts.models import User
from core.accounts.services import get_annotator
from dynabench.mixed_rounds.services import set_arm_shares
from tasks.models import Round
from tests.support.adversaries import make_adversary, sentiment_round
from tests.support.writing_aids import generator

ALL = {"people": 1, "helped": 1, "drafts": 1, "machines": 1}
DRAFT = "The ferry was late, and nobody told us."


def mixed_round(**shares) -> tuple[Round, User]:
    """An open mixed round with these shares, by default all the same, and the task's owner."""
    round, owner = sentiment_round()
    generator(round.task, output={round.task.config.text_field: DRAFT})
    make_adversary(round, owner)
    set_arm_shares(round=round, actor=owner, shares=shares or ALL)
    round.refresh_from_db()
    return round, owner


def write_once(assignment: Assignment, number: int = 0, **columns) -> Example:
    """An example of the assignment, as a submitted text would be stored."""
    support = {"arm": assignment.arm, "arm_probability": assignment.arm_probability}
    values = {"support": support, "outcome": "not_fooled"} | columns
    example = Example.objects.create(
        round=assignment.round,
        context=assignment.context,
        annotator=assignment.annotator,
        goal=assignment.goal,
        inputs={"text": f"Text {number}.", "label": assignment.goal},
        digest=f"{assignment.pk}-{number}",
        **values,
    )
    Attempt.objects.create(
        annotator=assignment.annotator,
        assignment=assignment,
        key=example.uuid,
        inputs=example.inputs,
        state="done",
        example=example,
        asked_at=assignment.assigned_at,
    )
    return example


def write_texts(round: Round, person: User, count: int) -> list[Assignment]:
    """The assignments of this many texts, each written once."""
    assignments = []
    for number in range(count):
        assignment = assign(annotator=get_annotator(person), round=round, is_fresh=True)
        write_once(assignment, number)
        assignments.append(assignment)
    return assignments
