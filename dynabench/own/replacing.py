"""The owners' page that puts another target in the place of a broken one."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from dynabench.lib.refusals import as_form_error
from dynabench.own.access import owned_task
from tasks.admin.roles import person
from tasks.permissions import can_edit
from tasks.rounds.forms import ReplaceForm
from tasks.rounds.loop import replace_target


@require_http_methods(["GET", "POST"])
def round_replace(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Choose the target that goes and the one that comes, while nothing was collected."""
    task = owned_task(request, code, can_edit)
    round = get_object_or_404(task.rounds, number=number)
    round.task = task
    form = ReplaceForm(request.POST or None, round=round)
    status = 422 if form.is_bound else 200
    if form.is_valid():
        status = 409
        with as_form_error(form):
            replace_target(round=round, actor=person(request), **form.cleaned_data)
            told = {"number": number, "target": form.cleaned_data["new"].name}
            messages.success(request, _("Round %(number)d asks %(target)s now.") % told)
            return redirect(reverse("own:rounds", args=[code]) + f"#round-{number}")
    values = {"task": task, "round": round, "form": form}
    return render(request, "own/round_replace.html", values, status=status)
