"""The page on which a task's owners choose a ruler's anchors, see its state and retire it."""

from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.models import Ruler
from evaluation.runs.rulers.forms import RulerForm
from evaluation.runs.rulers.selectors import (
    find_ruler,
    list_lacking_models,
    list_links,
    list_withdrawn_anchors,
)
from evaluation.runs.rulers.services import request_anchor_runs, request_ruler, retire_ruler
from evaluation.test_sets.items import MIN_MODELS
from tasks.access import find_task, find_task_and_editor
from tasks.models import Task
from tasks.permissions import can_own

PAGE_SIZE = 50


@require_http_methods(["GET", "POST"])
def show_ruler(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's ruler, or the form for a new one. On POST, have a ruler chosen.

    Editors see the page; only owners may choose.
    """
    task, user = find_task_and_editor(request, code)
    form = RulerForm(request.POST or None)
    if request.method == "POST":
        # Raises 403 for editors, who may read the page.
        find_task(request, code, can_own)
        if form.is_valid():
            with show_as_form_error(form):
                request_ruler(task=task, actor=user, **form.cleaned_data)
                return redirect("evaluation:ruler", code)
    # Read anew: a request that was refused may have been beaten by another owner's.
    ruler = find_ruler(task)
    values: dict[str, Any] = {"task": task, "ruler": ruler, "form": form, "least": MIN_MODELS}
    values["may_own"] = can_own(user, task)
    values["former"] = task.rulers.exclude(retired_at=None).order_by("-version")
    if ruler and ruler.state == Ruler.State.DONE:
        lacking_models = list_lacking_models(ruler)
        page = list_page(request, lacking_models, size=PAGE_SIZE)
        values |= {"page": page, "links": list_links(ruler), "sources": _count_sources(ruler)}
        values["lacking_count"] = len(lacking_models)
        values["linked_count"] = sum(one.is_linked for one in values["links"])
        values["withdrawn"] = list_withdrawn_anchors(ruler)
        values["standing_count"] = ruler.standings.count()
    return render(request, "evaluation/ruler.html", values, status=get_form_status(form))


def _count_sources(ruler: Ruler) -> Any:
    """Return each set that gave anchors, with their number and whether its rows are public."""
    names = ("version__evaluation_set__name", "version__evaluation_set__may_leave")
    return ruler.anchors.order_by(names[0]).values_list(*names).annotate(Count("pk"))


@require_POST
def retire(request: HttpRequest, code: str) -> HttpResponse:
    """Retire the task's ruler, which ends the protection of its anchors."""
    ruler = _find_ruler(find_task(request, code, can_own))
    with show_as_message(request):
        retire_ruler(ruler=ruler, actor=get_person(request))
        messages.success(request, _("Ruler retired. Its anchors may be released now."))
    return redirect("evaluation:ruler", code)


@require_POST
def request_missing(request: HttpRequest, code: str) -> HttpResponse:
    """Request the runs that models need to be on the ruler."""
    task, user = find_task_and_editor(request, code)
    runs = request_anchor_runs(ruler=_find_ruler(task), actor=user)
    message = ngettext("%(n)d run requested.", "%(n)d runs requested.", len(runs))
    messages.success(request, message % {"n": len(runs)})
    return redirect("evaluation:ruler", code)


def _find_ruler(task: Task) -> Ruler:
    return get_object_or_404(task.rulers.select_related("task"), retired_at=None)
