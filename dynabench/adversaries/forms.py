"""The forms for a new adversary: its name and budget, and its kind's settings."""

from typing import Any, cast

from django import forms
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.mail.addresses import AddressField
from core.web.lists import ListFilter
from dynabench.adversaries.kinds.base import AdversaryKind, Setting
from dynabench.adversaries.models import (
    BUDGET_FIELDS,
    MAX_CALLS,
    MAX_EXAMPLES,
    MAX_MINUTES,
    MAX_SEED,
    MAX_TOKENS,
    Adversary,
    AdversaryTry,
)
from dynabench.adversaries.writer_services import list_writers
from tasks.models import Task

MAX_OPTION_CHARS = 200_000
"""The greatest length of a setting with many lines."""


def _get_words(name: str) -> dict[str, Any]:
    """Return the arguments of a form field that shows a column of `Adversary`."""
    column = cast("models.Field[Any, Any]", Adversary._meta.get_field(name))
    initial = None if column.null else column.default
    words = {"label": column.verbose_name, "help_text": column.help_text}
    return words | {"required": not column.null, "initial": initial}


def _build_number_field(name: str, *, least: int, most: int) -> forms.IntegerField:
    return forms.IntegerField(min_value=least, max_value=most, **_get_words(name))


class AdversaryForm(forms.ModelForm):
    """The form for an adversary's name, seed, schedule and budget."""

    # Declared here, because the API's requests take their limits from the form's fields.
    seed = _build_number_field("seed", least=0, most=MAX_SEED)
    max_calls = _build_number_field("max_calls", least=1, most=MAX_CALLS)
    max_examples = _build_number_field("max_examples", least=1, most=MAX_EXAMPLES)
    max_minutes = _build_number_field("max_minutes", least=1, most=MAX_MINUTES)
    max_tokens = _build_number_field("max_tokens", least=1, most=MAX_TOKENS)
    max_cost = forms.FloatField(min_value=0, **_get_words("max_cost"))

    class Meta:
        model = Adversary
        fields = ("name", "seed", "is_nightly") + BUDGET_FIELDS

    @property
    def budget_fields(self) -> list[forms.BoundField]:
        """Return the fields that limit a run."""
        return [self[name] for name in BUDGET_FIELDS]


class OptionsForm(forms.Form):
    """The form for the settings of a kind."""

    def __init__(self, kind: AdversaryKind, task: Task, *args: Any, **kwargs: Any) -> None:
        """Build a field for each setting of the kind. task: its chat models can be chosen."""
        super().__init__(*args, **kwargs)
        for setting in kind.list_settings(is_talk=task.config.talk is not None):
            self.fields[setting.name] = _build_field(setting, task)


def _build_field(setting: Setting, task: Task) -> forms.Field:
    words: dict[str, Any] = {
        "label": _(setting.title),
        "help_text": _(setting.help) if setting.help else "",
        "initial": setting.default,
    }
    if setting.kind == "number":
        return forms.IntegerField(min_value=setting.low, max_value=setting.high, **words)
    if setting.kind == "flag":
        return forms.BooleanField(required=False, **words)
    if setting.kind == "model":
        return forms.ChoiceField(choices=[(name, name) for name in list_writers(task)], **words)
    if setting.kind == "account":
        return AddressField(required=False, **words)
    return forms.CharField(
        required=False, max_length=MAX_OPTION_CHARS, widget=forms.Textarea({"rows": 6}), **words
    )


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
