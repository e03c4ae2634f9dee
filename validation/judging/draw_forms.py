"""The form for the draw that decides which examples people judge."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tasks.models import Round
from validation.consensus.vote_draws import DEFAULT_MIN_CHANCE, DrawRule
from validation.judging.draw_services import list_possible_judges


class DrawForm(forms.Form):
    """A form for a draw rule; `rule` is available once it is valid. None: people judge all."""

    judge = forms.ChoiceField(
        label=_("Judge model"),
        help_text=_("A model of this task that authors don’t try to fool."),
        required=False,
    )
    min_chance = forms.FloatField(
        min_value=0.01,
        max_value=1,
        initial=DEFAULT_MIN_CHANCE,
        label=_("Chance if the judge model is sure"),
        help_text=_("0.1 means that people judge one in ten of these examples."),
        required=False,
    )

    def __init__(self, round: Round, data: Any = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self._id_by_name = {target.name: target.pk for target in list_possible_judges(round)}
        self.fields["judge"].choices = [  # type: ignore[attr-defined]
            ("", _("No judge model: people judge all")),
            *((name, name) for name in self._id_by_name),
        ]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        name, min_chance = values.get("judge"), values.get("min_chance")
        self.rule = None
        if name and not self.errors:
            # A chance of 0 has an error of its own, so only an empty field becomes the default.
            chance = DEFAULT_MIN_CHANCE if min_chance is None else min_chance
            self.rule = DrawRule(self._id_by_name[name], chance)
        return values
