"""Writes of what a person has read of a task with a warning, and of their limits.

No lock: of two requests at the same moment one counts.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Attempt, GatePass
from annotation.rules.care import BREAK_TIME, Limits, ReadingRecord, Rest, rest_of
from core.accounts.models import Annotator
from core.errors import Refused
from tasks.models import Task


class NeedsRest(Refused):
    """Raised when a person must rest.

    code: `day` until tomorrow, `break` for a break. wait: seconds.
    """

    status = 429

    def __init__(self, message: str, *, code: str, wait: int) -> None:
        super().__init__(message, code=code)
        self.wait = wait


@dataclass(frozen=True)
class Care:
    """A person's reading of harmful texts, with its limits.

    seconds: read today, over all tasks with a warning.
    """

    caps: Limits
    own: Limits
    seen: ReadingRecord
    seconds: int
    now: datetime

    @property
    def limits(self) -> Limits:
        """Return the limits that apply to the person."""
        return self.caps.within(self.own)

    @property
    def minutes(self) -> int:
        """Return the full minutes read today."""
        return self.seconds // 60

    @property
    def until(self) -> datetime:
        """Return the time at which a break that begins now ends."""
        return (self.seen.at or self.now) + BREAK_TIME

    @property
    def rest(self) -> Rest:
        """Return the rest that the person should take before the next text."""
        return rest_of(self.limits, self.seconds, self.seen.in_a_row)


def get_caps(task: Task) -> Limits:
    """Return the owner's caps; no limits if the task has no warning."""
    warning = task.config.content_warning
    return Limits(warning.minutes_per_day, warning.items_in_a_row) if warning else Limits()


def get_care(annotator: Annotator, task: Task) -> Care:
    """Return the person's current care record.

    One query; none for a task without a warning.
    """
    now = timezone.now()
    if not task.is_sensitive:
        return Care(Limits(), Limits(), ReadingRecord(), 0, now)
    # The day's time counts in all tasks with a warning, the texts in a row in this one.
    rows = list(GatePass.objects.filter(annotator=annotator))
    gate_pass = next((row for row in rows if row.task_id == task.pk), None) or GatePass()
    own = Limits(gate_pass.own_minutes, gate_pass.own_items)
    seconds = sum(row.seen.on(now).seconds for row in rows)
    return Care(get_caps(task), own, gate_pass.seen.on(now), seconds, now)


def check_rested(annotator: Annotator, task: Task) -> None:
    """Check that the person may send an answer now.

    Raises NeedsRest if a break is due or today's time is used up.
    """
    care = get_care(annotator, task)
    # A text in view when the time ran out may still be answered.
    match rest_of(care.limits, care.seconds, care.seen.in_a_row, sends=True):
        case Rest.DAY:
            message = _("You have read such texts for %(n)d minutes today. Go on tomorrow.")
            # Seconds until 00:00 UTC, rounded up to a minute.
            midnight = 86_400 - (care.now.hour * 60 + care.now.minute) * 60
            raise NeedsRest(message % {"n": care.minutes}, code="day", wait=midnight)
        case Rest.BREAK:
            message = _("You have read %(n)d such texts in a row. Take a break of five minutes.")
            # Never 0, which would have programs ask again at once.
            wait = max(1, int((care.until - care.now).total_seconds()))
            raise NeedsRest(message % {"n": care.seen.in_a_row}, code="break", wait=wait)


def note_shown(*, annotator: Annotator, task: Task) -> None:
    """Record that a text was shown."""
    _note(annotator, task, lambda seen, now: seen.shown(now))


def note_reported_seconds(*, annotator: Annotator, task: Task, seconds: int) -> None:
    """Record the browser's report of the seconds that a text was in view."""
    _note(annotator, task, lambda seen, now: seen.told(now, seconds))


def note_answered(*, annotator: Annotator, task: Task) -> None:
    """Record that a text was answered."""
    _note(annotator, task, lambda seen, now: seen.answered(now))


def note_passed_by(*, annotator: Annotator, task: Task) -> None:
    """Record that a writer skipped to another text.

    This counts as one more text read, unless it was counted when an answer was sent.
    """
    if not task.is_sensitive:
        return
    # An attempt on the current assignment was counted when it was sent.
    current = Attempt.objects.filter(
        annotator=annotator, assignment__left_at=None, assignment__round__task=task
    )
    if not current.exists():
        note_answered(annotator=annotator, task=task)


def set_limits(*, annotator: Annotator, task: Task, own_limits: Limits) -> None:
    """Set the person's own limits; the owner's caps still apply."""
    row = _row(annotator, task)
    row.own_minutes, row.own_items = own_limits.minutes, own_limits.items
    row.save(update_fields=["own_minutes", "own_items"])


def _row(annotator: Annotator, task: Task) -> GatePass:
    return GatePass.objects.get_or_create(annotator=annotator, task=task)[0]


def _note(
    annotator: Annotator, task: Task, change: Callable[[ReadingRecord, datetime], ReadingRecord]
) -> None:
    """Apply a change to the record, unless another request changes it at the same time.

    Does nothing for a task without a warning.
    """
    if task.is_sensitive:
        row = _row(annotator, task)
        seen = change(row.seen, timezone.now())
        # Only where nobody counted since the row was read: of two requests at once one is dropped.
        GatePass.objects.filter(pk=row.pk, at=row.at).update(**asdict(seen))
