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


def draw_funnel(now: Activity, numbers: Numbers) -> SafeString:
    """Draw the steps from tries to catches. A round without models ends with confirmed tries."""
    steps: dict[str, Number] = {_("Tries"): numbers["collected"]}
    if isinstance(numbers["fooled"], int):
        steps |= {
            _("Fooled"): numbers["fooled"],
            _("Fooled and judged"): now.fooled_judged,
            _("Catches"): numbers["verified_fooled"],
        }
    else:
        steps |= {_("Judged"): numbers["judged"], _("Confirmed"): numbers["verified"]}
    counts: dict[str, int | None] = {}
    for name, count in steps.items():
        counts[name] = None  # an undefined number is drawn as missing
        if isinstance(count, int):
            counts[name] = count
    return bars(counts, title=_("Each step, and its share of the step before"), is_funnel=True)


def draw_days(now: Activity) -> SafeString:
    """Draw tries, tries that fooled a model, and catches by day, without gaps between days."""
    counts = {day: (tries, fooled, catches) for day, tries, fooled, catches in now.days}
    tried, fooled_points, caught = [], [], []
    for day in _list_days(counts):
        words = _format_day(day)
        tries, fooled, catches = counts.get(day, (0, 0, 0))
        tried.append(Point(words, tries))
        fooled_points.append(Point(words, fooled))
        caught.append(Point(words, catches))
    if not tried:
        return SafeString()
    lines = {_("Tries"): tried, _("Fooled"): fooled_points, _("Catches"): caught}
    return line_chart(lines, title=_("Examples by day"), shown=plain)


def draw_agreement(now: Activity) -> SafeString:
    """Draw how often votes match the consensus, by the day of the vote."""
    counts = {day: (votes, same) for day, votes, same in now.agreement}
    line = []
    for day in _list_days(counts):
        if day not in counts:
            line.append(Point(_format_day(day), None))
            continue
        votes, same = counts[day]
        low, high = wilson(same, votes)
        line.append(Point(_format_day(day), same / votes, low, high))
    if not line:
        return SafeString()
    title = _("Votes that say the same as the consensus, by day")
    return line_chart({_("Agreement"): line}, title=title)


def draw_labels(now: Activity) -> SafeString:
    """Draw how tries and confirmed tries are distributed over the labels."""
    if not now.labels:
        return SafeString()
    names, tries, confirmed = zip(*now.labels, strict=True)
    return stacked_bars({_("Tries"): tries, _("Confirmed"): confirmed}, names, title=_("Labels"))


def draw_slices(counted: Sequence[tuple[str, str, int, int]]) -> SafeString:
    """Draw a heat map of the slices that have tries.

    counted: (slice, its value, tries, confirmed).
    """
    tried = [row for row in counted if row[2]]
    if not tried:
        return SafeString()
    most = max(row[2] for row in tried)
    rows = []
    for name, value, tries, confirmed in tried:
        cells = [Heat(str(tries), tries / most), Heat(str(confirmed), confirmed / most)]
        rows.append((f"{name}: {value}", cells))
    names = [_("Tries"), _("Confirmed")]
    return matrix(names, rows, title=_("Slices"), corner=_("Slice"))


def draw_costs(by_round: Mapping[int, float | None]) -> SafeString:
    """Draw the cost of a catch in each round, in whole currency units."""
    rounds = {_("Round %(number)d") % {"number": n}: cost for n, cost in by_round.items()}
    return bars(rounds, title=_("Cost of a catch by round"), shown="{:,.2f}".format)


def _list_days(dates: Collection[date]) -> list[date]:
    """Return every day from the first to the last of the dates."""
    first, last = min(dates, default=None), max(dates, default=None)
    if first is None or last is None:
        return []
    return [first + timedelta(n) for n in range((last - first).days + 1)]


def _format_day(day: date) -> str:
    return date_words(day, "j M")
