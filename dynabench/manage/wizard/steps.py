"""The steps of a draft, from its creation to the task that it becomes."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person
from core.accounts.return_page import remember_return_page
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.manage.access import find_owned_task
from dynabench.manage.config import ConfigForm, list_problem_lines
from dynabench.manage.wizard import examples
from dynabench.manage.wizard.forms import FORMS
from dynabench.manage.wizard.shared import (
    find_own_draft,
    find_problems,
    find_step_problems,
    is_preview,
    leave_draft,
    redirect_to_next_step,
    render_preview,
    show_preview,
    show_step,
)
from tasks.config.loading import check_config
from tasks.config.parsing import ConfigError, Problem
from tasks.config_changes import hash_text
from tasks.making.draft_services import (
    begin_change,
    begin_draft,
    build_draft_text,
    change_draft,
    delete_draft,
    finish_draft,
    rename_draft,
    replace_draft,
)
from tasks.making.forms import NewTaskForm
from tasks.making.outline import list_steps, parse_data
from tasks.models import TaskDraft
from tasks.permissions import can_edit, can_make_tasks


@require_POST
def create_new_draft(request: HttpRequest) -> HttpResponse:
    """Create an empty draft of a new task."""
    with show_as_message(request):
        draft = begin_draft(owner=get_person(request), source=None)
        return redirect("draft-step", draft.pk, "goal")
    return redirect("new")


@require_POST
def draft_next_config(request: HttpRequest, code: str) -> HttpResponse:
    """Create a draft of a task's next configuration, or continue the person's own.

    It opens at the step that the person chose, by default at the first one.
    """
    task = find_owned_task(request, code, can_edit)
    draft = begin_change(task=task, owner=get_person(request))
    steps, chosen_step = list_steps(parse_data(draft.text)), request.POST.get("step", "")
    return redirect("draft-step", draft.pk, chosen_step if chosen_step in steps else steps[0])


@require_http_methods(["GET", "POST"])
def show_step_form(request: HttpRequest, pk: int, step: str) -> HttpResponse:
    """Show a step that is one form. A POST stores the form and shows the next step."""
    draft = find_own_draft(request, pk)
    data = parse_data(draft.text)
    # An arena has fewer steps.
    if step not in FORMS or step not in list_steps(data):
        raise Http404
    form = FORMS[step](data, request.POST or None)
    if is_preview(request):
        return show_preview(request, draft, form, form.write)
    if form.is_valid():
        with show_as_form_error(form, ConfigError):
            return redirect_to_next_step(
                request, change_draft(draft=draft, change=form.write), step
            )
    values: dict[str, Any] = {"form": form}
    if step == "words":
        values["examples"] = examples.list_examples(data)
    values["mends"] = find_step_problems(draft, step)
    # The step of the words has a page of its own, with the examples.
    page = "" if step == "words" else "own/wizard/form.html"
    return show_step(request, draft, step, values, template=page, status=get_form_status(form))


@xframe_options_sameorigin
@require_safe
def preview_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the write page or the judge page for the draft."""
    draft = find_own_draft(request, pk)
    return render_preview(request, draft, parse_data(draft.text), request.GET.get("page", "write"))


@require_http_methods(["GET", "POST"])
def show_last_step(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the draft's problems, its text, and the form that creates the task."""
    draft = find_own_draft(request, pk)
    if is_preview(request):
        return show_preview(request, draft)
    text = build_draft_text(draft)
    step_problems = find_problems(draft, text)
    data = parse_data(draft.text)
    initial = {"name": data.get("name", ""), "code": draft.code}
    form = NewTaskForm(request.POST or None, initial=initial)
    if "go" in request.POST:
        return redirect_to_next_step(request, _store_typed_name(draft, form), "finish")
    # A draft of a task's change is saved by the page of its configuration.
    if not draft.task and form.is_valid():
        with show_as_form_error(form, ConfigError):
            return _finish_draft(request, draft, form)
    values: dict[str, Any] = {"form": form, "mends": step_problems, "text": text}
    values["is_stopped"] = any(problem.problem.severity == "error" for problem in step_problems)
    values["may"] = can_make_tasks(request.user)
    if not values["may"]:
        remember_return_page(request)
    return show_step(request, draft, "finish", values, status=get_form_status(form))


def _store_typed_name(draft: TaskDraft, form: NewTaskForm) -> TaskDraft:
    """Store the typed name and code in the draft, if they are valid for the task, and return it."""
    form.is_valid()  # leaves out of `cleaned_data` what could not be the task's
    name = form.cleaned_data.get("name") or draft.name
    code = form.cleaned_data.get("code") or draft.code
    return rename_draft(draft=draft, name=name, code=code)


def _finish_draft(request: HttpRequest, draft: TaskDraft, form: NewTaskForm) -> HttpResponse:
    """Create the task and return a redirect to its dashboard. Raises ConfigError or Refused."""
    values = form.cleaned_data
    draft = _store_typed_name(draft, form)
    task = finish_draft(draft=draft, code=values["code"])
    messages.success(request, _("Task created. Only you can see it for now."))
    return redirect("own:dashboard", task.code)


@require_http_methods(["GET", "POST"])
def edit_draft_text(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the draft's text for editing, and store it.

    A text with errors is shown again, not stored.
    """
    draft = find_own_draft(request, pk)
    text = build_draft_text(draft)
    text_hash = hash_text(text)
    form = ConfigForm(request.POST or None, initial={"text": text, "base": text_hash})
    problems: list[Problem] = []
    if form.is_valid():
        text = form.cleaned_data["text"]
        parsed_config, problems = check_config(text)
        if parsed_config:
            with show_as_form_error(form, ConfigError, field="text"):
                # Raises ConfigError where the draft is another one than the text began as.
                replace_draft(draft=draft, text=text, base=form.cleaned_data["base"])
                return redirect("draft-step", draft.pk, "finish")
            # A person who has read that the draft was changed elsewhere may save over it.
            form = form.copy_with_base(text_hash)
        else:
            form.add_error("text", _("The YAML has errors. See the list below."))
    values = {"draft": draft, "form": form, "problems": list_problem_lines(problems, text)}
    return render(request, "own/wizard/yaml.html", values, status=get_form_status(form))


@require_POST
def delete_own_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a draft."""
    draft = find_own_draft(request, pk)
    task = draft.task
    delete_draft(draft)
    messages.success(request, _("Draft deleted."))
    return leave_draft(task)
