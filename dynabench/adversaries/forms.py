"""The forms for a new adversary: its name and budget, and its kind's settings."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.web.lists import ListFilter
from dynabench.adversaries.kinds.base import Kind, Setting
from dynabench.adversaries.models import BUDGET_FIELDS, Adversary, AdversaryTry

MAX_OPTION_CHARS = 200_000
"""The greatest length of a setting with many lines."""


class AdversaryForm(forms.ModelForm):
    """The form for an adversary's name, seed, schedule and budget."""

    class Meta:
        model = Adversary
        fields = ("name", "seed", "is_nightly", *BUDGET_FIELDS)


class OptionsForm(forms.Form):
    """The form for the settings of a kind."""

    def __init__(self, kind: Kind, *args: Any, **kwargs: Any) -> None:
        """Build a field for each setting of the kind."""
        super().__init__(*args, **kwargs)
        for setting in kind.settings:
            self.fields[setting.name] = _build_field(setting)


def _build_field(setting: Setting) -> forms.Field:
    words: dict[str, Any] = {
        "label": _(setting.title),
        "help_text": _(setting.help) if setting.help else "",
        "initial": setting.default,
    }
    if setting.kind == "number":
        return forms.IntegerField(min_value=setting.low, max_value=setting.high, **words)
    if setting.kind == "flag":
        return forms.BooleanField(required=False, **words)
    return forms.CharField(
        required=False, max_length=MAX_OPTION_CHARS, widget=forms.Textarea({"rows": 6}), **words
    )


def _list_states() -> list[tuple[str, Any]]:
    return [(state.value, gettext_lazy(state.value)) for state in AdversaryTry.State]


class TryFilter(ListFilter):
    """Filters the tries of an adversary."""

    state = forms.ChoiceField(
        required=False,
        label=gettext_lazy("State"),
        choices=[
            ("", gettext_lazy("All")),
            *((one, gettext_lazy(one)) for one in AdversaryTry.State),
        ],
    )
