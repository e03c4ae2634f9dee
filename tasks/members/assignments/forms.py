"""Forms for assignments: who writes or judges how much, until when."""

from functools import partial
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.accounts.models import User
from core.accounts.people import get_member_label
from tasks.members.assignments.selectors import PERMISSION_BY_KIND, list_assignable_people
from tasks.models import Duty, Round, Task

MAX_EXAMPLES = 100_000


def _name_round(round: Round) -> str:
    return _("Round %(number)d") % {"number": round.number}


class AmountForm(forms.Form):
    """A form for the amount of an assignment and its last day."""

    amount = forms.IntegerField(
        label=gettext_lazy("Examples per person"),
        required=False,
        min_value=1,
        max_value=MAX_EXAMPLES,
    )
    share = forms.FloatField(
        label=gettext_lazy("Or a share of the judgements (%)"),
        required=False,
        min_value=0.01,
        max_value=100,
        help_text=gettext_lazy(
            "Leave both empty to divide the judging equally among the chosen members."
        ),
    )
    overlap = forms.IntegerField(
        label=gettext_lazy("Judges per example"),
        initial=1,
        min_value=1,
        max_value=50,
        help_text=gettext_lazy(
            "Applies to everyone with a share. A new number replaces the earlier one."
        ),
    )
    due_on = forms.DateField(
        label=gettext_lazy("Due date (UTC)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def clean_share(self) -> float | None:
        """Return the percentage as a fraction from 0 to 1."""
        share: float | None = self.cleaned_data["share"]
        if share is None:
            return None
        return share / 100

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("amount") and values.get("share"):
            self.add_error("share", _("Enter a number or a share, not both."))
        if values.get("due_on") and values["due_on"] < timezone.now().date():
            self.add_error("due_on", _("Choose a date in the future."))
        return values


class AssignmentForm(AmountForm):
    """A form for a new assignment: its people, its kind and its amount."""

    kind = forms.ChoiceField(
        label=gettext_lazy("Type of work"),
        choices=[
            (Duty.Kind.JUDGE, gettext_lazy("Judge examples")),
            (Duty.Kind.WRITE, gettext_lazy("Write examples")),
        ],
        widget=forms.RadioSelect,
        initial=Duty.Kind.JUDGE,
    )
    everybody = forms.BooleanField(label=gettext_lazy("Everyone who takes part"), required=False)
    people = forms.ModelMultipleChoiceField(
        label=gettext_lazy("Or these members"),
        queryset=User.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    round = forms.ModelChoiceField(
        label=gettext_lazy("Round"),
        queryset=Round.objects.none(),
        required=False,
        to_field_name="number",
        empty_label=gettext_lazy("All rounds"),
    )
    field_order = ("kind", "everybody", "people", "round")

    def __init__(self, *args: Any, task: Task, is_owner: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        candidates = set()
        for kind in PERMISSION_BY_KIND:
            candidates |= {user.pk for user in list_assignable_people(task, kind)}
        people, rounds = self.fields["people"], self.fields["round"]
        # One query for the labels of all.
        users = User.objects.filter(pk__in=candidates).select_related("annotator")
        # Only owners read addresses, so the order must not reveal them to others.
        order = "email" if is_owner else "annotator__pseudonym"
        people.queryset = users.order_by(order)  # type: ignore[attr-defined]
        people.label_from_instance = partial(get_member_label, is_owner=is_owner)  # type: ignore[attr-defined]
        rounds.queryset = task.rounds.exclude(state=Round.State.RELEASED)  # type: ignore[attr-defined]
        rounds.label_from_instance = _name_round  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if bool(values.get("people")) == bool(values.get("everybody")) and not self.errors:
            self.add_error("people", _("Choose either everyone or some members."))
        return values

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `set_assignments` for a valid form."""
        values = dict(self.cleaned_data)
        del values["everybody"]
        values["people"] = list(values["people"])  # none: everybody
        return values
