"""Forks: weights that people keep under a name."""

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.models import User
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from leaderboard.board.forks import services
from leaderboard.board.opening import find_start_weights
from leaderboard.board.query import BoardRequest, read_request
from leaderboard.ranking.weights import Weighting, WeightsError
from tasks.access import find_task, require_permission
from tasks.models import Task
from tasks.permissions import can_edit


class ForkForm(forms.Form):
    """A form for the name and description of saved weights."""

    name = forms.CharField(
        label=_("Name"),
        max_length=services.MAX_NAME_CHARS,
        help_text=_("Lowercase letters, numbers, hyphens: speed-first"),
    )
    description = forms.CharField(max_length=300, required=False, label=_("Description"))


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_forks(request: HttpRequest, code: str) -> HttpResponse:
    """Show a task's saved weightings; a POST saves the submitted weights under a name."""
    task = find_task(request, code)
    board_request = _read_sent_weights(request, task)
    is_post = request.method == "POST"
    form = ForkForm(request.POST if is_post else None)
    if is_post and form.is_valid() and _try_to_save(request, task, board_request.weighting, form):
        board = reverse("leaderboard:board", args=[code])
        return HttpResponseRedirect(f"{board}?fork={form.cleaned_data['name']}")
    forks, may_edit = task.forks.select_related("owner__annotator"), can_edit(request.user, task)
    values: dict[str, Any] = {
        "task": task,
        "form": form,
        "weighting": board_request.weighting,
        "forks": forks,
        # Columns that nobody has filled would say nothing.
        "has_purposes": any(fork.description for fork in forks),
        "has_own": may_edit or any(fork.owner_id == request.user.pk for fork in forks),
        "can_edit": may_edit,
    }
    # The form is shown again with its errors.
    status = get_form_status(form)
    return render(request, "leaderboard/forks.html", values, status=status)


def _read_sent_weights(request: HttpRequest, task: Task) -> BoardRequest:
    """Read the submitted weights.

    If they are invalid, a form gets status 400, and a link gets the board's opening weights.
    """
    from leaderboard.board.matrix import read_matrix

    matrix = read_matrix(task)
    start = find_start_weights(task, matrix, request.GET.get("fork"))
    query = request.POST if request.method == "POST" else request.GET
    try:
        return read_request(dict(query.lists()), start, matrix.modes)
    except WeightsError as error:
        if request.method == "POST":
            raise BadRequest(str(error)) from None
        return read_request({}, start, matrix.modes)


def _try_to_save(request: HttpRequest, task: Task, weighting: Weighting, form: ForkForm) -> bool:
    """Save the weights; return False and add the reason to the form if they were refused.

    Raises Http404 for visitors without an account.
    """
    if not isinstance(request.user, User):
        raise Http404
    with show_as_form_error(form):
        services.save_weights(
            task=task, owner=request.user, weighting=weighting, **form.cleaned_data
        )
    return form.is_valid()


@require_POST
def delete_fork(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Delete the person's own saved weights; editors of the task can delete anybody's."""
    task = find_task(request, code)
    fork = get_object_or_404(task.forks, name=name)
    if not isinstance(request.user, User):
        raise Http404
    if fork.owner_id != request.user.pk:
        require_permission(request.user, task, can_edit)
    services.delete_weights(weights=fork, actor=request.user)
    return redirect("leaderboard:forks", code)
