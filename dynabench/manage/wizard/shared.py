"""What all steps share: the draft, its problems, the links between steps, and the preview."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from django.contrib import messages
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.clickjacking import xframe_options_sameorigin

from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.errors import Refused
from dynabench.manage.preview import build_judge_values, build_write_values, render_in_frame
from tasks.config.loading import check_config
from tasks.config.parsing import Problem
from tasks.config_changes import check_change
from tasks.making.draft_services import build_draft_text
from tasks.making.outline import (
    SECTION_PATHS,
    Data,
    PreviewWords,
    build_preview,
    find_hidden_paths,
    find_step,
    format_data,
    get_fields,
    get_value,
    is_step_begun,
    list_steps,
    parse_data,
    parse_field_path,
    repeats_input,
)
from tasks.models import Task, TaskDraft
from tasks.permissions import can_edit

STEP_WORDS = {
    "goal": gettext_lazy("Goal"),
    "fields": gettext_lazy("Fields"),
    # Translators: a step of a new task: when the model is fooled, and how models are ranked
    "answer": gettext_lazy("Winning and ranking"),
    "words": gettext_lazy("Instructions"),
    # Translators: noun: the step in which people judge
    "judging": gettext_lazy("Judging"),
    "limits": gettext_lazy("Limits"),
    # Translators: verb: the last step of a new task
    "finish": gettext_lazy("Publish"),
}


MISSING_WORDS = {
    "name": gettext_lazy("Name the task"),
    "goal": gettext_lazy("Add a goal"),
    "goal.text": gettext_lazy("Add a goal"),
    "input": gettext_lazy("Add a field that people fill in"),
    "output": gettext_lazy("Choose the field that the model answers"),
    "verdict": gettext_lazy("Choose when the model is fooled"),
    "metrics": gettext_lazy("Choose a metric that ranks models"),
}
"""What to do if a part that every task needs is missing, by the part's path."""
DEPENDENT_PATHS = ("verdict", "metrics")
"""Parts that depend on the model's answer. Without an answer, their problems are not shown."""


class StepProblem(NamedTuple):
    """A problem in plain words, and where to fix it.

    step: the step's name. url: the page for fixing it. words: what to do. number: the step's
    number, from 1.
    """

    problem: Problem
    step: str
    url: str
    words: str
    number: int


class StepLink(NamedTuple):
    """A link to a step in the head of the pages.

    is_done: whether the step is begun and has no errors.
    """

    name: str
    words: str
    is_done: bool


def find_own_draft(request: HttpRequest, pk: int) -> TaskDraft:
    """Return one of the person's drafts.

    Raises Http404, also if they may no longer edit the draft's task.
    """
    drafts = get_person(request).task_drafts.select_related("task", "owner")
    draft = get_object_or_404(drafts, pk=pk)
    if draft.task and not can_edit(request.user, draft.task):
        raise Http404
    return draft


def find_problems(draft: TaskDraft, text: str = "") -> list[StepProblem]:
    """Return the errors and warnings of the draft's configuration.

    text: the configuration's text; by default, it is made from the draft.
    """
    # The text with what every configuration has, as it would be stored.
    text = text or build_draft_text(draft)
    if draft.task:  # some parts may not change any more
        _config, problems = check_change(draft.task, text)
    else:
        _config, problems = check_config(text)
    data = parse_data(draft.text)
    lacks_answer = any(problem.path == "output" for problem in problems)
    step_problems = []
    for problem in problems:
        if not (lacks_answer and problem.path in DEPENDENT_PATHS):
            step_problems.append(_build_step_problem(draft, data, problem))
    return step_problems


def _build_step_problem(draft: TaskDraft, data: Data, problem: Problem) -> StepProblem:
    """Return a problem with its words and the page for fixing it."""
    step, steps = find_step(problem.path), list_steps(data)
    # An arena lacks some steps; what they show is corrected in the text, on the last one.
    number = steps.index(step) + 1 if step in steps else len(steps)
    url = _build_page_url(draft, problem.path)
    return StepProblem(problem, step, url, _describe_problem(data, problem), number)


def _describe_problem(data: Data, problem: Problem) -> str:
    """Return what to do about a problem, without the configuration's keys."""
    is_missing = get_value(data, tuple(problem.path.split("."))) is None
    if is_missing and problem.path in MISSING_WORDS:
        return str(MISSING_WORDS[problem.path])
    words = f"{capfirst(_(problem.message))}. {capfirst(_(problem.fix))}"
    field_place = parse_field_path(problem.path)
    field = find_field(data, *field_place) if field_place else None
    if field:
        return f"{field.get('label') or field.get('name')}: {words}"
    return words


