"""The dashboard's charts; empty where there is nothing to draw."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta

from django.utils.dateformat import format as date_words
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.charts import Heat, Point, bars, line_chart, matrix, plain, stacked_bars
from dynabench.manage.activity import Activity
from validation.rules.rates import wilson
from validation.statistics.cache import Numbers
from validation.statistics.report import Number


def funnel(now: Activity, numbers: Numbers) -> SafeString:
    """Draw the steps from tries to catches. A round without models ends with confirmed tries."""
    found: dict[str, Number] = {_("Tries"): numbers["collected"]}
    if isinstance(numbers["fooled"], int):
        found |= {
            _("Fooled"): numbers["fooled"],
            _("Fooled and judged"): now.fooled_judged,
            _("Catches"): numbers["verified_fooled"],
        }
    else:
        found |= {_("Judged"): numbers["judged"], _("Confirmed"): numbers["verified"]}
    counts = {name: count if isinstance(count, int) else None for name, count in found.items()}
    return bars(counts, title=_("Each step, and its share of the step before"), is_funnel=True)


def by_day(now: Activity) -> SafeString:
    """Draw tries, those that fooled a model and catches by day, from the first day to the last."""
    found = {day: numbers for day, *numbers in now.days}
    days = _days(found)
    lines = {
        name: [Point(_words(day), found.get(day, (0, 0, 0))[n]) for day in days]
        for n, name in enumerate((_("Tries"), _("Fooled"), _("Catches")))
    }
    return line_chart(lines, title=_("Examples by day"), shown=plain) if days else SafeString()


def agreement(now: Activity) -> SafeString:
    """Draw how often votes say the same as the consensus, by the day of the vote."""
    rates = {day: (same / votes, *wilson(same, votes)) for day, votes, same in now.agreement}
    days = _days(rates)
    line = [Point(_words(day), *rates.get(day, (None,))) for day in days]
    title = _("Votes that say the same as the consensus, by day")
    return line_chart({_("Agreement"): line}, title=title) if days else SafeString()


def labels(now: Activity) -> SafeString:
    """Draw how tries and confirmed ones share the labels."""
    if not now.labels:
        return SafeString()
    names, tries, confirmed = zip(*now.labels, strict=True)
    return stacked_bars({_("Tries"): tries, _("Confirmed"): confirmed}, names, title=_("Labels"))


def slices(found: Sequence[tuple[str, str, int, int]]) -> SafeString:
    """Draw a heat grid of the slices that somebody has tried."""
    tried = [row for row in found if row[2]]
    most = max((row[2] for row in tried), default=1)
    rows = [
        (f"{name}: {value}", [Heat(str(count), count / most) for count in counts])
        for name, value, *counts in tried
    ]
    names = [_("Tries"), _("Confirmed")]
    return matrix(names, rows, title=_("Slices"), corner=_("Slice")) if rows else SafeString()


def costs(by_round: Mapping[int, float | None]) -> SafeString:
    """Draw what a catch costs in each round, in whole money."""
    rounds = {_("Round %(number)d") % {"number": n}: cost for n, cost in by_round.items()}
    return bars(rounds, title=_("Cost of a catch by round"), shown="{:,.2f}".format)


def _days(known: Collection[date]) -> list[date]:
    """Return all days from the first to the last."""
    first, last = min(known, default=None), max(known, default=None)
    if first is None or last is None:
        return []
    return [first + timedelta(n) for n in range((last - first).days + 1)]


def _words(day: date) -> str:
    return date_words(day, "j M")
