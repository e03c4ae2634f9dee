"""The page on which the owner of a paid model requests short evaluations."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.models import EvaluationSetVersion, Submission
from evaluation.runs.chat.settings import MAX_COST
from evaluation.runs.short.selectors import (
    MAX_SET_SIZE,
    explain_model_refusal,
    explain_set_refusal,
    find_choosable_versions,
    find_scored_versions,
)
from evaluation.runs.short.services import (
    MAX_HALF_WIDTH,
    MIN_HALF_WIDTH,
    cancel_short_evaluation,
    request_short_evaluation,
)
from evaluation.submissions.short_evaluations import (
    find_shown_evaluations,
    select_visible_evaluations,
)
from evaluation.submissions.visibility import Viewer, find_owned_submission, find_submission


class ShortEvaluationForm(forms.Form):
    """A form for the set, the wanted precision, and the caps of a short evaluation."""

    evaluation_set = forms.ChoiceField(label=gettext_lazy("Test set"))
    points = forms.FloatField(
        label=gettext_lazy("Wanted precision"),
        min_value=100 * MIN_HALF_WIDTH,
        max_value=100 * MAX_HALF_WIDTH,
        initial=5,
        help_text=gettext_lazy(
            "Half the width of the 95% interval, in percentage points. With 3, a score of 70% "
            "would be known as 67–73%."
        ),
    )
    most_questions = forms.IntegerField(
        label=gettext_lazy("Maximum number of examples"),
        min_value=1,
        max_value=MAX_SET_SIZE,
        required=False,
        help_text=gettext_lazy("Leave empty for as many as the precision needs."),
    )
    most_cost = forms.FloatField(
        label=gettext_lazy("Maximum cost"),
        min_value=0,
        max_value=MAX_COST,
        required=False,
        help_text=gettext_lazy("For this evaluation. The model’s cost cap applies too."),
    )

    def __init__(
        self,
        versions: Sequence[EvaluationSetVersion],
        data: Mapping[str, Any] | None = None,
        *,
        is_paid: bool,
    ) -> None:
        super().__init__(data)
        names = [version.evaluation_set.name for version in versions]
        choices = self.fields["evaluation_set"]
        assert isinstance(choices, forms.ChoiceField)
        choices.choices = [(name, name) for name in names]
        if not is_paid:
            del self.fields["most_cost"]

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `request_short_evaluation`. Call only on a valid form."""
        return {
            "set_name": self.cleaned_data["evaluation_set"],
            "half_width": self.cleaned_data["points"] / 100,
            "most_questions": self.cleaned_data["most_questions"],
            "most_cost": self.cleaned_data.get("most_cost"),
        }


@require_http_methods(["GET", "POST"])
def show_short_evaluations(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show a model's short evaluations, and the form with which its owner requests one."""
    submission, user = find_owned_submission(request, pk)
    viewer = find_submission(request, pk)[1]
    if explain_model_refusal(submission):
        raise Http404
    versions, refusals = _split_versions(submission, viewer)
    form = ShortEvaluationForm(
        versions, request.POST or None, is_paid=bool(submission.chat.get("most_cost"))
    )
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            request_short_evaluation(submission=submission, actor=user, **form.arguments)
            messages.success(request, _("Short evaluation requested."))
            return redirect("evaluation:model-short", pk)
    values = {
        "submission": submission,
        "task": submission.task,
        "viewer": viewer,
        "form": form,
        "versions": versions,
        "refusals": refusals,
        "short_evaluations": find_shown_evaluations(submission, viewer),
    }
    status = get_form_status(form)
    return render(request, "evaluation/short.html", values, status=status)


def _split_versions(
    submission: Submission, viewer: Viewer
) -> tuple[list[EvaluationSetVersion], list[tuple[str, str]]]:
    """Return the versions that can be chosen, and the names of the others with the reasons."""
    versions, refusals = [], []
    is_editor, scored_ids = viewer.is_task_owner, find_scored_versions(submission)
    for version in find_choosable_versions(submission.task, is_editor=is_editor):
        has_score = version.pk in scored_ids
        reason = explain_set_refusal(version, is_editor=is_editor, has_score=has_score)
        if reason:
            refusals.append((version.evaluation_set.name, reason))
        else:
            versions.append(version)
    return versions, refusals


@require_POST
def cancel_short(request: HttpRequest, pk: UUID, evaluation_id: UUID) -> HttpResponse:
    """Cancel a short evaluation that isn't over. Owners only."""
    submission, user = find_owned_submission(request, pk)
    viewer = find_submission(request, pk)[1]
    evaluation = get_object_or_404(select_visible_evaluations(submission, viewer), pk=evaluation_id)
    with show_as_message(request):
        cancel_short_evaluation(evaluation=evaluation, actor=user)
        messages.success(request, _("Short evaluation cancelled."))
    return redirect("evaluation:model-short", pk)