def find_field(data: Data, section: str, index: int) -> Data | None:
    """Return the field at an index of a place, or None. section: the place."""
    if section not in SECTION_PATHS:
        return None
    fields = get_fields(data, section)
    if not 0 <= index < len(fields):
        return None
    return fields[index]


def find_step_problems(draft: TaskDraft, step: str, path: str = "") -> list[StepProblem]:
    """Return a step's problems whose path begins with `path`.

    By default, return all of them. Return none until the step has data.
    """
    # Nobody is told of errors in what they have not filled in yet.
    if not is_step_begun(parse_data(draft.text), step):
        return []
    step_problems = [problem for problem in find_problems(draft) if problem.step == step]
    return [problem for problem in step_problems if problem.problem.path.startswith(path)]


def _build_page_url(draft: TaskDraft, path: str) -> str:
    """Return the URL of the page for fixing a problem at this path."""
    field_place, data = parse_field_path(path), parse_data(draft.text)
    if field_place:
        section, index = field_place
        field = find_field(data, section, index)
        if field and not repeats_input(data, section, field):
            return reverse("draft-field", args=[draft.pk, section, index])
    return reverse("draft-step", args=[draft.pk, find_step(path)])


def redirect_to_next_step(request: HttpRequest, draft: TaskDraft, step: str) -> HttpResponse:
    """Redirect to the step that the person chose, by default to the one after `step`.

    A person who chose to continue later is redirected out of the draft.
    """
    steps = list_steps(parse_data(draft.text))
    next_step = request.POST.get("go", "")
    if next_step == "later":
        messages.success(request, _("Draft saved. Continue whenever you like."))
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

    It also lists the settings that no step shows. values: further values for the template.
    """
    data = parse_data(draft.text)
    steps = list_steps(data)
    position = steps.index(step)
    step_values = {
        "draft": draft,
        "data": data,
        "step": step,
        "title": STEP_WORDS[step],
        "steps": _list_step_links(draft, data),
        "previous_step": steps[position - 1] if position else "",
        "not_shown": find_hidden_paths(data),
        "has_preview": data.get("kind") != "arena",
    }
    page = template or f"own/wizard/{step}.html"
    return render(request, page, {**step_values, **values}, status=status)


def _list_step_links(draft: TaskDraft, data: Data) -> list[StepLink]:
    """Return the steps for the head of the pages."""
    faulty_steps = {
        problem.step for problem in find_problems(draft) if problem.problem.severity == "error"
    }
    links = []
    for name in list_steps(data):
        is_done = name not in faulty_steps and is_step_begun(data, name)
        links.append(StepLink(name, str(STEP_WORDS[name]), is_done))
    return links


def render_preview(request: HttpRequest, draft: TaskDraft, data: Data, page: str) -> HttpResponse:
    """Show the write page or the judge page for a draft's data, with the task's contexts if any."""
    words = PreviewWords(
        goal=_("Your goal appears here"),
        field=_("Your field appears here"),
        answer=_("The model’s answer"),
    )
    text = format_data(build_preview(data, words))
    parse_config, problems = check_config(text)
    # Without a page: the template then shows only the problems.
    values: dict[str, Any] = {"task": draft.task or Task(pk=0, code="draft"), "page": ""}
    values["problems"] = problems
    if parse_config and parse_config.kind != "arena":
        task = draft.task or Task(pk=0, code="draft")
        # Never saved.
        task.config_text, task.name = text, parse_config.name
        if page == "judge":
            values = {
                **build_judge_values(task, get_annotator(get_person(request))),
                "page": "judge",
            }
        else:
            values = {**build_write_values(task), "page": "write"}
    return render_in_frame(request, values)


def is_preview(request: HttpRequest) -> bool:
    """Return whether the form was sent for a preview, which stores nothing."""
    return "page" in request.POST


@xframe_options_sameorigin
def show_preview(
    request: HttpRequest,
    draft: TaskDraft,
    form: BaseForm | None = None,
    write: Callable[[Data], object] | None = None,
) -> HttpResponse:
    """Show a preview with the values typed so far. Nothing is stored.

    form: the step's form, ignored if invalid. write: puts the form's values into the draft's data.
    """
    data = parse_data(draft.text)
    if form is not None and write is not None and form.is_valid():
        with suppress(LookupError, Refused):  # the draft was changed in another window
            write(data)
    return render_preview(request, draft, data, request.POST["page"])
