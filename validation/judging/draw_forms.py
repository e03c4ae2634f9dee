"""The form for the draw that decides which examples people judge."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tasks.config.judging_checks import has_comparable_labels
from tasks.models import Round
from tasks.targets.sample_judges import list_possible_judges
from validation.consensus.vote_draws import DEFAULT_MIN_CHANCE, DEFAULT_PROMPT, DrawRule
from validation.judging.draw_counts import read_draw_state


class DrawForm(forms.Form):
    """A form for a draw rule; `rule` is available once it is valid. None: people judge all."""

    judge = forms.ChoiceField(
        label=_("Judge model"),
        help_text=_("A model of this task that authors don’t try to fool."),
        required=False,
    )
    by_instruction = forms.BooleanField(
        label=_("Judge by an instruction"),
        help_text=_(
            "A chat model reads what people who judge read, and answers their question. Otherwise "
            "the model gives its own label, and we compare it with the author’s."
        ),
        required=False,
    )
    prompt = forms.CharField(
        max_length=10_000,
        label=_("Instruction"),
        help_text=_(
            "We add the question, its choices and the texts. Leave empty for the usual instruction."
        ),
        widget=forms.Textarea(attrs={"rows": 5}),
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
        self._round = round
        self._id_by_name = {target.name: target.pk for target in list_possible_judges(round)}
        self.fields["judge"].choices = [  # type: ignore[attr-defined]
            ("", _("No judge model: people judge all")),
            *((name, name) for name in self._id_by_name),
        ]
        # Without labels there is nothing else that a judge could do.
        self._needs_instruction = not has_comparable_labels(round.task.config)
        if self._needs_instruction:
            del self.fields["by_instruction"]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        name, min_chance = values.get("judge"), values.get("min_chance")
        self.rule = None
        # Without a name there is no rule, and people judge all.
        if name and not self.errors:
            # A chance of 0 has an error of its own, so only an empty field becomes the default.
            chance = DEFAULT_MIN_CHANCE if min_chance is None else min_chance
            text = values.get("prompt", "").strip()
            prompt = None
            if self._needs_instruction or values.get("by_instruction"):
                # Stored as text, so that a later version of the site changes no judge.
                prompt = text or DEFAULT_PROMPT
            elif text and self._is_own_instruction(text):
                message = _(
                    "The model gives its own label, so it reads no instruction. Tick “Judge by an "
                    "instruction”, or remove the text."
                )
                self.add_error("prompt", message)
            self.rule = DrawRule(self._id_by_name[name], chance, prompt)
        return values

    def _is_own_instruction(self, text: str) -> bool:
        """Return whether an instruction is neither the usual one nor the round's. Few queries."""
        rule = read_draw_state(self._round).rule
        shown_texts = [DEFAULT_PROMPT, (rule and rule.prompt) or ""]
        # The page shows one of them, which browsers send back with line breaks of their own.
        return text.split() not in [shown.split() for shown in shown_texts]
