"""Refuses texts that their author wrote before, on another context."""

from collections.abc import Mapping
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotation import selectors
from annotation.models import Assignment
from annotation.refusals import Duplicate


def check_not_own_copy(assignment: Assignment, inputs: Mapping[str, Any]) -> selectors.Resembling:
    """Return what the inputs resemble. Raises Duplicate for the author's own of another context."""
    found = selectors.resembling(assignment, inputs)
    if found.own and found.own.context_id != assignment.context_id:
        said = _("You wrote this on %(day)s. Try a different idea.")
        raise Duplicate(said % {"day": date_format(found.own.created_at, "j M")}, found.own)
    return found
