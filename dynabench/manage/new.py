"""The pages for new tasks: templates and tasks to copy, and the creation of a task."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.models import Example
from core.accounts.people import get_person
from core.accounts.return_page import remember_return_page
from core.accounts.services import get_annotator
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.manage.access import find_owned_task
from dynabench.manage.preview import build_judge_values, build_write_values, render_in_frame
from tasks.access import ALL_KINDS, find_task
from tasks.config.parsing import ConfigError
from tasks.making.draft_services import begin_draft
from tasks.making.forms import NewTaskForm
from tasks.making.proposal_services import withdraw_proposal
from tasks.making.services import delete_unopened_task, find_unopened_tasks, make_task
from tasks.making.templates import Source, Template, load_templates
from tasks.models import Task
from tasks.permissions import can_edit, can_make_tasks, can_own, is_task_creation_offered
from tasks.selectors import find_editable_tasks


def _find_source(request: HttpRequest, kind: str, code: str) -> Source:
    """Return the template, or the task to copy. Only editors may copy a task.

    Raises Http404, also for people who are not offered new tasks.
    """
    if not is_task_creation_offered(request.user):
        raise Http404
    if kind == "task":
        return find_task(request, code, can_edit, kinds=ALL_KINDS)
    if kind != "template" or code not in load_templates():
        raise Http404
    return load_templates()[code]


@require_GET
def show_gallery(request: HttpRequest) -> HttpResponse:
    """Show the templates and tasks from which a new task can be made.

    Raises Http404 for people who are not offered new tasks.
    """
    if not is_task_creation_offered(request.user):
        raise Http404
    user = get_person(request)
    may_create = can_make_tasks(user)
    if not may_create:
        remember_return_page(request)  # to come back here once their address is confirmed
    values = {
        "templates": load_templates().values(),
        "tasks": find_editable_tasks(user),
        "drafts": user.task_drafts.filter(task=None),
        "begun": find_unopened_tasks().filter(made_by=user),
        "proposals": user.task_proposals.select_related("task"),
        "may": may_create,
    }
    return render(request, "own/new/gallery.html", values)


@require_POST
def withdraw_request(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw the person's own pending request for approval."""
    with show_as_message(request):
        # Other people's requests are not found.
        proposal = get_object_or_404(
            get_person(request).task_proposals.select_related("task"), pk=pk
        )
        withdraw_proposal(proposal=proposal, actor=get_person(request))
        messages.success(request, _("Request withdrawn."))
    if proposal.task:
        return redirect("own:access", proposal.task.code)
    return redirect("new")


@require_http_methods(["GET", "POST"])
def show_new_task(request: HttpRequest, kind: str, code: str) -> HttpResponse:
    """Show the template or the task to copy, and the form that creates the new task."""
    source = _find_source(request, kind, code)
    form = NewTaskForm(request.POST or None)
    if form.is_valid():
        with show_as_form_error(form, ConfigError):
            if "steps" in request.POST:  # the second button: put it together step by step
                return _begin_draft(request, source, form)
            return _make_task(request, source, form)
    may_create = can_make_tasks(request.user)
    if not may_create:
        remember_return_page(request)
    values = {"source": source, "kind": kind, "form": form, "may": may_create}
    # A task has a preview on its own pages, and an arena has neither page.
    values["shows_preview"] = isinstance(source, Template) and source.config.kind != "arena"
    return render(request, "own/new/task.html", values, status=get_form_status(form))


def _begin_draft(request: HttpRequest, source: Source, form: NewTaskForm) -> HttpResponse:
    """Create a draft from the source and return a redirect to its first step. Raises Refused."""
    values = form.cleaned_data
    names = {"name": values["name"], "code": values["code"]}
    draft = begin_draft(owner=get_person(request), source=source, **names)
    return redirect("draft-step", draft.pk, "goal")


def _make_task(request: HttpRequest, source: Source, form: NewTaskForm) -> HttpResponse:
    """Create the task and return a redirect to its dashboard. Raises ConfigError or Refused."""
    task = make_task(creator=get_person(request), source=source, **form.cleaned_data)
    messages.success(request, _("Task created. Only you can see it for now."))
    return redirect("own:dashboard", task.code)


@xframe_options_sameorigin
@require_GET
def preview_template(request: HttpRequest, kind: str, code: str) -> HttpResponse:
    """Show the write page, or with `?page=judge` the judge page, of a template.

    Raises Http404 for tasks, which have their own preview, and for arenas.
    """
    source = _find_source(request, kind, code)
    # Tasks have a preview on their own pages, and an arena has neither page.
    if not isinstance(source, Template) or source.config.kind == "arena":
        raise Http404
    # A task that is never saved; 0 is the id of none.
    task = Task(pk=0, code=source.code, name=source.config.name, config_text=source.text)
    values: dict[str, Any] = {**build_write_values(task), "page": "write"}
    if request.GET.get("page") == "judge":
        values = {**build_judge_values(task, get_annotator(get_person(request))), "page": "judge"}
    return render_in_frame(request, values)


@require_http_methods(["GET", "POST"])
def delete_task(request: HttpRequest, code: str) -> HttpResponse:
    """Ask for confirmation to delete a task that never opened. A POST deletes it.

    Other tasks are refused with status 409, because they have or may have had examples.
    """
    task = find_owned_task(request, code, can_own)
    if request.method == "POST":
        with show_as_message(request):
            delete_unopened_task(task=task, actor=get_person(request))
            messages.success(request, _("Task %(code)s deleted.") % {"code": code})
            return redirect("new")
        return redirect("own:dashboard", code)
    can_delete = find_unopened_tasks().filter(pk=task.pk).exists()
    examples = Example.objects.filter(round__task=task).count()
    values = {"task": task, "can_delete": can_delete, "examples": examples}
    return render(request, "own/new/delete.html", values, status=200 if can_delete else 409)
