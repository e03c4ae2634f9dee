"""Refusal of texts that their author wrote before, on another context."""

from collections.abc import Mapping
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotation import selectors
from annotation.models import Assignment
from annotation.refusals import DuplicateExample


def check_not_own_copy(
    assignment: Assignment, inputs: Mapping[str, Any]
) -> selectors.NearDuplicates:
    """Return the examples that the inputs resemble.

    Raises DuplicateExample if they resemble the author's own text on another context.
    """
    # Two cases may make the same question to the model a good one, and the answers are choices.
    if assignment.round.task.config.verdict.type == "decide":
        return selectors.NearDuplicates(None, None)
    near_copies = selectors.find_near_duplicates(assignment, inputs)
    if near_copies.own_example and near_copies.own_example.context_id != assignment.context_id:
        message = _("You submitted a very similar text on %(day)s. Try a different idea.")
        raise DuplicateExample(
            message % {"day": date_format(near_copies.own_example.created_at, "j M")},
            near_copies.own_example,
        )
    return near_copies
