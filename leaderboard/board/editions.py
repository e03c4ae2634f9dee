"""The day and the edition of a board's numbers, for charts."""

from django.utils.dateformat import format as date_words
from django.utils.translation import gettext as _

from core.days import get_today
from tasks.models import Task


def describe_today() -> str:
    """Return today's date as text, for the line under a chart's title."""
    return date_words(get_today(), "j M Y")


def describe_edition(task: Task) -> str:
    """Return today's date and the number of the newest snapshot, for a chart's source line.

    One query.
    """
    # Only the number: a snapshot's table is large.
    number = task.snapshots.values_list("number", flat=True).first()
    values = {"day": describe_today(), "number": number}
    if number is None:
        return _("%(day)s, no snapshot yet") % values
    return _("%(day)s, latest snapshot: %(number)d") % values
