"""Drafts: in one arm of a mixed round the task's generator begins each text, and people finish it.

Unlike a suggestion, nobody asks for a draft: whether a text has one is drawn at random.
"""

import logging

from django.utils import timezone

from annotation.aids.suggestions import create_suggestion
from annotation.models import Assignment, Suggestion
from core.errors import Refused
from tasks.arms import DRAFTS
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)


def provide_draft(assignment: Assignment) -> None:
    """Have the generator write the draft of a text in this arm; do nothing for other texts.

    Asks once for each text and goal. Without an answer the person writes alone, and the text stays
    in its arm: else slow answers would decide what is compared. Takes no lock: of two tabs one
    asks, by a conditional update. Do not call it in a transaction.
    """
    # A text that a reviewer sent back is finished already.
    if assignment.arm != DRAFTS or assignment.draft_asked_at or assignment.mends_id:
        return
    asked_at = timezone.now()
    unasked_rows = Assignment.objects.filter(pk=assignment.pk, draft_asked_at=None, left_at=None)
    if not unasked_rows.update(draft_asked_at=asked_at):
        return
    assignment.draft_asked_at = asked_at
    try:
        suggestion = create_suggestion(assignment)
    except (EndpointError, Refused) as error:
        logger.warning("no draft for assignment %s: %s", assignment.pk, error)
        return
    # It is in the form from the start, so whoever changes it has used it.
    suggestion.action = Suggestion.Action.EDIT
    suggestion.save(update_fields=["action"])


def get_drafted_inputs(assignment: Assignment) -> dict[str, str]:
    """Return the values with which the form begins in this arm; {} elsewhere and without a draft.

    One query in this arm, none elsewhere.
    """
    if assignment.arm != DRAFTS:
        return {}
    draft = assignment.suggestions.last()
    return {assignment.round.task.config.text_field: draft.text} if draft else {}
