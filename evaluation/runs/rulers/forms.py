"""The form with which a task's owners have a ruler's anchors chosen."""

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.runs.rulers.services import DEFAULT_ANCHORS, MAX_ANCHORS, MIN_ANCHORS

MAX_SEED = 2**31 - 1


class RulerForm(forms.Form):
    """How many anchors, and the seed that draws half of them."""

    anchors = forms.IntegerField(
        # Translators: examples that every model answers, by which rounds are compared
        label=_("Number of anchors"),
        initial=DEFAULT_ANCHORS,
        min_value=MIN_ANCHORS,
        max_value=MAX_ANCHORS,
        help_text=_("With more anchors, expected scores are more certain. Usually 100."),
    )
    seed = forms.IntegerField(
        label=_("Seed"),
        initial=1,
        min_value=0,
        max_value=MAX_SEED,
        help_text=_("The same seed and the same answers choose the same anchors."),
    )
