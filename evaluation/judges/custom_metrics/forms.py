"""Forms to propose a metric and to decide about it."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.judges.custom_metrics.services import MAX_BYTES
from evaluation.models import CustomMetric


class MetricForm(forms.Form):
    """A form for a new version of a metric, whose source is pasted or uploaded."""

    name = forms.CharField(
        max_length=40,
        label=_("Name"),
        help_text=_("Lowercase letters, numbers, hyphens. Reuse a name to create a new version."),
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    about = forms.CharField(
        max_length=200, label=_("What it measures"), help_text=_("One sentence for readers.")
    )
    higher_is_better = forms.TypedChoiceField(
        label=_("Meaning of the score (0 to 1)"),
        choices=[("yes", _("higher is better")), ("no", _("lower is better"))],
        coerce=lambda value: value == "yes",
        initial="yes",
        widget=forms.RadioSelect,
    )
    source = forms.CharField(
        required=False,
        strip=False,
        label=_("Python code"),
        help_text=_(
            "Python 3.11 with its standard library. Define score(gold, answer, example), which "
            "returns a number from 0 to 1. At most 20 kB."
        ),
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false", "class": "code"}),
    )
    file = forms.FileField(required=False, label=_("Or upload a file"))

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        files: MultiValueDict[str, Any] | None = None,
        former_version: CustomMetric | None = None,
    ) -> None:
        """Fill the form with the former version, if there is one."""
        initial = {}
        if former_version:
            initial = {name: getattr(former_version, name) for name in ("name", "about", "source")}
            if not former_version.higher_is_better:
                initial["higher_is_better"] = "no"
        super().__init__(data, files, initial=initial, use_required_attribute=False)

    def clean(self) -> dict[str, Any]:
        """Use the text of the uploaded file, if there is one, as the source."""
        values = self.cleaned_data
        file = values.pop("file", None)
        if file:
            try:
                values["source"] = file.read(MAX_BYTES + 1).decode()
            except UnicodeDecodeError:
                self.add_error("file", gettext("This isn't a UTF-8 text file. Save it as UTF-8."))
        return values


class DecisionForm(forms.Form):
    """A form for an administrator's decision on a version."""

    approve = forms.TypedChoiceField(
        label=_("Decision"),
        # Translators: button: say no
        choices=[("yes", _("Approve and score all stored answers")), ("no", _("Decline"))],
        coerce=lambda value: value == "yes",
        widget=forms.RadioSelect,
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=2000,
        required=False,
        help_text=_("The owners see this. Required if you decline."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
