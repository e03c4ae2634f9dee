"""Draw the chart of a training run: each test before and after, joined by a line."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.dateformat import format as date_words
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.days import get_today
from core.figures.figure import Figure
from core.figures.rows import PERCENT_AXIS, AxisRow, build_rows_scene, draw_row
from core.numbers import format_decimal, format_percent, format_points
from evaluation.training.findings import describe_training

ROW_HEIGHT = 36


def build_training_figure(tests: Sequence[Any], metric: str) -> Figure | None:
    """Return the figure of the tests, to be downloaded as a file; None without tests."""
    if not tests:
        return None
    n = sum(test["after"]["n"] for test in tests)
    examples = ngettext("n = %(n)d example", "n = %(n)d examples", n) % {"n": n}
    values = {"metric": metric, "examples": examples, "day": date_words(get_today(), "j M Y")}
    return Figure(
        name="before-and-after",
        title=describe_training(tests),
        subtitle=_(
            "%(metric)s before (grey) and after training, 95%% intervals, %(examples)s, %(day)s"
        )
        % values,
        scene=build_rows_scene([_build_test_row(test) for test in tests], PERCENT_AXIS),
    )


def draw_tests(tests: Sequence[Any]) -> list[tuple[Any, SafeString, str]]:
    """Return each test with its plot and its change in words."""
    drawn_tests = []
    # The row has the change in words, which the page shows beside it.
    for test in tests:
        row = _build_test_row(test)
        drawn_tests.append((test, draw_row(row, PERCENT_AXIS, ROW_HEIGHT), row.text))
    return drawn_tests


def _build_test_row(test: Mapping[str, Any]) -> AxisRow:
    new_score, old_score = test["after"], test["before"]
    # A first model has no predecessor.
    earlier_value = None
    text = format_percent(new_score["value"])
    if old_score:
        earlier_value = tuple(100 * old_score[end] for end in ("value", "low", "high"))
        points = format_points(100 * (new_score["value"] - old_score["value"]))
        # Translators: a difference in points
        text = _("%(points)s points") % {"points": points}
        if test["p"] is not None:
            values = {"change": text, "p": format_decimal(test["p"], 3)}
            # Translators: a difference and its p value
            text = _("%(change)s (p = %(p)s)") % values
    return AxisRow(
        name=test["name"],
        value=100 * new_score["value"],
        low=100 * new_score["low"],
        high=100 * new_score["high"],
        text=text,
        earlier_value=earlier_value,
    )
