"""Forms for a round's plan and for replacing a target."""

from typing import Any, NamedTuple

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.text.money import convert_to_smallest_units, format_units, get_decimals
from core.web.money_input import MoneyInput
from tasks.models import Round, Task
from tasks.rounds.services import NO_CONTEXTS_MESSAGE

PAY_FIELDS = ("pay_example", "pay_validation", "pay_bonus")
MONEY_FIELDS = ("max_spent", *PAY_FIELDS)
"""Fields that are stored in the currency's smallest unit, and typed in major units on pages."""
MAX_MONEY_DIGITS = 10  # of the largest whole number in PostgreSQL
FIELD_LABELS = {
    "description": _("Description"),
    "rule": _("An example counts when it"),
    "show_target_name": _("Show model names"),
    "ends_at": _("Ends at"),
    "max_collected": _("Maximum tries"),
    "max_fooling": _("Maximum catches"),
    "max_spent": _("Budget"),
    "pay_example": _("Pay per example"),
    "pay_validation": _("Pay per judgement"),
    "pay_bonus": _("Bonus per catch"),
}
HELP_TEXTS = {
    "description": _("Markdown, shown on the task's page."),
    "show_target_name": _("Otherwise people see Model A, Model B until the round closes."),
    "max_collected": _("The round closes at this number. Leave empty for no limit."),
    "max_spent": _("Leave empty for no limit."),
    "max_fooling": _("The round closes at this number. Leave empty for no limit."),
    "ends_at": _("UTC. Leave empty to keep the round open until you close it."),
}


RULE_LABELS = {
    Round.Rule.MAJORITY: _("fools most of the round's models"),
    Round.Rule.ALL: _("fools all of the round's models"),
    Round.Rule.ANY: _("fools one of the round's models"),
}
# Owners read these titles like steps, from the work to what it costs.
FORM_PARTS = {
    "work": (_("What people do"), ("description", "rule", "contexts_of", "parents")),
    "models": (_("Models"), ("targets", "show_target_name")),
    "end": (_("When the round ends"), ("ends_at", "max_collected", "max_fooling", "max_spent")),
    "pay": (_("Pay"), PAY_FIELDS),
}
"""The title and the fields of each part of the form."""


class FormPart(NamedTuple):
    """A part of the form, with the fields that this round has."""

    key: str
    title: str
    fields: list[forms.BoundField]


class RoundEndForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form for a round. A new end must be in the future."""

    def clean_ends_at(self) -> Any:
        value = self.cleaned_data["ends_at"]
        if value and value <= timezone.now() and "ends_at" in self.changed_data:
            raise ValidationError(gettext("Choose a time in the future"))
        return value


class RoundForm(RoundEndForm):
    """A form for planning or changing a round, which the services store.

    Money is in the currency's smallest unit, as the API takes it. `RoundPageForm` takes major
    units.
    """

    targets: Any = forms.ModelMultipleChoiceField(
        None, to_field_name="name", required=False, widget=forms.CheckboxSelectMultiple,
        label=_("Models to fool"),
        help_text=_(
            "People try to fool these models. Without one, the round only collects examples."
        ),
    )  # fmt: skip
    parents: Any = forms.ModelMultipleChoiceField(
        None, to_field_name="number", required=False, widget=forms.CheckboxSelectMultiple,
        label=_("Parent rounds"),
        help_text=_("Rounds that these models were trained on, or that this round continues."),
    )  # fmt: skip
    contexts_of: Any = forms.ModelChoiceField(
        None, to_field_name="number", required=False, label=_("Copy texts from"),
        empty_label=_("No round"),
        help_text=_("Retired texts aren't copied. You can import others later."),
    )  # fmt: skip

    class Meta:
        model = Round
        fields = [
            "description",
            "rule",
            "show_target_name",
            "ends_at",
            "max_collected",
            "max_fooling",
            "max_spent",
            *PAY_FIELDS,
        ]
        help_texts = HELP_TEXTS
        labels = FIELD_LABELS
        widgets = {
            "description": forms.Textarea(attrs={"rows": 4}),
            "ends_at": forms.DateTimeInput(
                attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
            ),
        }

    def __init__(self, *args: Any, task: Task, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        round = self.instance
        choices: dict[str, Any] = self.fields
        choices["targets"].queryset = task.targets.all()
        earlier_rounds = task.rounds.select_related("task").order_by("number")
        choices["contexts_of"].queryset = earlier_rounds
        choices["rule"].choices = list(RULE_LABELS.items())
        # Left empty they are 0, which `clean` fills in.
        for name in PAY_FIELDS:
            self.fields[name].required = False
        if round.pk:
            earlier_rounds = earlier_rounds.filter(number__lt=round.number)
            self.fields["parents"].initial = [parent.number for parent in round.parents.all()]
            self.fields["targets"].initial = [target.name for target in round.targets.all()]
            choices["contexts_of"].queryset = earlier_rounds
        elif last_round := earlier_rounds.last():
            self._copy_settings(last_round)
        # What decided the stored examples cannot be changed, so the form does not offer it.
        if round.opened_at:
            del self.fields["rule"], self.fields["targets"], self.fields["contexts_of"]
        choices["parents"].queryset = earlier_rounds
        choices["parents"].label_from_instance = _format_round
        if "contexts_of" in choices:
            choices["contexts_of"].label_from_instance = _format_round

    def _copy_settings(self, last_round: Round) -> None:
        """Use the settings of the previous round as initial values."""
        initial_values = {
            name: getattr(last_round, name) for name in ("rule", "show_target_name", *PAY_FIELDS)
        }
        initial_values["targets"] = [target.name for target in last_round.targets.all()]
        initial_values["parents"] = [last_round.number]
        if last_round.contexts.filter(is_retired=False).exists():
            initial_values["contexts_of"] = last_round.number
        self.initial.update(initial_values)

    def clean_contexts_of(self) -> Round | None:
        source: Round | None = self.cleaned_data["contexts_of"]
        if source and not source.contexts.filter(is_retired=False).exists():
            raise ValidationError(gettext(NO_CONTEXTS_MESSAGE) % {"number": source.number})
        return source

    def clean(self) -> dict[str, Any]:
        super().clean()
        data = self.cleaned_data
        return data | {name: data[name] or 0 for name in PAY_FIELDS if name in data}

    @property
    def parts(self) -> list[FormPart]:
        """Return the parts of the form that still have changeable fields."""
        parts = []
        for key, (title, names) in FORM_PARTS.items():
            fields = [self[name] for name in names if name in self.fields]
            if fields:
                parts.append(FormPart(key, str(title), fields))
        return parts

    @property
    def plan(self) -> dict[str, Any]:
        """Return the arguments for the services. Only for a valid form."""
        data = dict(self.cleaned_data)
        # These are arguments of the services of their own, all others are columns of the round.
        argument_names = data.keys() & {"targets", "parents", "contexts_of"}
        return {**{name: data.pop(name) for name in argument_names}, "fields": data}


class RoundPageForm(RoundForm):
    """A form for a round on the owners' pages, which take money in major units, such as euros."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in MONEY_FIELDS:
            self.fields[name] = forms.DecimalField(
                label=FIELD_LABELS[name],
                help_text=HELP_TEXTS.get(name, ""),
                required=False,
                min_value=0,
                max_digits=MAX_MONEY_DIGITS,
                decimal_places=get_decimals(settings.CURRENCY),
                widget=MoneyInput(settings.CURRENCY),
            )
            amount = self.initial.get(name)
            if amount is not None:
                self.initial[name] = format_units(amount, settings.CURRENCY)

    def clean(self) -> dict[str, Any]:
        """Convert amounts to the currency's smallest unit, in which they are stored."""
        data = super().clean()
        for name in MONEY_FIELDS:
            if data.get(name) is not None:
                # The field allows no more decimals than the currency has, so nothing is lost.
                data[name] = convert_to_smallest_units(data[name], settings.CURRENCY)
        return data


class ReplacementForm(forms.Form):
    """A form that names a target of the round and its replacement, another target of the task."""

    old: Any = forms.ModelChoiceField(
        None, to_field_name="name", label=_("Model to replace"), empty_label=None
    )
    new: Any = forms.ModelChoiceField(
        None, to_field_name="name", label=_("New model"), empty_label=_("Choose a model")
    )

    def __init__(self, *args: Any, round: Round, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields
        choices["old"].queryset = round.targets.order_by("name")
        choices["new"].queryset = round.task.targets.exclude(rounds=round)


def _format_round(round: Round) -> str:
    return gettext("Round %(number)d") % {"number": round.number}
