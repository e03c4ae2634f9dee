"""Removes a validator's words once they have left. Votes stay, as they decide examples."""

from django.db import transaction

from dynabench.accounts.models import Annotator
from validation.models import GoldAnswer, Skip, Validation


@transaction.atomic
def erase_words(*, validator: Annotator) -> None:
    """Empty the comments and further answers of votes, and delete skips; no lock."""
    for answers in (Validation.objects, GoldAnswer.objects):
        answers.filter(validator=validator).update(comment="", reveal_comment="", metadata={})
    Skip.objects.filter(validator=validator).delete()
