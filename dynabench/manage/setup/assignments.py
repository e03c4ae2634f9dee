"""The owners' pages of assignments: who writes or judges how much, and until when."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.manage.access import find_owned_task
from tasks.members.assignments.forms import AmountForm, AssignmentForm
from tasks.members.assignments.services import change_assignment, end_assignment, set_assignments
from tasks.permissions import can_edit, can_own
from validation.judging.assignments import build_due_date_key, list_assignment_rows

PAGE_SIZE = 20


@require_http_methods(["GET", "HEAD", "POST"])
def show_assignments(request: HttpRequest, code: str) -> HttpResponse:
    """Show all assignments with people's progress, and the form for a new one."""
    task = find_owned_task(request, code, can_edit)
    form_data = request.POST if request.method == "POST" else None
    form = AssignmentForm(form_data, task=task, is_owner=can_own(request.user, task))
    if form.is_valid():
        with show_as_form_error(form):
            count = len(set_assignments(task=task, actor=get_person(request), **form.arguments))
            words = ngettext("%(n)d assignment created.", "%(n)d assignments created.", count)
            messages.success(request, words % {"n": count})
            return redirect("own:duties", code)
    open_progress = list_assignment_rows(task.duties.select_current())
    # In pages after those that are open, which the page is about and which all are shown.
    page = list_page(request, task.duties.exclude(ended_at=None), size=PAGE_SIZE)
    shown_assignments = task.duties.filter(pk__in=[assignment.pk for assignment in page])
    values = {
        "task": task,
        "form": form,
        "page": page,
        "rows": sorted(open_progress, key=build_due_date_key)
        + list_assignment_rows(shown_assignments),
    }
    return render(request, "own/setup/assignments.html", values, status=get_form_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
def show_assignment(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show one assignment. A POST changes its amount, share, overlap or deadline.

    Raises Http404 for assignments that have ended.
    """
    task = find_owned_task(request, code, can_edit)
    open_assignments = task.duties.select_current().select_related("person__annotator", "round")
    assignment = get_object_or_404(open_assignments, pk=pk)
    current_values = {
        "amount": assignment.amount,
        "share": round(100 * assignment.share, 2) if assignment.share else None,
        "overlap": assignment.overlap,
        "due_on": assignment.due_on,
    }
    form = AmountForm(request.POST if request.method == "POST" else None, initial=current_values)
    if form.is_valid():
        changed_values = dict(form.cleaned_data)
        if "share" not in form.changed_data:  # which is shown rounded
            changed_values["share"] = assignment.share
        with show_as_form_error(form):
            change_assignment(assignment=assignment, actor=get_person(request), **changed_values)
            messages.success(request, _("Saved."))
            return redirect("own:duties", code)
    values = {"task": task, "form": form, "assignment": assignment}
    return render(request, "own/setup/assignment.html", values, status=get_form_status(form))


@require_POST
def end_task_assignment(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """End an assignment. Completed work is kept."""
    task = find_owned_task(request, code, can_edit)
    with show_as_message(request):
        assignment = get_object_or_404(task.duties.select_related("person", "round"), pk=pk)
        end_assignment(assignment=assignment, actor=get_person(request))
        messages.success(request, _("Assignment ended."))
    return redirect("own:duties", code)
