"""The chart of two models' differences, and the bars of who is right. It loads numpy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.charts import Point, compute_axis_top
from core.figures.drawing import draw_decoration
from core.figures.figure import Figure
from core.figures.rows import AxisRow, RowAxis, build_rows_scene, draw_row
from core.figures.scene import Box, Margins, Scene
from core.numbers import format_decimal, format_points, format_short_number
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.editions import describe_today
from leaderboard.compare.findings import describe_comparison
from leaderboard.compare.models import ComparedMetric, Comparison
from leaderboard.compare.outcomes import OUTCOME_PARTS, OutcomeCounts

ROLES = {"first": "lose", "second": "chosen", "": "other", "untested": "other"}
"""The colour of a row, by who is better."""
ROW_HEIGHT, BAR_HEIGHT = 36, 20
BAR_ROLES = ("held bar", "lose bar", "step bar", "empty bar")


@dataclass(frozen=True)
class DrawnRow:
    """A row of the table of differences, with its plot."""

    row: ComparedMetric
    plot: SafeString
    winner: str  # the model that is ahead, whether clearly or not
    points: str
    ends: tuple[str, str] | None


@dataclass(frozen=True)
class OutcomePart:
    """A part of a set's bar.

    role: its colour, as CSS classes. query: the query string of the page that lists its examples;
    empty if they are hidden.
    """

    name: str
    role: str
    words: str
    count: int
    query: str


@dataclass(frozen=True)
class OutcomeBar:
    """The bar of a set, with its parts."""

    set: str
    plot: SafeString
    parts: list[OutcomePart]


def build_difference_axis(rows: Sequence[ComparedMetric], names: tuple[str, str]) -> RowAxis:
    """Return an axis around 0 that has room for all intervals. Left: the first is better."""
    # At least one point, because a scale without a difference would have no length.
    ends = [1.0]
    for row in rows:
        ends += [abs(end) for end in row.cell if end is not None]
    top = compute_axis_top({"": [Point("", max(ends))]})
    ticks = []
    for share in (-1, -0.5, 0, 0.5, 1):
        # Without a sign, because each side names the model that leads.
        ticks.append((share * top, format_short_number(abs(share * top), 4)))
    first, second = names
    ends_in_words = (
        _("%(model)s is better") % {"model": first},
        _("%(model)s is better") % {"model": second},
    )
    return RowAxis(-top, top, ticks, zero=0, end_texts=ends_in_words)


def draw_rows(comparison: Comparison, axis: RowAxis, names: tuple[str, str]) -> Iterator[DrawnRow]:
    """Yield the rows of the table, each with its plot."""
    for row in comparison.rows:
        axis_row = _build_axis_row(row, names)
        winner, points, ends = _describe_lead(row, names)
        yield DrawnRow(row, draw_row(axis_row, axis, ROW_HEIGHT), winner, points, ends)


def describe_slices(comparison: Comparison, names: tuple[str, str]) -> Iterator[DrawnRow]:
    """Yield the rows of the slices, without plots, of which a page would have too many."""
    for row in comparison.slices:
        winner, points, ends = _describe_lead(row, names)
        yield DrawnRow(row, SafeString(), winner, points, ends)


def build_difference_figure(comparison: Comparison, names: tuple[str, str]) -> Figure | None:
    """Return all tested differences as a figure for download; None if nothing was tested."""
    # Rows without a test would be empty lines of the chart.
    rows = [row for row in comparison.rows if row.test_result]
    if not rows:
        return None
    axis_rows = [_build_axis_row(row, names) for row in rows]
    tested_count = len(comparison.rows) - comparison.count_rows("untested")
    first_wins, second_wins = comparison.count_rows("first"), comparison.count_rows("second")
    n = max(row.test_result.n for row in rows if row.test_result)
    examples = ngettext("n = %(n)d example per set", "up to n = %(n)d examples per set", n) % {
        "n": n
    }
    values = {"examples": examples, "day": describe_today()}
    return Figure(
        name="differences",
        title=describe_comparison(*names, first_wins, second_wins, tested_count),
        subtitle=_("Differences in points with 95%% intervals, %(examples)s, %(day)s") % values,
        scene=build_rows_scene(axis_rows, build_difference_axis(rows, names)),
        note=_("Grey: no clear difference after correction for all tests (Holm)."),
    )


def _build_axis_row(row: ComparedMetric, names: tuple[str, str]) -> AxisRow:
    """Return a row on the axis, where more to the right is better for the second model."""
    # Errors and drops are inverted, because less is better.
    sign = 1.0 if row.is_less_better else -1.0
    cell = row.cell
    ends = [end for end in (cell.low, cell.high) if end is not None]
    # Inverted, so the low end becomes the high one.
    turned = sorted(sign * end for end in ends)
    low, high = (turned[0], turned[1]) if len(turned) > 1 else (None, None)
    winner, points, ends_in_words = _describe_lead(row, names)
    text = points
    if ends_in_words:
        # Translators: a difference in points and its interval
        text = _("%(points)s (%(low)s to %(high)s)") % {
            "points": points,
            "low": ends_in_words[0],
            "high": ends_in_words[1],
        }
    return AxisRow(
        name=f"{row.set.name}, {in_words(row.metric)}",
        value=None if cell.value is None else sign * cell.value,
        low=low,
        high=high,
        text=text if winner else "",
        role=ROLES[row.better],
    )


def _describe_lead(
    row: ComparedMetric, names: tuple[str, str]
) -> tuple[str, str, tuple[str, str] | None]:
    """Return who is ahead, by how many points, and the ends of the interval of this lead."""
    cell = row.cell
    if cell.value is None or cell.low is None or cell.high is None:
        return "", "", None
    is_first = (cell.value > 0) != row.is_less_better
    # In the order of the numbers, whichever model is ahead.
    ends = sorted((cell.low, cell.high))
    # The lead of the better model is a positive number.
    if cell.value < 0:
        ends = sorted(-end for end in ends)
    texts = [format_decimal(end) for end in ends]
    return names[0] if is_first else names[1], format_points(abs(cell.value)), (texts[0], texts[1])


def draw_outcome_bars(
    outcomes: Mapping[str, OutcomeCounts], names: tuple[str, str], query_by_set: Mapping[str, str]
) -> Iterator[OutcomeBar]:
    """Yield a bar for each set, of four parts that add up to all its examples.

    query_by_set: the beginning of the query that lists the examples, by set.
    """
    first, second = names
    words = (
        _("Both are right"),
        _("Only %(model)s is right") % {"model": first},
        _("Only %(model)s is right") % {"model": second},
        _("Neither is right"),
    )
    for set_name, counts in outcomes.items():
        # A set without examples has an empty bar.
        total = sum(counts) or 1
        shapes, parts, start = [], [], 0.0
        for name, role, text, count in zip(OUTCOME_PARTS, BAR_ROLES, words, counts, strict=True):
            width = 100 * count / total
            shapes.append(Box(role, (start, 0), width, 100, title=f"{text}: {count}"))
            start += width
            # Readers who may not see right answers get counts without links.
            query = query_by_set.get(set_name, "")
            link = f"{query}&part={name}" if query else ""
            parts.append(OutcomePart(name, role, text, count, link))
        scene = Scene(tuple(shapes), BAR_HEIGHT, 0, Margins(0, 0, 0, 0), "outcome-bar")
        yield OutcomeBar(set_name, draw_decoration(scene), parts)
