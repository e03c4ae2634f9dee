"""Removing what a judge wrote in words, once they have left. Votes stay, for they decide."""

from django.db import transaction

from dynabench.accounts.models import Annotator
from validation.models import GoldAnswer, Skip, Validation


@transaction.atomic
def erase_words(*, validator: Annotator) -> None:
    """Empty comments and answers beside the votes, and forget what was skipped; no lock."""
    for answers in (Validation.objects, GoldAnswer.objects):
        answers.filter(validator=validator).update(comment="", reveal_comment="", metadata={})
    Skip.objects.filter(validator=validator).delete()
