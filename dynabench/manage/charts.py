"""The dashboard's charts; empty where there is nothing to draw."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta

from django.utils.dateformat import format as date_words
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.charts import Heat, Point, bars, line_chart, matrix, plain, stacked_bars
from dynabench.manage.activity import Activity
from validation.rates.rates import wilson
from validation.statistics.cache import Numbers
from validation.statistics.report import Number


def draw_funnel(activity: Activity, numbers: Numbers) -> SafeString:
    """Draw the steps from tries to catches. A round without models ends with confirmed tries."""
    steps: dict[str, Number] = {_("Tries"): numbers["collected"]}
    if isinstance(numbers["fooled"], int):
        steps |= {
            _("Fooled"): numbers["fooled"],
            _("Fooled and judged"): activity.fooled_judged,
            _("Catches"): numbers["verified_fooled"],
        }
    else:
        steps |= {_("Judged"): numbers["judged"], _("Confirmed"): numbers["verified"]}
    counts_by_step: dict[str, int | None] = {}
    for name, count in steps.items():
        counts_by_step[name] = None  # an undefined number is drawn as missing
        if isinstance(count, int):
            counts_by_step[name] = count
    return bars(
        counts_by_step, title=_("Each step, and its share of the step before"), is_funnel=True
    )


def draw_days(activity: Activity) -> SafeString:
    """Draw tries, tries that fooled a model, and catches by day, without gaps between days."""
    counts_by_day = {day: (tries, fooled, catches) for day, tries, fooled, catches in activity.days}
    try_points, fooled_points, catch_points = [], [], []
    for day in _list_days(counts_by_day):
        words = _format_day(day)
        tries, fooled, catches = counts_by_day.get(day, (0, 0, 0))
        try_points.append(Point(words, tries))
        fooled_points.append(Point(words, fooled))
        catch_points.append(Point(words, catches))
    if not try_points:
        return SafeString()
    lines = {_("Tries"): try_points, _("Fooled"): fooled_points, _("Catches"): catch_points}
    return line_chart(lines, title=_("Examples by day"), format_value=plain)


def draw_agreement(activity: Activity) -> SafeString:
    """Draw how often votes match the consensus, by the day of the vote."""
    counts_by_day = {day: (votes, same) for day, votes, same in activity.agreement}
    line = []
    for day in _list_days(counts_by_day):
        if day not in counts_by_day:
            line.append(Point(_format_day(day), None))
            continue
        votes, same = counts_by_day[day]
        low, high = wilson(same, votes)
        line.append(Point(_format_day(day), same / votes, low, high))
    if not line:
        return SafeString()
    title = _("Votes that say the same as the consensus, by day")
    return line_chart({_("Agreement"): line}, title=title)


def draw_labels(activity: Activity) -> SafeString:
    """Draw how tries and confirmed tries are distributed over the labels."""
    if not activity.labels:
        return SafeString()
    names, tries, confirmed = zip(*activity.labels, strict=True)
    return stacked_bars({_("Tries"): tries, _("Confirmed"): confirmed}, names, title=_("Labels"))


def draw_slices(slice_rows: Sequence[tuple[str, str, int, int]]) -> SafeString:
    """Draw a heat map of the slices that have tries.

    slice_rows: (slice, its value, tries, confirmed).
    """
    tried_rows = [row for row in slice_rows if row[2]]
    if not tried_rows:
        return SafeString()
    max_tries = max(row[2] for row in tried_rows)
    rows = []
    for name, value, tries, confirmed in tried_rows:
        cells = [Heat(str(tries), tries / max_tries), Heat(str(confirmed), confirmed / max_tries)]
        rows.append((f"{name}: {value}", cells))
    names = [_("Tries"), _("Confirmed")]
    return matrix(names, rows, title=_("Slices"), corner=_("Slice"))


def draw_costs(by_round: Mapping[int, float | None]) -> SafeString:
    """Draw the cost of a catch in each round, in whole currency units."""
    rounds = {_("Round %(number)d") % {"number": n}: cost for n, cost in by_round.items()}
    return bars(rounds, title=_("Cost of a catch by round"), format_value="{:,.2f}".format)


def _list_days(dates: Collection[date]) -> list[date]:
    """Return every day from the first to the last of the dates."""
    first_day, last_day = min(dates, default=None), max(dates, default=None)
    if first_day is None or last_day is None:
        return []
    return [first_day + timedelta(n) for n in range((last_day - first_day).days + 1)]


def _format_day(day: date) -> str:
    return date_words(day, "j M")
