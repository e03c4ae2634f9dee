"""What only an owner can state about a release: its origin, limits, biases, uses and maintenance.

The properties are those of Croissant's vocabulary for responsible AI (RAI) 1.0. Where an owner
states nothing, `responsible_ai` says what is true of every release.
"""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

MAX_CHARACTERS = 2000
RAI_PROPERTIES = {
    "limitations": "rai:dataLimitations",
    "biases": "rai:dataBiases",
    "personal_information": "rai:personalSensitiveInformation",
    "use_cases": "rai:dataUseCases",
    "social_impact": "rai:dataSocialImpact",
    "maintenance_plan": "rai:dataReleaseMaintenancePlan",
    "demographics": "rai:annotatorDemographics",
    "raw_data": "rai:dataCollectionRawData",
    "preprocessing": "rai:dataPreprocessingProtocol",
}
"""The RAI property that each statement fills, by the name of the statement."""
SINGLE_TEXTS = ("rai:dataCollectionRawData",)
"""The properties with one text in Croissant's vocabulary. The others have a list of texts."""


def _make_statement_field(label: Any, help_text: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=MAX_CHARACTERS,
        widget=forms.Textarea({"rows": 3}),
        help_text=help_text,
    )


class StatementsForm(forms.Form):
    """A form for the statements, each of which may stay empty."""

    limitations = _make_statement_field(
        _("Limits"), _("What is this data not suited for? Where could it mislead?")
    )
    biases = _make_statement_field(
        _("Biases"), _("Who wrote and judged? Whose language or views are missing?")
    )
    personal_information = _make_statement_field(
        _("Sensitive information"),
        _("Do texts mention real people, health, beliefs or other sensitive matters?"),
    )
    use_cases = _make_statement_field(
        _("Uses"), _("What is this data for? Which uses do you advise against?")
    )
    social_impact = _make_statement_field(
        _("Social impact"), _("What good or harm could follow? What have you done about it?")
    )
    maintenance_plan = _make_statement_field(
        _("Maintenance"), _("Who looks after this data, and where can people report problems?")
    )
    demographics = _make_statement_field(
        _("Who took part"),
        _("If you asked: countries, languages, ages or professions, as totals without names."),
    )
    raw_data = _make_statement_field(
        _("Original data"), _("Where do the texts come from, and where are the originals kept?")
    )
    preprocessing = _make_statement_field(
        _("Changes to texts"),
        _("How were texts changed before people saw them? For example cut, cleaned or translated."),
    )

    def list_statement_fields(self) -> list[forms.BoundField]:
        """Return the fields of the statements, which pages show in a section of their own."""
        return [self[name] for name in RAI_PROPERTIES]

    def list_other_fields(self) -> list[forms.BoundField]:
        """Return the form's fields that are not statements."""
        # A later version has fewer fields, so they are not named here.
        return [self[name] for name in self.fields if name not in RAI_PROPERTIES]

    def get_statements(self) -> dict[str, str]:
        """Return the form's valid statements by name."""
        return {name: self.cleaned_data.get(name, "") for name in RAI_PROPERTIES}
