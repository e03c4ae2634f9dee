"""The dashboard's charts. They are empty where there is nothing to draw."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from django.utils.dateformat import format as date_words
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.charts import Point, draw_bars
from core.days import get_today
from core.figures.figure import Figure, FigureTable, LegendItem
from core.figures.plots import ColumnPart, PlotLine, build_column_scene, build_line_scene
from core.figures.steps import compute_bar_shares, draw_part_bar, draw_steps
from core.numbers import format_percent, format_percent_number
from core.text.money import format_money
from dynabench.manage.activity import Activity
from dynabench.manage.findings import describe_agreement, describe_days, describe_steps
from validation.decisions.counted import TryParts
from validation.rates.rates import compute_wilson_interval
from validation.statistics.cache import Numbers

MEAN_DAYS = 7
"""The number of days whose mean the chart of agreement shows."""
MIN_CONFIRMED = 20
"""The minimum number of confirmed tries for a slice that is not marked as thin."""
MIN_DAY_VOTES = 10
"""The minimum number of votes for a day whose agreement is drawn filled instead of hollow."""


class LabelBars(NamedTuple):
    """A label's tries and catches, each with its share of all and a bar."""

    label: str
    tries: int
    tries_share: str
    tries_bar: SafeString
    catches: int
    catches_share: str
    catches_bar: SafeString


class SliceBar(NamedTuple):
    """The tries and confirmed tries of a slice's value, with a bar for the confirmed ones.

    is_thin: whether fewer than MIN_CONFIRMED tries are confirmed.
    """

    name: str
    tries: int
    confirmed: int
    bar: SafeString
    is_thin: bool


def draw_funnel(activity: Activity, numbers: Numbers) -> SafeString:
    """Draw the steps from tries to catches.

    In a round without models, confirmed tries are the last step.
    """
    parts = activity.parts
    steps: list[tuple[str, int | None, list[str]]]
    # Without a model nobody can be fooled, and only agreement counts.
    if not isinstance(numbers["fooled"], int):
        steps = [(_("Tries"), parts.tries, [])]
        previous_count = parts.tries
        for name, key in ((_("Decided"), "decided"), (_("Confirmed"), "verified")):
            number = numbers[key]
            count = number if isinstance(number, int) else None
            steps.append((name, count, _list_shares(count, previous_count)))
            previous_count = count or 0
        return draw_steps(steps, title=_("Each step as a share of the previous step"))
    # Of all tries too: that share is the vMER.
    share_of_tries = _("%(share)s of tries") % {"share": _format_share(parts.catches, parts.tries)}
    catch_shares = [*_list_shares(parts.catches, parts.decided), share_of_tries]
    steps = [
        (_("Tries"), parts.tries, []),
        (_("Model was wrong"), parts.wrong, _list_shares(parts.wrong, parts.tries)),
        # A step has little room for its words: the tries of the step before that are decided.
        (_("Wrong and decided"), parts.decided, _list_shares(parts.decided, parts.wrong)),
        (_("Catches"), parts.catches, catch_shares),
    ]
    return draw_steps(steps, title=describe_steps(parts))


def _list_shares(count: int | None, previous_count: int) -> list[str]:
    """Return [the share of the previous step as text], or an empty list if it is unknown."""
    if count is None or not previous_count:
        return []
    return [_format_share(count, previous_count)]


def _format_share(count: int, total: int) -> str:
    return format_percent(count / total if total else 0, 0)


def build_day_figure(activity: Activity) -> Figure | None:
    """Return a chart of the tries by day, as columns divided by outcome; None without tries."""
    parts_by_day = {day: parts for day, _tries, _fooled, _catches, parts in activity.days}
    days = _list_days(parts_by_day)
    if not days:
        return None
    # Days without a try have an empty column, so that time runs evenly.
    parts_in_order = [parts_by_day.get(day, TryParts()) for day in days]
    total = TryParts(*(sum(counts) for counts in zip(*parts_in_order, strict=True)))
    labels = [_format_day(day) for day in days]
    # In the order of `TryParts`, from the axis upwards.
    titles = {
        "held bar": _("Model was right"),
        "waiting bar": _("Model was wrong, waiting"),
        "catch bar": _("Catches"),
        "refuted bar": _("Not confirmed"),
    }
    column_parts = []
    for number, (role, words) in enumerate(titles.items()):
        column_parts.append(
            ColumnPart(role, words, [day_parts[number] for day_parts in parts_in_order])
        )
    rows = []
    for label, day_parts in zip(labels, parts_in_order, strict=True):
        rows.append((label, [str(number) for number in (day_parts.tries, *day_parts)]))
    return Figure(
        name="days",
        title=describe_days(total, len(days)),
        subtitle=_("Tries per day, up to %(day)s") % {"day": date_words(get_today(), "j M Y")},
        scene=build_column_scene(labels, column_parts, css_class="days"),
        table=FigureTable([_("Tries"), *titles.values()], rows),
        legend=[LegendItem(role, words) for role, words in titles.items()],
    )


