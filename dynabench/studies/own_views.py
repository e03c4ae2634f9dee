"""The task owners' pages about studies: the plan, its freeze, and the report."""

from io import BytesIO
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.studies import services
from dynabench.studies.draft_forms import OpenStudyForm
from dynabench.studies.forms import StudyForm
from dynabench.studies.models import Pilot, Study
from dynabench.studies.pilot_copy_services import find_pilot_problem
from dynabench.studies.pilot_selectors import summarise_pilot
from dynabench.studies.pilot_services import delete_pilot, start_pilot
from dynabench.studies.power_services import find_simulation, request_simulation
from dynabench.studies.rules.starter import write_starter_plan
from dynabench.studies.selectors import (
    build_records,
    build_study_report,
    can_read_study,
    count_people,
    list_alone_records,
    list_free_campaigns,
    list_task_studies,
)
from dynabench.studies.setup_services import (
    list_unapproved_tasks,
    open_study,
    request_study_approval,
)
from tasks.access import ALL_KINDS, find_task, require_permission
from tasks.models import Task
from tasks.permissions import can_make_tasks, can_own, can_read


def _find_owned_task(request: HttpRequest, code: str) -> Task:
    """Return the task, if the person owns it. Raises Http404 or PermissionDenied."""
    task = find_task(request, code, can_own, kinds=ALL_KINDS)
    # Reports are about what people wrote.
    require_permission(request.user, task, can_read)
    return task


def _find_study(request: HttpRequest, code: str, slug: str) -> Study:
    """Return a study of the task. Raises Http404, or PermissionDenied.

    Its owner must own the tasks of all arms, too: the report shows what was written there.
    """
    task = _find_owned_task(request, code)
    study = get_object_or_404(Study.objects.select_related("task"), task=task, code=slug)
    if not can_read_study(get_person(request), study):
        raise PermissionDenied
    return study


def _find_frozen_study(request: HttpRequest, code: str, slug: str) -> Study:
    """Return a study that has a report. Raises Http404, or PermissionDenied."""
    study = _find_study(request, code, slug)
    if study.state == Study.State.DRAFT:
        raise Http404
    return study


