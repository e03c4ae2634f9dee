"""A template tag for a model's score on a round of the leaderboard on one ruler."""

from typing import TYPE_CHECKING

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.numbers import format_decimal

if TYPE_CHECKING:  # because it loads numpy
    from leaderboard.board.one_ruler import RulerScore

register = template.Library()


@register.simple_tag(name="ruler_cell")
def build_ruler_cell(score: "RulerScore") -> SafeString:
    """Return a cell of the table: the expected score with its interval, and the measured one.

    A page has up to 500 scores. Rendered by a template each, they would take three times as long
    as everything else on the page.
    """
    value, low, high = (format_decimal(number or 0.0) for number in score.expected)
    interval = _("%(low)s–%(high)s") % {"low": low, "high": high}
    if score.is_measured:
        # Translators: the measured score beside the expected one
        beside = _("measured %(value)s") % {"value": format_decimal(score.measured.value or 0.0)}
    else:
        # Translators: the model did not run this round
        beside = _("not run")
    return format_html(
        '<td class="number" data-label="{0}"><span class="num" title="{1}">{2}</span>'
        ' <small class="visually-hidden">({1})</small> <small>{3}</small></td>',
        score.round.set.title,
        interval,
        value,
        beside,
    )
