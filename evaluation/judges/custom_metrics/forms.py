"""Forms with which a metric is proposed, and decided about."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.judges.custom_metrics.services import MOST_BYTES
from evaluation.models import CustomMetric


class MetricForm(forms.Form):
    """A form for a new version of a metric, whose source is pasted or uploaded."""

    name = forms.CharField(
        max_length=40,
        label=_("Name"),
        help_text=_("Small letters, digits, hyphens. The same name makes a new version."),
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    about = forms.CharField(
        max_length=200, label=_("What it measures"), help_text=_("A sentence for readers.")
    )
    higher_is_better = forms.TypedChoiceField(
        label=_("A share from 0 to 1, of which"),
        choices=[("yes", _("more is better")), ("no", _("less is better"))],
        coerce=lambda value: value == "yes",
        initial="yes",
        widget=forms.RadioSelect,
    )
    source = forms.CharField(
        required=False,
        strip=False,
        label=_("Text of the file"),
        help_text=_(
            "Python 3.11 with its standard library: score(gold, answer, example) returns a number "
            "from 0 to 1. At most 20 kB."
        ),
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false", "class": "code"}),
    )
    file = forms.FileField(required=False, label=_("Or the file itself"))

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        files: MultiValueDict[str, Any] | None = None,
        former: CustomMetric | None = None,
    ) -> None:
        """Fill the form with the former version, if there is one."""
        initial = {}
        if former:
            initial = {name: getattr(former, name) for name in ("name", "about", "source")}
            if not former.higher_is_better:
                initial["higher_is_better"] = "no"
        super().__init__(data, files, initial=initial, use_required_attribute=False)

    def clean(self) -> dict[str, Any]:
        """Use the text of the uploaded file, if there is one, as the source."""
        values = self.cleaned_data
        file = values.pop("file", None)
        if file:
            try:
                values["source"] = file.read(MOST_BYTES + 1).decode()
            except UnicodeDecodeError:
                self.add_error("file", gettext("It is no text in UTF-8."))
        return values


class DecisionForm(forms.Form):
    """A form for an administrator's decision on a version."""

    approve = forms.TypedChoiceField(
        label=_("Decision"),
        # Translators: button: say no
        choices=[("yes", _("Approve: score all stored answers")), ("no", _("Refuse"))],
        coerce=lambda value: value == "yes",
        widget=forms.RadioSelect,
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=2000,
        required=False,
        help_text=_("The owners read it. Needed to refuse."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
