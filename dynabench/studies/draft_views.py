"""The pages on which people without YAML choose a design, fill it in and set the study up."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.accounts.return_page import remember_return_page
from core.errors import Invalid
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.studies import draft_services
from dynabench.studies.case_files import (
    MAX_CASE_BYTES,
    list_first_cases,
    read_case_table,
    write_cases,
)
from dynabench.studies.draft_forms import (
    MAX_ARMS,
    MAX_HYPOTHESES,
    StudyDraftForm,
    StudyYamlForm,
)
from dynabench.studies.models import StudyDraft
from dynabench.studies.power_services import find_simulation, request_simulation
from dynabench.studies.rules.builder import TEMPLATES
from dynabench.studies.rules.plan import build_config_of_arm, read_plan
from dynabench.studies.setup_services import build_line_error
from tasks.config.loading import load_config
from tasks.contexts.files import Summary, summarise_file
from tasks.line_files import FileError
from tasks.permissions import can_make_tasks, is_task_creation_offered


class MissingPart(NamedTuple):
    """What a draft needs before it becomes a study. anchor: where the page asks for it."""

    anchor: str
    words: str


class CaseFile(NamedTuple):
    """The cases of a draft: what the file has, and the file that a study is set up from."""

    summary: Summary
    data: bytes
    name: str


@require_http_methods(["GET", "HEAD", "POST"])
def choose_template(request: HttpRequest) -> HttpResponse:
    """Show the designs of studies and the person's drafts; a POST begins a draft.

    Raises Http404 for people who are not offered new tasks.
    """
    if not is_task_creation_offered(request.user):
        raise Http404
    user = get_person(request)
    if request.method == "POST":
        template = TEMPLATES.get(request.POST.get("template", ""))
        if template is None:
            raise Http404
        with show_as_message(request):
            draft = draft_services.begin_draft(owner=user, template=template)
            return redirect("new-study:draft", draft.pk)
        return redirect("new-study:templates")
    may_create = can_make_tasks(user)
    if not may_create:
        remember_return_page(request)  # to come back here once their address is confirmed
    drafts = user.study_drafts.select_related("study__task")
    values = {"templates": TEMPLATES.values(), "drafts": drafts, "may": may_create}
    return render(request, "own/study_templates.html", values)


@require_POST
def delete_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete one of the person's own drafts. Its study stays."""
    draft_services.delete_study_draft(_find_draft(request, pk))
    messages.success(request, _("Draft deleted."))
    return redirect("new-study:templates")


def _find_draft(request: HttpRequest, pk: int) -> StudyDraft:
    """Return one of the person's own drafts. Raises Http404."""
    return get_object_or_404(get_person(request).study_drafts.select_related("study__task"), pk=pk)


@require_http_methods(["GET", "HEAD", "POST"])
def edit_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a draft's fields, or its YAML. A POST stores them, and does what its button says."""
    draft = _find_draft(request, pk)
    if draft.plan_text:
        return _edit_yaml(request, draft)
    if request.method != "POST":
        return _render_draft(request, draft, _build_form(draft))
    form = _build_form(draft, request)
    action = request.POST.get("do", "save")
    typed = form.list_typed_values()
    # One more row, if its button was pressed. Everything that was typed stays, also if it is wrong.
    if action == "arm":
        typed["arms"] = min(MAX_ARMS, form.arm_count + 1)
    if action == "hypothesis":
        typed["hypotheses"] = min(MAX_HYPOTHESES, form.hypothesis_count + 1)
    draft_services.store_values(draft=draft, values=typed)
    is_valid = form.is_valid()
    # Also beside wrong fields: nobody should choose the file a second time.
    with show_as_form_error(form, FileError, field="cases"):
        if file := request.FILES.get("cases"):
            _store_upload(draft, file)
    # Without errors: a row was asked for, and the rest may be unfinished.
    if action in ("arm", "hypothesis"):
        anchor = "#arms" if action == "arm" else "#hypotheses"
        return redirect(reverse("new-study:draft", args=[draft.pk]) + anchor)
    if is_valid and not form.errors:
        with show_as_form_error(form, FileError):
            return _do_action(request, draft, action, form.plan_text)
    return _render_draft(request, draft, form)


def _build_form(draft: StudyDraft, request: HttpRequest | None = None) -> StudyDraftForm:
    """Return the form of a draft's fields, with what a request sent."""
    data = (request.POST, request.FILES) if request else ()
    return StudyDraftForm(*data, values=draft.values, code=draft.code, design=draft.design)


def _edit_yaml(request: HttpRequest, draft: StudyDraft) -> HttpResponse:
    """Show the YAML of a draft. A POST stores it, and does what its button says."""
    if request.method != "POST":
        form = StudyYamlForm(initial={"plan_text": draft.plan_text}, code=draft.code)
        return _render_yaml(request, draft, form)
    action = request.POST.get("do", "save")
    if action == "fields":
        draft_services.store_plan_text(draft=draft, plan_text="")
        # The two files have different columns.
        draft_services.store_cases(draft=draft, cases=b"", file_name="")
        return redirect("new-study:draft", draft.pk)
    form = StudyYamlForm(request.POST, request.FILES, code=draft.code)
    if form.is_valid():
        text = form.cleaned_data["plan_text"]
        draft_services.store_plan_text(draft=draft, plan_text=text)
        with show_as_form_error(form, FileError):
            if file := request.FILES.get("cases"):
                _store_upload(draft, file)
            return _do_action(request, draft, action, text)
    return _render_yaml(request, draft, form)


