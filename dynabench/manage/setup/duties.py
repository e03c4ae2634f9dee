"""The owners' pages of assignments: who writes or judges how much, until when."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.models import User
from core.accounts.people import account_name, person
from core.web.htmx import form_status
from core.web.lists import list_page
from core.web.refusals import as_form_error, as_message
from dynabench.manage.access import owned_task
from tasks.members.duties.selectors import MAY, may_be_asked
from tasks.members.duties.services import change_duty, end_duty, set_duties
from tasks.models import Duty, Round, Task
from tasks.permissions import can_edit, can_own
from validation.judging.duties import due_before, progress_of

A_PAGE = 20

MOST = 100_000


def _round_label(round: Round) -> str:
    return _("Round %(number)d") % {"number": round.number}


class AmountForm(forms.Form):
    """The amount of an assignment, and its last day."""

    amount = forms.IntegerField(
        label=gettext_lazy("How many each"), required=False, min_value=1, max_value=MOST
    )
    share = forms.FloatField(
        label=gettext_lazy("Or a share of what is judged, in percent each"),
        required=False,
        min_value=0.01,
        max_value=100,
        help_text=gettext_lazy("Both empty: those who are named judge equal parts of all."),
    )
    overlap = forms.IntegerField(
        label=gettext_lazy("People who judge the same example"),
        initial=1,
        min_value=1,
        max_value=50,
        help_text=gettext_lazy("Of those with a share of a round; the number set last counts."),
    )
    due_on = forms.DateField(
        label=gettext_lazy("Last day (UTC)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def clean_share(self) -> float | None:
        """Return the percentage as a part of one."""
        share: float | None = self.cleaned_data["share"]
        if share is None:
            return None
        return share / 100

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("amount") and values.get("share"):
            self.add_error("share", _("Say a number or a share, not both."))
        if values.get("due_on") and values["due_on"] < timezone.now().date():
            self.add_error("due_on", _("This day is over."))
        return values


class DutyForm(AmountForm):
    """A new assignment: its people, its kind and its amount."""

    kind = forms.ChoiceField(
        label=gettext_lazy("What"),
        choices=[
            (Duty.Kind.JUDGE, gettext_lazy("Judge examples")),
            (Duty.Kind.WRITE, gettext_lazy("Write examples")),
        ],
        widget=forms.RadioSelect,
        initial=Duty.Kind.JUDGE,
    )
    everybody = forms.BooleanField(label=gettext_lazy("Everybody who takes part"), required=False)
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

    def __init__(self, *args: Any, task: Task, owns: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        candidates = set()
        for kind in MAY:
            candidates |= {user.pk for user in may_be_asked(task, kind)}
        people, rounds = self.fields["people"], self.fields["round"]
        # One query for the labels of all.
        users = User.objects.filter(pk__in=candidates).select_related("annotator")
        # Only owners read addresses, so the order must not reveal them to others.
        order = "email" if owns else "annotator__pseudonym"
        people.queryset = users.order_by(order)  # type: ignore[attr-defined]
        people.label_from_instance = partial(account_name, owns=owns)  # type: ignore[attr-defined]
        rounds.queryset = task.rounds.exclude(state=Round.State.RELEASED)  # type: ignore[attr-defined]
        rounds.label_from_instance = _round_label  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if bool(values.get("people")) == bool(values.get("everybody")) and not self.errors:
            self.add_error("people", _("Choose everybody, or the members."))
        return values

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `set_duties`, once the form is valid."""
        values = dict(self.cleaned_data)
        del values["everybody"]
        values["people"] = list(values["people"])  # none: everybody
        return values


@require_http_methods(["GET", "HEAD", "POST"])
def assignments_page(request: HttpRequest, code: str) -> HttpResponse:
    """Show all assignments with people's progress, and the form for another one."""
    task = owned_task(request, code, can_edit)
    sent = request.POST if request.method == "POST" else None
    form = DutyForm(sent, task=task, owns=can_own(request.user, task))
    if form.is_valid():
        with as_form_error(form):
            count = len(set_duties(task=task, actor=person(request), **form.arguments))
            words = ngettext("%(n)d assignment is set.", "%(n)d assignments are set.", count)
            messages.success(request, words % {"n": count})
            return redirect("own:duties", code)
    standing = progress_of(task.duties.standing())
    # In pages after those that are open, which the page is about and which all are shown.
    page = list_page(request, task.duties.exclude(ended_at=None), size=A_PAGE)
    shown_duties = task.duties.filter(pk__in=[duty.pk for duty in page])
    values = {
        "task": task,
        "form": form,
        "page": page,
        "rows": sorted(standing, key=due_before) + progress_of(shown_duties),
    }
    return render(request, "own/setup/duties.html", values, status=form_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
def assignment_page(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Change how much one assignment asks for, or until when."""
    task = owned_task(request, code, can_edit)
    standing = task.duties.standing().select_related("person__annotator", "round")
    assignment = get_object_or_404(standing, pk=pk)
    now = {
        "amount": assignment.amount,
        "share": round(100 * assignment.share, 2) if assignment.share else None,
        "overlap": assignment.overlap,
        "due_on": assignment.due_on,
    }
    form = AmountForm(request.POST if request.method == "POST" else None, initial=now)
    if form.is_valid():
        changed_values = dict(form.cleaned_data)
        if "share" not in form.changed_data:  # which is shown rounded
            changed_values["share"] = assignment.share
        with as_form_error(form):
            change_duty(duty=assignment, actor=person(request), **changed_values)
            messages.success(request, _("Saved."))
            return redirect("own:duties", code)
    values = {"task": task, "form": form, "duty": assignment}
    return render(request, "own/setup/duty.html", values, status=form_status(form))


@require_POST
def assignment_end(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """End an assignment. What was done stays."""
    task = owned_task(request, code, can_edit)
    with as_message(request):
        assignment = get_object_or_404(task.duties.select_related("person", "round"), pk=pk)
        end_duty(duty=assignment, actor=person(request))
        messages.success(request, _("The assignment is ended."))
    return redirect("own:duties", code)
