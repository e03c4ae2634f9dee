"""Limits on reading harmful texts: the time in a day, and texts without a break. Pure."""

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum

BREAK_TIME = timedelta(minutes=5)
"""The time without a text in view that counts as a break."""
MAX_REPORT_SECONDS = 20
"""The maximum number of seconds in one report. A browser reports every 15 seconds."""
MAX_UNREPORTED_SECONDS = 120
"""The maximum number of seconds from page to answer that count if no browser reports."""
GRACE_SECONDS = 300
"""How long after the day's limit a person may still submit an answer that they had begun."""
OFFER_SHARE = 0.75
"""A break is offered once this share of a limit is used."""


class Rest(StrEnum):
    """The kind of rest that a person is offered or must take."""

    NONE = "none"
    OFFER = "offer"
    BREAK = "break"
    DAY = "day"


STOPPING_RESTS = (Rest.BREAK, Rest.DAY)


@dataclass(frozen=True)
class ReadingRecord:
    """A person's reading record in a task.

    seconds: the seconds read on `day`. in_a_row: the number of texts since the last break. at: the
    time up to which reading is counted. is_told: whether a browser has reported time since the text
    was shown.
    """

    day: date | None = None
    seconds: int = 0
    in_a_row: int = 0
    at: datetime | None = None
    is_told: bool = False

    def advance_to(self, now: datetime) -> "ReadingRecord":
        """Return the record at a later time, if nothing is read in between.

        The seconds are reset on a new day, and the texts in a row after a break.
        """
        seconds = self.seconds if self.day == now.date() else 0
        # Nothing read yet is as good as a break.
        has_rested = self.at is None or now - self.at >= BREAK_TIME
        return replace(
            self, day=now.date(), seconds=seconds, in_a_row=0 if has_rested else self.in_a_row
        )

    def record_shown(self, now: datetime) -> "ReadingRecord":
        """Return the record after a text is shown."""
        return replace(self.advance_to(now), at=now, is_told=False)

    def record_report(self, now: datetime, reported_seconds: int) -> "ReadingRecord":
        """Return the record after a browser reports seconds in view.

        Seconds beyond the time elapsed on the server, or beyond MAX_REPORT_SECONDS, are ignored.
        """
        return replace(
            self._add_seconds(now, min(reported_seconds, MAX_REPORT_SECONDS)), is_told=True
        )

    def record_answer(self, now: datetime) -> "ReadingRecord":
        """Return the record after a text was answered or skipped.

        Its reading time counts here only if no browser has reported it.
        """
        seen = self._add_seconds(now, 0 if self.is_told else MAX_UNREPORTED_SECONDS)
        return replace(seen, in_a_row=seen.in_a_row + 1, is_told=False)

    def _add_seconds(self, now: datetime, max_seconds: int) -> "ReadingRecord":
        passed_seconds = int((now - self.at).total_seconds()) if self.at else 0
        seen = self.advance_to(now)
        # Not below 0, because a clock that was set back must not take seconds away.
        return replace(
            seen, seconds=seen.seconds + max(0, min(passed_seconds, max_seconds)), at=now
        )


@dataclass(frozen=True)
class Limits:
    """Limits on the minutes per day and on the texts without a break; None for no limit."""

    minutes: int | None = None
    items: int | None = None

    def restrict_to(self, own_limits: "Limits") -> "Limits":
        """Return the stricter of these limits and the person's own."""
        return Limits(
            _choose_stricter(self.minutes, own_limits.minutes),
            _choose_stricter(self.items, own_limits.items),
        )


def _choose_stricter(cap: int | None, own_limit: int | None) -> int | None:
    return min((n for n in (cap, own_limit) if n is not None), default=None)


def compute_rest(
    limits: Limits, seconds: int, in_a_row: int, *, is_answering: bool = False
) -> Rest:
    """Return the rest that a person should or must take.

    Parameters
    ----------
    limits
        The person's own limits, capped by the owner's.
    seconds
        Seconds read today, in all tasks with a warning.
    in_a_row
        Texts since the last break, in this task.
    is_answering
        Whether the person is answering a text that was shown before; allows GRACE_SECONDS more.
    """
    day = 60 * limits.minutes if limits.minutes is not None else None
    # The day goes first, as after it no break helps.
    if day is not None and seconds >= day + (GRACE_SECONDS if is_answering else 0):
        return Rest.DAY
    if limits.items is not None and in_a_row >= limits.items:
        return Rest.BREAK
    is_near = (day is not None and seconds >= OFFER_SHARE * day) or (
        limits.items is not None and in_a_row >= OFFER_SHARE * limits.items
    )
    return Rest.OFFER if is_near else Rest.NONE
