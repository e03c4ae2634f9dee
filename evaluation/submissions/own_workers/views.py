"""The page on which a task's owners let people evaluate on their own machines."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.lists import list_page
from core.web.refusals import show_as_form_error
from evaluation.submissions.own_workers.forms import OwnWorkerForm
from evaluation.submissions.own_workers.selectors import find_held_runs, find_submitted_answers
from evaluation.submissions.own_workers.services import add_worker, remove_worker
from tasks.access import find_task
from tasks.permissions import can_own
from tasks.services import find_account_within_limit

PAGE_SIZE = 50


@require_http_methods(["GET", "POST"])
def show_own_workers(request: HttpRequest, code: str) -> HttpResponse:
    """Show permissions, the runs of machines, and the form for a new permission."""
    task, actor = find_task(request, code, can_own), get_person(request)
    data = None
    if request.method == "POST":
        data = request.POST
    form = OwnWorkerForm(task, data)
    if form.is_valid():
        with show_as_form_error(form):
            user = find_account_within_limit(actor, form.cleaned_data["email"])
            add_worker(task=task, user=user, actor=actor, **form.arguments)
            messages.success(request, _("%(email)s can now run models.") % {"email": user.email})
            return redirect("evaluation:own-workers", code)
    values = {
        "task": task,
        "form": form,
        "workers": task.own_workers.select_related("user", "submission", "evaluation_set"),
        "held": find_held_runs(task),
        "page": list_page(request, find_submitted_answers(task), size=PAGE_SIZE),
    }
    status = 200
    if form.errors:
        status = 422
    return render(request, "evaluation/own_workers.html", values, status=status)


@require_POST
def remove_own_worker(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Remove a permission. Evaluations that it has leased are lost."""
    task = find_task(request, code, can_own)
    worker = get_object_or_404(task.own_workers.select_related("user"), pk=pk)
    remove_worker(worker=worker, actor=get_person(request))
    messages.success(request, _("Runner removed."))
    return redirect("evaluation:own-workers", code)
