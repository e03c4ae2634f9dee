"""A form that asks of each criterion of an example whether the model's answer meets it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tasks.config.criteria import CLEAR_JUDGEMENTS, JUDGEMENTS, Criterion, Judgement

JUDGEMENT_WORDS = {
    # Translators: said of a criterion: the model's answer fulfils it
    "met": _("Met"),
    # Translators: said of a criterion: the model's answer doesn't fulfil it
    "not_met": _("Not met"),
    # Translators: said of a criterion: the person can't decide whether it is met
    "cannot_tell": _("Can't tell"),
}


class CriteriaForm(forms.Form):
    """A form with one question for each criterion, for the author or for a judge.

    allows_doubt: whether a person may answer that they can't tell.
    """

    def __init__(
        self, data: Any = None, *, criteria: Sequence[Criterion], allows_doubt: bool = False
    ) -> None:
        super().__init__(data)
        # An author who wrote the criteria can tell, and the first verdict needs it.
        judgements = JUDGEMENTS if allows_doubt else CLEAR_JUDGEMENTS
        self.criterion_names = []
        for number, criterion in enumerate(criteria, 1):
            name = f"criterion-{number}"  # no field of a task has a hyphen in its name
            self.criterion_names.append(name)
            self.fields[name] = forms.ChoiceField(
                label=criterion.text,
                choices=[(judgement, JUDGEMENT_WORDS[judgement]) for judgement in judgements],
                widget=forms.RadioSelect,
                error_messages={"required": _("Choose an answer")},
            )

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """Return the chosen judgements, in the order of the criteria. Call on a valid form only."""
        return tuple(self.cleaned_data[name] for name in self.criterion_names)

    @property
    def criterion_fields(self) -> list[forms.BoundField]:
        """Return the questions about the criteria, to be shown one below another."""
        return [self[name] for name in self.criterion_names]
