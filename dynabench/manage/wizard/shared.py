"""What all steps share: the draft, what is wrong with it, the way onward, the preview."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from django.contrib import messages
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.clickjacking import xframe_options_sameorigin

from core.accounts.people import person
from core.accounts.services import annotator_of
from core.errors import Refused
from dynabench.manage.preview import build_judge_values, build_write_values, show_framed
from tasks.config.loading import check_config
from tasks.config.parsing import Problem
from tasks.config_changes import check_change
from tasks.making.draft_services import draft_text
from tasks.making.outline import (
    PLACE_PATHS,
    Data,
    build_preview,
    find_hidden_paths,
    find_step,
    format_data,
    get_fields,
    is_begun,
    is_mirror,
    list_steps,
    parse_data,
    parse_field_path,
)
from tasks.models import Task, TaskDraft
from tasks.permissions import can_edit

STEP_WORDS = {
    "goal": gettext_lazy("Goal"),
    "fields": gettext_lazy("Fields"),
    "answer": gettext_lazy("Fooled"),
    "words": gettext_lazy("Words"),
    # Translators: noun: the step in which people judge
    "judging": gettext_lazy("Judging"),
    "limits": gettext_lazy("Limits"),
    # Translators: button: end the test
    "finish": gettext_lazy("Finish"),
}


class StepProblem(NamedTuple):
    """A problem, with the step and the URL of the page where it is fixed."""

    problem: Problem
    step: str
    url: str


def find_own_draft(request: HttpRequest, pk: int) -> TaskDraft:
    """Return one of the person's drafts.

    Raises Http404, also if they may no longer edit the draft's task.
    """
    drafts = person(request).task_drafts.select_related("task", "owner")
    draft = get_object_or_404(drafts, pk=pk)
    if draft.task and not can_edit(request.user, draft.task):
        raise Http404
    return draft


def find_problems(draft: TaskDraft, text: str = "") -> list[StepProblem]:
    """Return the errors and warnings of the configuration that the draft would become.

    text: its text, by default made from the draft.
    """
    # The text with what every configuration has, as it would be stored.
    text = text or draft_text(draft)
    if draft.task:  # some parts may not change any more
        _config, problems = check_change(draft.task, text)
    else:
        _config, problems = check_config(text)
    return [
        StepProblem(
            _reword_problem(problem), find_step(problem.path), _build_page_url(draft, problem.path)
        )
        for problem in problems
    ]


def find_field(data: Data, place: str, index: int) -> Data | None:
    """Return the field at an index of a place, or None."""
    if place not in PLACE_PATHS:
        return None
    fields = get_fields(data, place)
    if not 0 <= index < len(fields):
        return None
    return fields[index]


NO_OUTPUT = gettext_noop("the model answers nothing yet")
NO_OUTPUT_FIX = gettext_noop("open a field that people fill in, and tick that the model answers it")


def _reword_problem(problem: Problem) -> Problem:
    """Return a missing output reworded for the wizard, without YAML; other problems unchanged."""
    if problem.path != "output" or problem.severity != "error":
        return problem
    return replace(problem, path="", message=NO_OUTPUT, fix=NO_OUTPUT_FIX)


def find_step_problems(draft: TaskDraft, step: str, path: str = "") -> list[StepProblem]:
    """Return a step's problems, or only those whose path begins with `path`.

    Returns none while the step has no data.
    """
    # Nobody is told of errors in what they have not filled in yet.
    if not is_begun(parse_data(draft.text), step):
        return []
    mends = [mend for mend in find_problems(draft) if mend.step == step]
    return [mend for mend in mends if mend.problem.path.startswith(path)]


def _build_page_url(draft: TaskDraft, path: str) -> str:
    """Return the URL of the page where a problem at this path is fixed."""
    field_place, data = parse_field_path(path), parse_data(draft.text)
    if field_place:
        place, index = field_place
        field = find_field(data, place, index)
        if field and not is_mirror(data, place, field):
            return reverse("draft-field", args=[draft.pk, place, index])
    return reverse("draft-step", args=[draft.pk, find_step(path)])


def redirect_to_next_step(request: HttpRequest, draft: TaskDraft, step: str) -> HttpResponse:
    """Redirect to the step that the person chose, by default the one after `step`."""
    steps = list_steps(parse_data(draft.text))
    next_step = request.POST.get("go", "")
    if next_step == "later":
        messages.success(request, _("The draft is kept. Go on with it whenever you like."))
        return leave_draft(draft.task)
    if next_step not in steps:
        # Any other word leads to the next step; the last one leads to itself.
        next_step = steps[min(steps.index(step) + 1, len(steps) - 1)]
    return redirect("draft-step", draft.pk, next_step)


def leave_draft(task: Task | None) -> HttpResponse:
    """Redirect to the page on which the person started the draft."""
    if task:
        return redirect("own:config", task.code)
    return redirect("new")


def show_step(
    request: HttpRequest,
    draft: TaskDraft,
    step: str,
    values: dict[str, Any],
    *,
    template: str = "",
    status: int = 200,
) -> HttpResponse:
    """Show the page of a step, with links to all steps.

    The page lists the settings that no step shows.
    """
    data = parse_data(draft.text)
    steps = [(name, STEP_WORDS[name]) for name in list_steps(data)]
    step_values = {
        "draft": draft,
        "data": data,
        "step": step,
        "title": STEP_WORDS[step],
        "steps": steps,
        "not_shown": find_hidden_paths(data),
        "has_preview": data.get("kind") != "arena",
    }
    page = template or f"own/wizard/{step}.html"
    return render(request, page, {**step_values, **values}, status=status)


def render_preview(request: HttpRequest, draft: TaskDraft, data: Data, page: str) -> HttpResponse:
    """Show the write page or the judge page for the data, with the task's contexts if any."""
    text = format_data(build_preview(data))
    parsed_config, problems = check_config(text)
    # Without a page: the template then shows only the problems.
    values: dict[str, Any] = {"task": draft.task or Task(pk=0, code="draft"), "page": ""}
    values["problems"] = problems
    if parsed_config and parsed_config.kind != "arena":
        task = draft.task or Task(pk=0, code="draft")
        # Never saved.
        task.config_text, task.name = text, parsed_config.name
        if page == "judge":
            values = {**build_judge_values(task, annotator_of(person(request))), "page": "judge"}
        else:
            values = {**build_write_values(task), "page": "write"}
    return show_framed(request, values)


def is_preview(request: HttpRequest) -> bool:
    """Return whether the form was sent for a preview, which never stores anything."""
    return "page" in request.POST


@xframe_options_sameorigin
def show_preview(
    request: HttpRequest,
    draft: TaskDraft,
    form: BaseForm | None = None,
    write: Callable[[Data], object] | None = None,
) -> HttpResponse:
    """Show a preview with the values typed so far. Nothing is stored.

    write: puts the form's values into the draft's data. An invalid form is left out.
    """
    data = parse_data(draft.text)
    if form is not None and write is not None and form.is_valid():
        with suppress(LookupError, Refused):  # the draft was changed in another window
            write(data)
    return render_preview(request, draft, data, request.POST["page"])
