"""A template tag for a model's scores on the rounds of the leaderboard on one ruler."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.numbers import format_decimal

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.one_ruler import RulerScore

register = template.Library()


@register.simple_tag(name="ruler_cells")
def build_ruler_cells(scores: Sequence["RulerScore"]) -> SafeString:
    """Return a row's cells: each expected score with its interval, and the measured one.

    A page has up to 500 scores. Rendered by a template each, they would take three times as long
    as everything else on the page.
    """
    # Looked up once a row: a translation costs more than the rest of its cell.
    interval_words = _("%(low)s–%(high)s")
    # Translators: the measured score beside the expected one
    measured_words = _("measured %(value)s")
    # Translators: the model did not run this round
    missing_words = _("not run")
    cells = []
    for score in scores:
        value, low, high = (format_decimal(number or 0.0) for number in score.expected)
        beside = missing_words
        if score.is_measured:
            beside = measured_words % {"value": format_decimal(score.measured.value or 0.0)}
        interval = interval_words % {"low": low, "high": high}
        cells.append((score.round.set.title, interval, value, beside))
    return format_html_join(
        "",
        '<td class="number" data-label="{0}"><span class="num" title="{1}">{2}</span>'
        ' <small class="visually-hidden">({1})</small> <small>{3}</small></td>',
        cells,
    )
