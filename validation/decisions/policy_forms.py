"""The form for how the votes of a round decide."""

from typing import Any, get_args

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tasks.models import Round
from validation.consensus.claims import find_label_field
from validation.consensus.consensus import Policy, Rule

RULES = {
    "n-equal": _("N equal votes: at once, however many may follow"),
    "at-least": _("At least N equal votes, and no other answer as many"),
    "strict": _("More than half of the votes"),
    "plurality": _("The most frequent answer"),
    "dawid-skene": _("Dawid–Skene: the most probable label, by how reliable each validator is"),
}


class PolicyForm(forms.Form):
    """A form for a policy; `policy` is available once it is valid."""

    rule = forms.ChoiceField(
        widget=forms.RadioSelect,
        label=_("An example is decided by"),
        error_messages={"required": _("Choose a rule")},
    )
    needed = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=3,
        label=_("N, equal votes"),
        help_text=_("For the first two rules."),
        required=False,
    )
    of = forms.IntegerField(
        min_value=1,
        max_value=100,
        label=_("Most votes asked for"),
        help_text=_(
            "Needed for all rules but the first, unless the round is closed: then nothing means "
            "that the votes which are there are all."
        ),
        required=False,
    )
    threshold = forms.FloatField(
        min_value=0.5,
        max_value=1,
        initial=0.8,
        label=_("Threshold of the probability"),
        help_text=_("For Dawid–Skene: above 0.5, at most 1."),
        required=False,
    )

    def __init__(self, round: Round, data: Any = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        # Until it is closed, a rule over all votes must know how many to wait for.
        self.is_live = round.state not in (Round.State.CLOSED, Round.State.RELEASED)
        # Dawid and Skene's model is of labels; from verdicts it decides nothing.
        has_labels = find_label_field(round.task.config) is not None
        self.fields["rule"].choices = [  # type: ignore[attr-defined]
            (rule, RULES[rule]) for rule in get_args(Rule) if has_labels or rule != "dawid-skene"
        ]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        rule, needed, of = values.get("rule"), values.get("needed"), values.get("of")
        if rule in ("n-equal", "at-least") and not (needed or self.has_error("needed")):
            self.add_error("needed", gettext("Say how many equal votes decide"))
        if rule != "n-equal" and self.is_live and not (of or self.has_error("of")):
            self.add_error("of", gettext("Say how many votes are asked for at most, such as 5"))
        if not self.errors:
            try:
                self.policy = Policy(rule, needed or 1, of, values.get("threshold") or 0.8)  # type: ignore[arg-type]
            except ValueError as error:
                field = "threshold" if rule == "dawid-skene" else "needed"
                self.add_error(field, gettext(str(error)))
        return values
