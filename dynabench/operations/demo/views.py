"""The page of the demo: filling its task, its progress, and deleting it."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.accounts.people import get_person
from core.web.htmx import render_page
from core.web.refusals import show_as_message
from dynabench.operations.demo.forget import count_real_people
from dynabench.operations.demo.models import DemoRun
from dynabench.operations.demo.services import may_manage_demo, remove_demo, request_demo, stop_demo
from tasks.models import SIMULATED_TASK_CODE, Task


def _require_demo_permission(request: HttpRequest) -> None:
    if not may_manage_demo(request.user):
        raise Http404


@require_safe
def show_demo_page(request: HttpRequest) -> HttpResponse:
    """Show whether the demo exists and the progress of filling it.

    Requests by htmx get only that part.
    """
    _require_demo_permission(request)
    values = {
        "demo": Task.objects.filter(code=SIMULATED_TASK_CODE).first(),
        "run": DemoRun.objects.filter(task__code=SIMULATED_TASK_CODE).first(),
        "real_people": count_real_people(),
    }
    return render_page(request, "demo/demo.html", values, block_name="state")


@require_POST
def fill_demo(request: HttpRequest) -> HttpResponse:
    """Request the demo. A second click changes nothing."""
    _require_demo_permission(request)
    with show_as_message(request):
        request_demo(get_person(request))
    return redirect("demo:demo")


@require_POST
def stop_filling(request: HttpRequest) -> HttpResponse:
    """Stop a queued or running job that fills the demo."""
    _require_demo_permission(request)
    if run := DemoRun.objects.filter(task__code=SIMULATED_TASK_CODE).first():
        stop_demo(run, get_person(request))
    return redirect("demo:demo")


@require_POST
def delete_demo(request: HttpRequest) -> HttpResponse:
    """Delete the demo with all its rows."""
    _require_demo_permission(request)
    with show_as_message(request):
        remove_demo(get_person(request))
        messages.success(request, _("Demo removed."))
    return redirect("demo:demo")
