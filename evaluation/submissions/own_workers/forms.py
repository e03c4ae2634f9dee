"""The form with which owners let a person evaluate models on their own machines."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.mail.addresses import AddressField
from evaluation.models import EvaluationSet, SecondOpinion, Submission
from evaluation.submissions.own_workers.selectors import find_own_models, find_own_sets
from tasks.models import Task


class OwnWorkerForm(forms.Form):
    """A form for a permission: the person, their models, the sets, and the second opinion."""

    email = AddressField(label=gettext_lazy("Email address of the account"))
    takes_sealed = forms.BooleanField(
        required=False,
        label=gettext_lazy("I agree that inputs of sealed sets are sent to this runner"),
        help_text=gettext_lazy("We log your consent. Right answers never leave the site."),
    )
    second = forms.ChoiceField(
        choices=SecondOpinion.choices,
        initial=SecondOpinion.SITE,
        label=gettext_lazy("Who checks a random tenth of the answers"),
    )

    def __init__(self, task: Task, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, use_required_attribute=False)
        self.fields["model"] = forms.ModelChoiceField(
            find_own_models(task),
            required=False,
            label=_("Models"),
            empty_label=_("All models of this person and their teams"),
        )
        self.fields["evaluation_set"] = forms.ModelChoiceField(
            find_own_sets(task),
            required=False,
            to_field_name="name",
            label=_("Test sets"),
            empty_label=_("All sets whose inputs can leave the site"),
            help_text=_("Choose one model or one set, or leave both empty."),
        )
        for name in ("model", "evaluation_set"):
            self.fields[name].label_from_instance = attrgetter("name")  # type: ignore[attr-defined]
        self.order_fields(["email", "model", "evaluation_set"])

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `services.add_worker`, except the person."""
        values = dict(self.cleaned_data)
        del values["email"]
        submission: Submission | None = values.pop("model")
        evaluation_set: EvaluationSet | None = values.pop("evaluation_set")
        return values | {"submission": submission, "evaluation_set": evaluation_set}
