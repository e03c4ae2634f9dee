"""The form of a round's plan."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tasks.models import Round, Task
from tasks.rounds.services import NO_CONTEXTS_MESSAGE

PAY_FIELDS = ("pay_example", "pay_validation", "pay_bonus")
FIELD_LABELS = {
    "description": _("Description"),
    "rule": _("An example counts when it"),
    "show_target_name": _("Show target names"),
    "ends_at": _("Ends at"),
    "max_collected": _("Maximum tries"),
    "max_fooling": _("Maximum catches"),
    "max_spent": _("Money"),
    "pay_example": _("Pay for an example, in cents"),
    "pay_validation": _("Pay for a validation, in cents"),
    "pay_bonus": _("Bonus for a catch, in cents"),
}
HELP_TEXTS = {
    "description": _("Markdown; people read it on the task's page."),
    "show_target_name": _("Otherwise people read Model A, Model B until the round closes."),
    "max_collected": _("The round closes at this number. Leave empty for no limit."),
    "max_fooling": _("The round closes at this number. Leave empty for no limit."),
    "max_spent": _("In cents, or what your currency's smallest unit is. Empty: no limit."),
    "ends_at": _("UTC. The round closes then. Empty: it stays open until you close it."),
}


class EndsAhead(forms.ModelForm):  # type: ignore[type-arg]
    """A form for a round that requires a new end to be in the future."""

    def clean_ends_at(self) -> Any:
        value = self.cleaned_data["ends_at"]
        if value and value <= timezone.now() and "ends_at" in self.changed_data:
            raise ValidationError(gettext("Choose a time that lies ahead"))
        return value


class RoundForm(EndsAhead):
    """A form for planning or changing a round, which the services store."""

    targets: Any = forms.ModelMultipleChoiceField(
        None, to_field_name="name", required=False, widget=forms.CheckboxSelectMultiple,
        label=_("Targets in the loop"),
        help_text=_("The models that people try to fool. Without one the round only collects."),
    )  # fmt: skip
    parents: Any = forms.ModelMultipleChoiceField(
        None, to_field_name="number", required=False, widget=forms.CheckboxSelectMultiple,
        label=_("Parent rounds"),
        help_text=_("The rounds whose data trained these targets, or that this one goes on from."),
    )  # fmt: skip
    contexts_of: Any = forms.ModelChoiceField(
        None, to_field_name="number", required=False, label=_("Copy the contexts of"),
        empty_label=_("No round"),
        help_text=_("Those that are not retired. Others come from files, on a page of their own."),
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
        earlier = task.rounds.select_related("task").order_by("number")
        choices["contexts_of"].queryset = earlier
        # Left empty they are 0, which `clean` fills in.
        for name in PAY_FIELDS:
            self.fields[name].required = False
        if round.pk:
            earlier = earlier.filter(number__lt=round.number)
            self.fields["parents"].initial = [parent.number for parent in round.parents.all()]
            self.fields["targets"].initial = [target.name for target in round.targets.all()]
            choices["contexts_of"].queryset = earlier
        elif last := earlier.last():
            self._begin_as(last)
        # What decided the stored examples cannot be changed, so the form does not offer it.
        if round.opened_at:
            del self.fields["rule"], self.fields["targets"], self.fields["contexts_of"]
        choices["parents"].queryset = earlier
        choices["parents"].label_from_instance = _name
        if "contexts_of" in choices:
            choices["contexts_of"].label_from_instance = _name

    def _begin_as(self, last_round: Round) -> None:
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
    def plan(self) -> dict[str, Any]:
        """Return the arguments for the services. Only for a valid form."""
        data = dict(self.cleaned_data)
        # These are arguments of the services of their own, all others are columns of the round.
        others = data.keys() & {"targets", "parents", "contexts_of"}
        return {**{name: data.pop(name) for name in others}, "fields": data}


class ReplaceForm(forms.Form):
    """A form that names a target of the round and its replacement, another target of the task."""

    old: Any = forms.ModelChoiceField(
        None, to_field_name="name", label=_("Target that goes"), empty_label=None
    )
    new: Any = forms.ModelChoiceField(
        None, to_field_name="name", label=_("Target that takes its place")
    )

    def __init__(self, *args: Any, round: Round, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields
        choices["old"].queryset = round.targets.order_by("name")
        choices["new"].queryset = round.task.targets.exclude(rounds=round)


def _name(round: Round) -> str:
    return gettext("Round %(number)d") % {"number": round.number}