def build_agreement_figure(activity: Activity) -> Figure | None:
    """Return a chart of how often votes match the result, by the day of the vote.

    It also shows the mean of the last MEAN_DAYS days. None without votes.
    """
    counts_by_day = {day: (votes, same_count) for day, votes, same_count in activity.agreement}
    days = _list_days(counts_by_day)
    if not days:
        return None
    day_points, mean_points, rows = [], [], []
    for number, day in enumerate(days):
        label = _format_day(day)
        # The first days have a mean of as many days as there are.
        recent_days = days[max(0, number - MEAN_DAYS + 1) : number + 1]
        votes, same_count = _sum_votes(counts_by_day, recent_days)
        mean = same_count / votes if votes else None
        mean_points.append(Point(label, mean))
        votes, same_count = counts_by_day.get(day, (0, 0))
        point = Point(label, None)
        if votes:
            # Few votes a day: the interval shows how little a single day says.
            low, high = compute_wilson_interval(same_count, votes)
            point = Point(label, same_count / votes, low, high, votes < MIN_DAY_VOTES)
        day_points.append(point)
        rows.append((label, [_format_point(point), _format_point(Point(label, mean)), str(votes)]))
    # The interval of the last mean, which the title is about.
    recent_votes, recent_same = _sum_votes(counts_by_day, days[-MEAN_DAYS:])
    _low, high = compute_wilson_interval(recent_same, recent_votes) if recent_votes else (0.0, 1.0)
    votes, _same = _sum_votes(counts_by_day, days)
    lines = [
        PlotLine(_("7-day mean"), mean_points, "chosen"),
        PlotLine(_("Daily value"), day_points, "other", has_label=False, is_connected=False),
    ]
    n = ngettext(
        "n = %(n)d vote on decided examples", "n = %(n)d votes on decided examples", votes
    ) % {"n": votes}
    subtitle = _("Share of votes that match the result, 7-day mean, 95%% intervals, %(votes)s")
    return Figure(
        name="agreement",
        title=describe_agreement(mean_points[-1].value or 0, high, activity.threshold),
        subtitle=subtitle % {"votes": n},
        scene=build_line_scene(lines, top=1, threshold=activity.threshold),
        table=FigureTable([_("Daily value"), _("7-day mean"), _("Votes")], rows),
        note=_("The dashed line is the share of matching votes that decides an example.")
        if activity.threshold
        else "",
    )


def _sum_votes(
    counts_by_day: Mapping[date, tuple[int, int]], days: Sequence[date]
) -> tuple[int, int]:
    """Return the number of votes on these days, and how many of them match the result."""
    votes = same_count = 0
    for day in days:
        day_votes, day_same = counts_by_day.get(day, (0, 0))
        votes += day_votes
        same_count += day_same
    return votes, same_count


def _format_point(point: Point) -> str:
    if point.value is None:
        return ""
    text = format_percent(point.value)
    if point.low is None or point.high is None:
        return text
    bounds = {"low": format_percent_number(point.low), "high": format_percent_number(point.high)}
    return f"{text} ({_('%(low)s to %(high)s') % bounds})"


def build_label_bars(activity: Activity) -> list[LabelBars]:
    """Return the tries and catches of each label; empty if authors choose no label."""
    tries = {label: number for label, number, _confirmed, _catches in activity.labels}
    catches = {label: number for label, _tries, _confirmed, number in activity.labels}
    # Both on one scale, so that a label's catches are seen as a part of its tries.
    shares = compute_bar_shares(tries)
    largest = max(tries.values(), default=0) or 1
    rows = []
    for label, number in tries.items():
        catch_count = catches[label]
        rows.append(
            LabelBars(
                label=label,
                tries=number,
                tries_share=_format_share(number, sum(tries.values())),
                tries_bar=draw_part_bar("held bar", shares[label]),
                catches=catch_count,
                catches_share=_format_share(catch_count, sum(catches.values())),
                catches_bar=draw_part_bar("catch bar", 100 * catch_count / largest),
            )
        )
    return rows


def build_slice_bars(slice_rows: Sequence[tuple[str, str, int, int]]) -> list[SliceBar]:
    """Return a bar for each value of a slice that has tries, in the order of the rows.

    slice_rows: (slice, its value, tries, confirmed).
    """
    # The others are named below the table.
    tried_rows = [row for row in slice_rows if row[2]]
    largest = max((confirmed for *_names, confirmed in tried_rows), default=0) or 1
    lines = []
    for name, value, tries, confirmed in tried_rows:
        bar = draw_part_bar("catch bar", 100 * confirmed / largest)
        is_thin = confirmed < MIN_CONFIRMED
        lines.append(SliceBar(f"{name}: {value}", tries, confirmed, bar, is_thin))
    return lines


def draw_costs(costs_by_round: Mapping[int, float | None]) -> SafeString:
    """Draw the cost of a catch in each round, in whole units of the site's currency.

    costs_by_round: the costs by round number; None if the round has no catches, so it has no bar.
    """
    costs_by_title = {
        _("Round %(number)d") % {"number": n}: cost
        for n, cost in costs_by_round.items()
        if cost is not None
    }
    return draw_bars(costs_by_title, title=_("Cost per catch by round"), format_value=format_money)


def _list_days(dates: Collection[date]) -> list[date]:
    """Return every day from the first to the last of the dates."""
    first_day, last_day = min(dates, default=None), max(dates, default=None)
    if first_day is None or last_day is None:
        return []
    return [first_day + timedelta(n) for n in range((last_day - first_day).days + 1)]


def _format_day(day: date) -> str:
    return date_words(day, "j M")
