"""The form for a round's policy."""

from typing import Any, get_args

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tasks.models import Round
from validation.consensus.claims import find_label_field
from validation.consensus.consensus import Policy, Rule

RULE_LABELS = {
    "n-equal": _("The first answer to reach N votes"),
    "at-least": _("At least N matching votes, and no other answer with as many"),
    "strict": _("More than half of the votes"),
    "plurality": _("The most frequent answer"),
    "dawid-skene": _(
        "People where it matters: ask until people's votes make one label probable enough "
        "(Dawid–Skene)"
    ),
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
        label=_("Matching votes needed (N)"),
        help_text=_("For the first two rules."),
        required=False,
    )
    of = forms.IntegerField(
        min_value=1,
        max_value=100,
        label=_("Maximum votes"),
        help_text=_(
            "Required for every rule except the first. You can leave it empty for a closed round."
        ),
        required=False,
    )
    threshold = forms.FloatField(
        min_value=0.5,
        max_value=1,
        initial=0.8,
        label=_("Probability threshold"),
        help_text=_("For Dawid–Skene: above 0.5, at most 1."),
        required=False,
    )

    def __init__(self, round: Round, data: Any = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        # Until the round is closed, a rule over all votes must know how many to wait for.
        self.is_live = round.state not in Round.FINISHED_STATES
        # Dawid and Skene's model needs labels; it cannot decide by verdicts.
        has_labels = find_label_field(round.task.config) is not None
        self.fields["rule"].choices = [  # type: ignore[attr-defined]
            (rule, RULE_LABELS[rule])
            for rule in get_args(Rule)
            if has_labels or rule != "dawid-skene"
        ]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        rule, needed, of = values.get("rule"), values.get("needed"), values.get("of")
        if rule in ("n-equal", "at-least") and not (needed or self.has_error("needed")):
            self.add_error("needed", gettext("Enter how many matching votes decide"))
        if rule != "n-equal" and self.is_live and not (of or self.has_error("of")):
            self.add_error("of", gettext("Enter the maximum number of votes, such as 5"))
        if not self.errors:
            try:
                self.policy = Policy(rule, needed or 1, of, values.get("threshold") or 0.8)  # type: ignore[arg-type]
            except ValueError as error:
                field = "threshold" if rule == "dawid-skene" else "needed"
                self.add_error(field, gettext(str(error)))
        return values
