"""Limits on reading harmful texts: the time in a day, and texts without a break. Pure."""

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum

BREAK_TIME = timedelta(minutes=5)
"""So long without a text in view is a break."""
MAX_REPORT_SECONDS = 20
"""The most seconds that a browser may report at once; it reports each 15."""
MAX_UNREPORTED_SECONDS = 120
"""The most seconds between page and answer that count where no browser reports."""
GRACE_SECONDS = 300
"""So many seconds over the day's time somebody may still send what they had begun."""
OFFER_SHARE = 0.75
"""A break is offered once this share of a limit is used."""


class Rest(StrEnum):
    """The kind of rest that a person is offered or must take."""

    NONE = "none"
    OFFER = "offer"
    BREAK = "break"
    DAY = "day"


STOPS = (Rest.BREAK, Rest.DAY)


@dataclass(frozen=True)
class ReadingRecord:
    """A person's reading record in a task: seconds on `day`, texts since the last break.

    at: time up to which seconds are counted. is_told: whether a browser has reported time
    since the text was shown.
    """

    day: date | None = None
    seconds: int = 0
    in_a_row: int = 0
    at: datetime | None = None
    is_told: bool = False

    def on(self, now: datetime) -> "ReadingRecord":
        """Return the record at a time.

        The seconds are reset on a new day, and the texts in a row after a break.
        """
        seconds = self.seconds if self.day == now.date() else 0
        rested = self.at is None or now - self.at >= BREAK_TIME
        return replace(
            self, day=now.date(), seconds=seconds, in_a_row=0 if rested else self.in_a_row
        )

    def shown(self, now: datetime) -> "ReadingRecord":
        """Return the record after a text is shown."""
        return replace(self.on(now), at=now, is_told=False)

    def told(self, now: datetime, reported_seconds: int) -> "ReadingRecord":
        """Return the record after a browser reports seconds in view.

        At most the time that has passed by the server's clock counts.
        """
        return replace(self._with(now, min(reported_seconds, MAX_REPORT_SECONDS)), is_told=True)

    def answered(self, now: datetime) -> "ReadingRecord":
        """Return the record after a text was answered or skipped.

        Its reading time counts here only if no browser has reported it.
        """
        seen = self._with(now, 0 if self.is_told else MAX_UNREPORTED_SECONDS)
        return replace(seen, in_a_row=seen.in_a_row + 1, is_told=False)

    def _with(self, now: datetime, max_seconds: int) -> "ReadingRecord":
        passed_seconds = int((now - self.at).total_seconds()) if self.at else 0
        seen = self.on(now)
        # Not below 0, because a clock that was set back must not take seconds away.
        return replace(
            seen, seconds=seen.seconds + max(0, min(passed_seconds, max_seconds)), at=now
        )


@dataclass(frozen=True)
class Limits:
    """Limits on the minutes per day and the texts in a row; None: no limit."""

    minutes: int | None = None
    items: int | None = None

    def within(self, own: "Limits") -> "Limits":
        """Return the stricter of these limits and the person's own."""
        return Limits(
            _choose_stricter(self.minutes, own.minutes), _choose_stricter(self.items, own.items)
        )


def _choose_stricter(cap: int | None, own_limit: int | None) -> int | None:
    return min((n for n in (cap, own_limit) if n is not None), default=None)


def rest_of(limits: Limits, seconds: int, in_a_row: int, *, sends: bool = False) -> Rest:
    """Return the rest that a person should or must take.

    Parameters
    ----------
    limits
        The person's own limits, capped by the owner's.
    seconds
        Seconds read today, in all tasks with a warning.
    in_a_row
        Texts since the last break, in this task.
    sends
        Whether the person is answering a text that was shown before; allows GRACE more seconds.
    """
    day = 60 * limits.minutes if limits.minutes is not None else None
    # The day goes first, as after it no break helps.
    if day is not None and seconds >= day + (GRACE_SECONDS if sends else 0):
        return Rest.DAY
    if limits.items is not None and in_a_row >= limits.items:
        return Rest.BREAK
    is_near = (day is not None and seconds >= OFFER_SHARE * day) or (
        limits.items is not None and in_a_row >= OFFER_SHARE * limits.items
    )
    return Rest.OFFER if is_near else Rest.NONE
