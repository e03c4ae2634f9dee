"""The forms of a battle: the message and the vote."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from leaderboard.models import Comparison
from tasks.line_files import find_unstorable_reason

MAX_PROMPT_CHARS = 4_000
SIDE_LABELS = (_("Model A"), _("Model B"), _("Model C"), _("Model D"), _("Model E"))
"""The names by which voters tell the answers apart, from left to right."""


class MessageForm(forms.Form):
    """A form for the next message to both models.

    battle: empty for a new battle. number: the message's number in the battle. key: identifies this
    form, so that a double click sends one message.
    """

    battle = forms.UUIDField(required=False, widget=forms.HiddenInput)
    number = forms.IntegerField(min_value=1, max_value=1000, widget=forms.HiddenInput)
    key = forms.UUIDField(widget=forms.HiddenInput)
    prompt = forms.CharField(
        max_length=MAX_PROMPT_CHARS,
        label=_("Your message"),
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto", "placeholder": " "}),
    )

    def clean_prompt(self) -> str:
        prompt: str = self.cleaned_data["prompt"]
        if reason := find_unstorable_reason(prompt):
            raise ValidationError(gettext("Your message contains %(reason)s.") % {"reason": reason})
        return prompt


class VoteForm(forms.Form):
    """A form for a vote on a battle. It states how many turns the page showed."""

    battle = forms.UUIDField()
    turns = forms.IntegerField(min_value=1)
    winner = forms.ChoiceField(choices=Comparison.Winner.choices)


class RankingForm(forms.Form):
    """A form for a ranking of a battle with more than two answers. Answers can share a place.

    It states how many turns the page showed.
    """

    battle = forms.UUIDField(widget=forms.HiddenInput)
    turns = forms.IntegerField(min_value=1, widget=forms.HiddenInput)

    def __init__(
        self, sides: Sequence[str], data: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        # The form for the next message, on the same page, has fields with the same names.
        super().__init__(data, auto_id="rank-%s", **options)
        self.sides = sides
        places = [(number, str(number)) for number in range(1, len(sides) + 1)]
        for label, side in zip(SIDE_LABELS, sides, strict=False):
            # Translators: model: such as “Model A”
            message = gettext("Choose a place for %(model)s.") % {"model": label}
            self.fields[f"place_{side}"] = forms.TypedChoiceField(
                coerce=int,
                choices=places,
                label=label,
                widget=forms.RadioSelect,
                error_messages={"required": message},
            )

    def clean(self) -> dict[str, Any]:
        """Add `ranking`: the place of each side, if all have one."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        places = {side: values.get(f"place_{side}") for side in self.sides}
        # A missing place has an error at its field already.
        if None not in places.values():
            values["ranking"] = places
        return values

    def list_rows(self) -> list[forms.BoundField]:
        """Return the fields with the places, in the order of the answers."""
        return [self[f"place_{side}"] for side in self.sides]
