"""Writes to the reading records of tasks with a content warning, and to people's own limits.

Takes no lock: of two simultaneous requests, only one is counted.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import ngettext

from annotation.models import Attempt, GatePass
from annotation.rules.care import BREAK_TIME, Limits, ReadingRecord, Rest, compute_rest
from core.accounts.models import Annotator
from core.errors import Refused
from tasks.models import Task


class NeedsRest(Refused):
    """Raised when a person must rest.

    code: `day` for a rest until tomorrow, `break` for a short break. wait: seconds until the person
    may continue.
    """

    status = 429

    def __init__(self, message: str, *, code: str, wait: int) -> None:
        super().__init__(message, code=code)
        self.wait = wait


@dataclass(frozen=True)
class CareRecord:
    """What a person has read of harmful texts, with the limits on reading.

    caps: the owner's limits. own_limits: the person's own limits. reading_record: the record of the
    task. seconds_today: the reading time today, over all tasks with a warning.
    """

    caps: Limits
    own_limits: Limits
    reading_record: ReadingRecord
    seconds_today: int
    now: datetime

    @property
    def limits(self) -> Limits:
        """Return the limits that apply to the person."""
        return self.caps.restrict_to(self.own_limits)

    @property
    def minutes_today(self) -> int:
        """Return the reading time today in full minutes."""
        return self.seconds_today // 60

    @property
    def break_end(self) -> datetime:
        """Return the time at which a break ends that began when the person last read."""
        return (self.reading_record.at or self.now) + BREAK_TIME

    @property
    def rest(self) -> Rest:
        """Return the rest that the person is offered, or must take, before the next text."""
        return compute_rest(self.limits, self.seconds_today, self.reading_record.in_a_row)


def get_caps(task: Task) -> Limits:
    """Return the owner's caps; no limits if the task has no warning."""
    warning = task.config.content_warning
    return Limits(warning.minutes_per_day, warning.items_in_a_row) if warning else Limits()


def get_care(annotator: Annotator, task: Task) -> CareRecord:
    """Return the person's current care record.

    Makes one query, or none for a task without a warning.
    """
    now = timezone.now()
    if not task.is_sensitive:
        return CareRecord(Limits(), Limits(), ReadingRecord(), 0, now)
    # The day's time counts in all tasks with a warning, the texts in a row in this one.
    rows = list(GatePass.objects.filter(annotator=annotator))
    gate_pass = next((row for row in rows if row.task_id == task.pk), None) or GatePass()
    own_limits = Limits(gate_pass.own_minutes, gate_pass.own_items)
    seconds_today = sum(row.reading_record.advance_to(now).seconds for row in rows)
    return CareRecord(
        get_caps(task), own_limits, gate_pass.reading_record.advance_to(now), seconds_today, now
    )


def check_rested(annotator: Annotator, task: Task) -> None:
    """Check that the person may send an answer now.

    Raises NeedsRest if a break is due or today's time is used up.
    """
    care = get_care(annotator, task)
    # A text in view when the time ran out may still be answered.
    match compute_rest(
        care.limits, care.seconds_today, care.reading_record.in_a_row, is_answering=True
    ):
        case Rest.DAY:
            message = ngettext(
                "You've read sensitive texts for %(n)d minute today. Continue tomorrow.",
                "You've read sensitive texts for %(n)d minutes today. Continue tomorrow.",
                care.minutes_today,
            )
            # Seconds until 00:00 UTC, rounded up to a minute.
            seconds_to_midnight = 86_400 - (care.now.hour * 60 + care.now.minute) * 60
            raise NeedsRest(
                message % {"n": care.minutes_today}, code="day", wait=seconds_to_midnight
            )
        case Rest.BREAK:
            message = ngettext(
                "You've read %(n)d sensitive text since your last break. Take five minutes off.",
                "You've read %(n)d sensitive texts since your last break. Take five minutes off.",
                care.reading_record.in_a_row,
            )
            # Never 0, which would have programs ask again at once.
            wait_seconds = max(1, int((care.break_end - care.now).total_seconds()))
            raise NeedsRest(
                message % {"n": care.reading_record.in_a_row}, code="break", wait=wait_seconds
            )


def record_text_shown(*, annotator: Annotator, task: Task) -> None:
    """Record that a text was shown."""
    _update_record(annotator, task, lambda seen, now: seen.record_shown(now))


def record_reported_seconds(*, annotator: Annotator, task: Task, seconds: int) -> None:
    """Record the browser's report of the seconds that a text was in view."""
    _update_record(annotator, task, lambda seen, now: seen.record_report(now, seconds))


def record_text_answered(*, annotator: Annotator, task: Task) -> None:
    """Record that a text was answered."""
    _update_record(annotator, task, lambda seen, now: seen.record_answer(now))


def record_text_skipped(*, annotator: Annotator, task: Task) -> None:
    """Record that a writer skipped the current text.

    The text counts as read, unless it was already counted when the writer sent an answer.
    """
    if not task.is_sensitive:
        return
    # An attempt on the current assignment was counted when it was sent.
    current = Attempt.objects.filter(
        annotator=annotator, assignment__left_at=None, assignment__round__task=task
    )
    if not current.exists():
        record_text_answered(annotator=annotator, task=task)


def set_limits(*, annotator: Annotator, task: Task, own_limits: Limits) -> None:
    """Set the person's own limits; the owner's caps still apply."""
    row = _get_row(annotator, task)
    row.own_minutes, row.own_items = own_limits.minutes, own_limits.items
    row.save(update_fields=["own_minutes", "own_items"])


def _get_row(annotator: Annotator, task: Task) -> GatePass:
    return GatePass.objects.get_or_create(annotator=annotator, task=task)[0]


def _update_record(
    annotator: Annotator, task: Task, change: Callable[[ReadingRecord, datetime], ReadingRecord]
) -> None:
    """Apply a change to the person's reading record of the task.

    Of two simultaneous changes, only one is applied.

    Does nothing for a task without a warning.
    """
    if task.is_sensitive:
        row = _get_row(annotator, task)
        reading_record = change(row.reading_record, timezone.now())
        # Only where nobody counted since the row was read: of two requests at once one is dropped.
        GatePass.objects.filter(pk=row.pk, at=row.at).update(**asdict(reading_record))
