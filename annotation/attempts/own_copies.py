"""Refuses texts that their author wrote before, on another context."""

from collections.abc import Mapping
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotation import selectors
from annotation.models import Assignment
from annotation.refusals import Duplicate


def check_not_own_copy(
    assignment: Assignment, inputs: Mapping[str, Any]
) -> selectors.NearDuplicates:
    """Return the examples that the inputs resemble.

    Raises Duplicate if they resemble the author's own text on another context.
    """
    near_copies = selectors.find_near_duplicates(assignment, inputs)
    if near_copies.own and near_copies.own.context_id != assignment.context_id:
        message = _("You wrote this on %(day)s. Try a different idea.")
        raise Duplicate(
            message % {"day": date_format(near_copies.own.created_at, "j M")}, near_copies.own
        )
    return near_copies