def _store_upload(draft: StudyDraft, file: Any) -> None:
    """Store a file of cases that can be read, also with wrong lines. Raises Invalid, FileError."""
    if file.size > MAX_CASE_BYTES:
        raise Invalid(_("The file is larger than 2 MB. Use fewer cases."), field="cases")
    data, name = file.read(), file.name or ""
    # Read once, so that what is no table is refused before it replaces the file that is there.
    read_case_table(data, name, _list_answers(draft))
    draft_services.store_cases(draft=draft, cases=data, file_name=name)


def _list_answers(draft: StudyDraft) -> list[str]:
    """Return the answers that a draft's people choose from."""
    lines = [line.strip() for line in draft.values.get("answers", "").splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


def _read_cases(draft: StudyDraft, plan_text: str) -> CaseFile:
    """Return the cases of a draft, as its fields or its YAML read them. Raises FileError."""
    data = bytes(draft.cases)
    # The two forms read different columns.
    if not draft.plan_text:
        summary = read_case_table(data, draft.cases_name, _list_answers(draft))
        return CaseFile(summary, write_cases(summary), "cases.jsonl")
    plan = read_plan(plan_text)
    assert plan.setup is not None
    config = load_config(build_config_of_arm(plan.setup, plan.arms[0]))
    return CaseFile(summarise_file(data, draft.cases_name, config, ()), data, draft.cases_name)


def _do_action(
    request: HttpRequest, draft: StudyDraft, action: str, plan_text: str
) -> HttpResponse:
    """Do what the button of a valid form says. Raises Refused, Invalid, FileError."""
    user = get_person(request)
    if action == "create":
        return _create_study(request, draft, plan_text)
    if action == "yaml":
        if draft.cases:
            cases = _read_cases(draft, plan_text).data
            draft_services.store_cases(draft=draft, cases=cases, file_name="cases.jsonl")
        draft_services.store_plan_text(draft=draft, plan_text=plan_text)
    elif action == "power":
        request_simulation(plan_text=plan_text, actor=user)
    messages.success(request, _("Saved."))
    anchor = "#power" if action == "power" else ""
    return redirect(reverse("new-study:draft", args=[draft.pk]) + anchor)


def _create_study(request: HttpRequest, draft: StudyDraft, plan_text: str) -> HttpResponse:
    """Set the study of a draft up, and lead to its page. Raises Refused, Invalid, FileError."""
    if not draft.cases:
        raise Invalid(_("Add the file of cases first."), field="cases")
    file = _read_cases(draft, plan_text)
    if file.summary.errors:
        raise build_line_error(file.summary.errors[0].line, file.summary.errors[0].message)
    study = draft_services.set_up_draft(
        draft=draft,
        actor=get_person(request),
        plan_text=plan_text,
        cases=file.data,
        file_name=file.name,
    )
    messages.success(request, _("Study created. Try it out, then freeze the plan."))
    return redirect("own-studies:study", study.task.code, study.code)


def _render_draft(request: HttpRequest, draft: StudyDraft, form: StudyDraftForm) -> HttpResponse:
    """Render a draft's fields, with the power of the plan that they give."""
    # What is stored gives the plan, also where the shown form is not filled in yet.
    stored_form = StudyDraftForm(
        draft.values, values=draft.values, code=draft.code, design=draft.design
    )
    plan_text = stored_form.plan_text if stored_form.is_valid() else ""
    more = {"cost": stored_form.cost, "missing_parts": _list_missing_parts(draft, stored_form)}
    return _render(request, draft, "own/study_draft.html", form, plan_text, more)


def _list_missing_parts(draft: StudyDraft, form: StudyDraftForm) -> list[MissingPart]:
    """Return what the stored fields need before they become a study."""
    parts = [
        MissingPart(f"field-{name}", str(form.fields[name].label))
        for name in form.errors
        if name in form.fields
    ]
    if not draft.cases:
        parts.append(MissingPart("cases", _("Add the file of cases")))
    return parts


def _render_yaml(request: HttpRequest, draft: StudyDraft, form: StudyYamlForm) -> HttpResponse:
    """Render the YAML of a draft, with the power of its plan."""
    return _render(request, draft, "own/study_draft_yaml.html", form, draft.plan_text)


def _render(
    request: HttpRequest,
    draft: StudyDraft,
    template: str,
    form: Any,
    plan_text: str,
    more: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Render one of the two pages of a draft. plan_text: the stored plan; empty if it is wrong.

    more: values that only one of the pages has.
    """
    cases: CaseFile | None = None
    if draft.cases and (plan_text or not draft.plan_text):
        with show_as_message(request, FileError):
            cases = _read_cases(draft, plan_text)
    values = {
        "draft": draft,
        "form": form,
        "plan_text": plan_text,
        "simulation": find_simulation(plan_text) if plan_text else None,
        "summary": cases.summary if cases else None,
        "rows": list_first_cases(cases.summary) if cases else [],
        **(more or {}),
    }
    return render(request, template, values, status=get_form_status(form))
