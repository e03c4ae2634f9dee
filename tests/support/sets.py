"""Rows of an evaluation set, and verified examples of which a round's set is made."""

from annotation.models import Example
from core.accounts.services import get_annotator
from evaluation.contract import SetRow
from tests.support.factories import ContextFactory, UserFactory
from validation.models import Consensus

ROWS = [
    SetRow("a", {"text": "Good."}, ("positive",), {"tag": ("food", "short")}),
    SetRow("b", {"text": "Bad."}, ("negative", "neutral"), {"tag": ("food",)}),
]


def verified(round, number, *, label="neutral", **changes):
    context = ContextFactory(round=round, tag="work")
    example = Example.objects.create(
        round=round,
        context=context,
        annotator=get_annotator(UserFactory()),
        inputs={"hypothesis": f"Statement {number}.", "label": label},
        digest=str(number),
        outcome="fooled",
    )
    values = {"state": "decided", "votes": 3, "still_needed": 0, "is_verified": True} | changes
    Consensus.objects.create(example=example, round=round, label=label, **values)
    return example
