"""The forms of a battle: the message, the vote, the answer to the question of publication."""

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from leaderboard.models import Comparison
from tasks.line_files import find_unstorable

MAX_PROMPT_CHARS = 4_000


class MessageForm(forms.Form):
    """A form for the next message to both models. battle: empty for a new battle."""

    battle = forms.UUIDField(required=False, widget=forms.HiddenInput)
    number = forms.IntegerField(min_value=1, max_value=1000, widget=forms.HiddenInput)
    key = forms.UUIDField(widget=forms.HiddenInput)
    prompt = forms.CharField(
        max_length=MAX_PROMPT_CHARS,
        label=_("Your message"),
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
    )

    def clean_prompt(self) -> str:
        prompt: str = self.cleaned_data["prompt"]
        if reason := find_unstorable(prompt):
            raise ValidationError(gettext("It holds %(reason)s.") % {"reason": reason})
        return prompt


class VoteForm(forms.Form):
    """A form for a vote on a battle. It states how many turns the page showed."""

    battle = forms.UUIDField()
    turns = forms.IntegerField(min_value=1)
    winner = forms.ChoiceField(choices=Comparison.Winner.choices)
