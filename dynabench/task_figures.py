"""The charts of a task's rounds: people against the models of the rounds, and catch rates."""

from collections.abc import Mapping, Sequence
from datetime import date

from django.utils.dateformat import format as date_words
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.charts import Point
from core.data.adaptive_cache import CachedResult
from core.figures.figure import Figure, index_figures
from core.figures.plots import (
    Bracket,
    PlotLine,
    build_line_legend,
    build_line_scene,
    build_share_table,
    compute_share_axis_top,
    find_last_index,
)
from leaderboard.board.cells import Cell
from leaderboard.rounds.findings import describe_catch_rate, describe_gap
from leaderboard.rounds.progress import compare_rounds
from tasks.models import Round
from validation.rates.rates import Rate
from validation.templatetags.numbers import HEADLINE_AUTHORS, HEADLINE_DECIDED

NumberedRound = tuple[Round, CachedResult]
MIN_RATES = 2
"""The minimum number of rates for a chart. Fewer are clearer in a table."""


def build_task_figures(numbered_rounds: Sequence[NumberedRound], day: date) -> Mapping[str, Figure]:
    """Return the charts that can be drawn, by name. day: the date in the charts."""
    return index_figures(
        [_build_gap_figure(numbered_rounds, day), _build_rate_figure(numbered_rounds, day)]
    )


def _build_gap_figure(numbered_rounds: Sequence[NumberedRound], day: date) -> Figure | None:
    """Return a chart of how often people and the rounds' models agree with other people, by round.

    None if too few rates are known.
    """
    # On the same votes, so that both can be compared.
    people = _build_points(numbered_rounds, "human_accuracy")
    models = _build_points(numbered_rounds, "model_accuracy")
    if min(_count_known(people), _count_known(models)) < MIN_RATES:
        return None
    lines = [PlotLine(_("People"), people, "people"), PlotLine(_("Model"), models, "chosen")]
    # The newest round with a gap gives the title.
    title, bracket = _("People and models by round"), None
    last_index = find_last_index(lines)
    for index, (round, counts) in reversed([*enumerate(numbered_rounds)]):
        gap = counts.numbers["human_model_gap"]
        if isinstance(gap, Rate):
            cell = Cell(100 * gap.value, 100 * gap.low, 100 * gap.high)
            title = describe_gap(cell, round.number, _("The model"))
            # The bracket stands at the last point, so only that round's gap may be drawn there.
            if index == last_index:
                bracket = _build_bracket(people[index], models[index], cell)
            break
    values = {"examples": _count_votes(numbered_rounds), "day": date_words(day, "j M Y")}
    return Figure(
        name="people-and-model",
        title=title,
        subtitle=_("Agreement with other people by round, 95%% intervals, %(examples)s, %(day)s")
        % values,
        scene=build_line_scene(lines, top=1, bracket=bracket),
        table=build_share_table(lines, has_sign=True),
        legend=build_line_legend(lines),
        has_end_labels=True,
    )


def _build_bracket(people: Point, model: Point, gap: Cell) -> Bracket | None:
    if people.value is None or model.value is None:
        return None
    values = {"points": f"{gap.value:.0f}", "low": f"{gap.low:.0f}", "high": f"{gap.high:.0f}"}
    text = _("%(points)s points (%(low)s to %(high)s)") % values
    return Bracket(max(people.value, model.value), min(people.value, model.value), text)


def _build_rate_figure(numbered_rounds: Sequence[NumberedRound], day: date) -> Figure | None:
    """Return a chart of the catch rate by round, with the number of tries below each round's name.

    None if too few rates are known.
    """
    points = _build_points(numbered_rounds, "vmer", has_try_count=True)
    if _count_known(points) < MIN_RATES:
        return None
    catch_rates = [_get_rate(counts, "vmer") for _round, counts in numbered_rounds]
    accuracies = [_get_rate(counts, "human_accuracy") for _round, counts in numbered_rounds]
    # Votes that differ from most others: an upper bound on wrong labels.
    label_noises = [None if people is None else 1 - people.value for people in accuracies]
    steps = compare_rounds(catch_rates, label_noises)
    # The newest round may have no rate yet.
    last_index = max(index for index, catch_rate in enumerate(catch_rates) if catch_rate)
    previous_rate = catch_rates[last_index - 1] if last_index else None
    rate = catch_rates[last_index]
    title = describe_catch_rate(
        steps[last_index].progress,
        numbered_rounds[last_index][0].number,
        100 * rate.value if rate else 0,
        numbered_rounds[last_index - 1][0].number if previous_rate else None,
        100 * previous_rate.value if previous_rate else None,
    )
    lines = [PlotLine(_("Catch rate"), points, "chosen", has_label=False, is_connected=False)]
    subtitle = _("Catches as a share of all tries (vMER), 95%% intervals, %(day)s")
    return Figure(
        name="catch-rate",
        title=title,
        subtitle=subtitle % {"day": date_words(day, "j M Y")},
        scene=build_line_scene(lines, top=compute_share_axis_top(points)),
        table=build_share_table(lines, has_sign=True),
    )


def _get_rate(counts: CachedResult, name: str) -> Rate | None:
    rate = counts.numbers[name]
    return rate if isinstance(rate, Rate) else None


def _build_points(
    numbered_rounds: Sequence[NumberedRound], name: str, *, has_try_count: bool = False
) -> list[Point]:
    """Return the points of a rate by round. A missing rate is a gap in the line.

    has_try_count: whether the labels contain the number of tries.
    """
    points = []
    for round, counts in numbered_rounds:
        rate = _get_rate(counts, name)
        label = _("Round %(number)d") % {"number": round.number}
        if rate is None:
            points.append(Point(label, None))
            continue
        # The size of a round tells how far its rate can be trusted.
        if has_try_count:
            label = _("R%(number)d, n %(n)d") % {"number": round.number, "n": rate.n}
        has_few_authors = rate.clusters is not None and rate.clusters < HEADLINE_AUTHORS
        is_thin = rate.n < HEADLINE_DECIDED or has_few_authors
        points.append(Point(label, rate.value, rate.low, rate.high, is_thin))
    return points


def _count_known(points: Sequence[Point]) -> int:
    return sum(point.value is not None for point in points)


def _count_votes(numbered_rounds: Sequence[NumberedRound]) -> str:
    rates = [_get_rate(counts, "human_accuracy") for _round, counts in numbered_rounds]
    n = sum(rate.n for rate in rates if rate)
    return ngettext("n = %(n)d comparable vote", "n = %(n)d comparable votes", n) % {"n": n}
