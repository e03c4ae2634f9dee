"""Erasure of a validator's words after they have left. Votes are kept: they decide examples."""

from django.db import transaction
from django.utils import timezone

from core.accounts.models import Annotator
from validation.models import Comment, GoldAnswer, Mention, Skip, Validation


@transaction.atomic
def erase_texts(*, validator: Annotator) -> None:
    """Erase comments and further answers of a validator's votes, and delete their skips.

    Takes no lock.
    """
    for answers in (Validation.objects, GoldAnswer.objects):
        # The choices are kept, because they decide examples.
        answers.filter(validator=validator).update(comment="", reveal_comment="", metadata={})
    comments = Comment.objects.filter(author=validator, removed_at__isnull=True)
    # The emptied comment stays, so that replies to it can be understood.
    comments.update(text="", removed_at=timezone.now(), reported_at=None)
    # Nobody is left to read them.
    Mention.objects.filter(person=validator).update(seen_at=timezone.now())
    Skip.objects.filter(validator=validator).delete()