@require_safe
def list_studies(request: HttpRequest, code: str) -> HttpResponse:
    """Show all studies of the task."""
    task = _find_owned_task(request, code)
    return render(
        request,
        "own/studies.html",
        {
            "task": task,
            "page": list_page(request, list_task_studies(task)),
            "may_create": can_make_tasks(request.user),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
def create_study(request: HttpRequest, code: str) -> HttpResponse:
    """Show the form for a new plan, and create its study as a draft."""
    task = _find_owned_task(request, code)
    starter = write_starter_plan(f"{task.code[:30]}-study", list_free_campaigns(task))
    form_data = request.POST if request.method == "POST" else None
    form = StudyForm(form_data, initial={"plan_text": starter})
    if form.is_valid():
        with show_as_form_error(form):
            study = services.make_study(task=task, actor=get_person(request), **form.cleaned_data)
            return redirect("own-studies:study", code, study.code)
    return _render_form(request, task, form)


@require_http_methods(["GET", "HEAD", "POST"])
def edit_study(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show the form for the plan of a draft, and store changes."""
    own_study = _find_study(request, code, slug)
    form_data = request.POST if request.method == "POST" else None
    form = StudyForm(form_data, initial={"plan_text": own_study.plan_text})
    if form.is_valid():
        with show_as_form_error(form):
            services.change_study(study=own_study, actor=get_person(request), **form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("own-studies:study", code, own_study.code)
    return _render_form(request, own_study.task, form, own_study)


def _render_form(
    request: HttpRequest, task: Task, form: StudyForm, study: Study | None = None
) -> HttpResponse:
    """Render the form of a study's plan."""
    campaigns = list_free_campaigns(task)
    values = {"task": task, "form": form, "study": study, "campaigns": campaigns}
    values["may_create"] = study is None and can_make_tasks(request.user)
    return render(request, "own/study_form.html", values, status=get_form_status(form))


@require_safe
def show_study(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show a study: its plan, and once it is frozen the link for people and the report."""
    own_study = _find_study(request, code, slug)
    return _render_study(request, own_study, OpenStudyForm())


def _render_study(request: HttpRequest, own_study: Study, open_form: OpenStudyForm) -> HttpResponse:
    """Render the page of a study."""
    person, plan = get_person(request), own_study.plan
    values: dict[str, Any] = {"task": own_study.task, "study": own_study, "plan": plan}
    values["simulation"] = find_simulation(own_study.plan_text)
    if _can_be_opened(own_study):
        values["open_form"] = open_form
        values["unapproved_tasks"] = list_unapproved_tasks(own_study)
    values["draft"] = person.study_drafts.filter(study=own_study).first()
    values["rehearsed"] = Study.objects.filter(pilot__rehearsal=own_study).first()
    values["pilot"] = pilot = Pilot.objects.filter(study=own_study).first()
    if pilot and pilot.state == Pilot.State.DONE:
        values["pilot_arms"] = summarise_pilot(pilot)
    # Whoever started a pilot owns its tasks. Others see what it tells, as in the API, without them.
    rehearsal = pilot.rehearsal if pilot else None
    if rehearsal and can_read_study(person, rehearsal):
        values["rehearsal"] = rehearsal
    if pilot is None:
        values["pilot_problem"] = find_pilot_problem(own_study)
    # A draft has no arms yet, and nobody in them.
    if own_study.state != Study.State.DRAFT:
        report = build_study_report(own_study)
        values["report"] = report
        values["counts"] = count_people(own_study)
        comparisons = report["planned"] + report["exploratory"]
        # Without any, two tables would say so in each row.
        values["has_effects"] = any(one["p"] is not None for one in comparisons)
        path = reverse("studies:arrive", args=[own_study.code])
        first_arm = own_study.arms.select_related("campaign").first()
        assert first_arm is not None
        # With the panel's placeholders, and the host of this request.
        values["link"] = request.build_absolute_uri(path) + first_arm.campaign.way_in.placeholders
    return render(request, "own/study.html", values, status=get_form_status(open_form))


def _can_be_opened(study: Study) -> bool:
    """Return whether a study with a setup has campaigns that have not opened."""
    if study.plan.setup is None or study.state == Study.State.CLOSED:
        return False
    arms = study.arms.values_list("campaign__state", flat=True)
    return study.state == Study.State.DRAFT or "draft" in arms


@require_POST
def simulate_power(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Queue the simulation of a study's plan."""
    own_study = _find_study(request, code, slug)
    with show_as_message(request):
        request_simulation(plan_text=own_study.plan_text, actor=get_person(request))
    return redirect(reverse("own-studies:study", args=[code, own_study.code]) + "#power")


@require_POST
def change_pilot(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Start a pilot with simulated people, or delete it with everything that they did."""
    own_study, action = _find_study(request, code, slug), request.POST.get("do")
    if action not in ("start", "delete"):
        raise Http404
    with show_as_message(request):
        change = start_pilot if action == "start" else delete_pilot
        change(study=own_study, actor=get_person(request))
    return redirect(reverse("own-studies:study", args=[code, own_study.code]) + "#pilot")


@require_POST
def ask_for_approval(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Request the approval of all tasks of a study at once."""
    own_study = _find_study(request, code, slug)
    with show_as_message(request):
        request_study_approval(study=own_study, actor=get_person(request))
        messages.success(request, _("Approval requested. We'll email you the decision."))
    return redirect(reverse("own-studies:study", args=[code, own_study.code]) + "#open")


@require_POST
def open_to_people(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Open the rounds, freeze the plan and open the campaigns of a study with a setup."""
    own_study = _find_study(request, code, slug)
    form = OpenStudyForm(request.POST)
    if form.is_valid():
        with show_as_form_error(form):
            open_study(study=own_study, actor=get_person(request), **form.cleaned_data)
            messages.success(request, _("People can join now."))
            return redirect("own-studies:study", code, own_study.code)
    own_study.refresh_from_db()
    return _render_study(request, own_study, form)


@require_POST
def change_state(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Freeze the plan of a study, or close it to newcomers."""
    own_study = _find_study(request, code, slug)
    change = services.STATE_SERVICES.get(request.POST.get("to", ""))
    if change is None:
        raise Http404
    with show_as_message(request):
        change(study=own_study, actor=get_person(request))
        messages.success(request, _("Saved."))
    return redirect("own-studies:study", code, own_study.code)


@require_safe
def download_report(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Return the report as JSON."""
    return JsonResponse(build_study_report(_find_frozen_study(request, code, slug)))


@require_safe
def download_bundle(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Return the replay bundle as a ZIP file."""
    from dynabench.studies.rules.bundle import write_bundle  # numpy: not in each web process

    own_study = _find_frozen_study(request, code, slug)
    file = BytesIO()
    write_bundle(
        file,
        own_study.plan_text,
        build_study_report(own_study),
        build_records(own_study),
        list_alone_records(own_study),
    )
    response = HttpResponse(file.getvalue(), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{own_study.code}.zip"'
    return response
