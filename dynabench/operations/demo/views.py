"""The page of the demo: filling its task, its progress, and deleting it."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.accounts.people import person
from core.web.htmx import render_page
from core.web.refusals import as_message
from dynabench.operations.demo.forget import count_real_people
from dynabench.operations.demo.models import DemoRun
from dynabench.operations.demo.services import may_fill, request_demo, stop_demo, take_demo_away
from tasks.models import SIMULATED, Task


def _check(request: HttpRequest) -> None:
    if not may_fill(request.user):
        raise Http404


@require_safe
def demo_page(request: HttpRequest) -> HttpResponse:
    """Show whether the demo exists and the progress of filling it.

    Responds to htmx with only that.
    """
    _check(request)
    values = {
        "demo": Task.objects.filter(code=SIMULATED).first(),
        "run": DemoRun.objects.filter(task__code=SIMULATED).first(),
        "real_people": count_real_people(),
    }
    return render_page(request, "demo/demo.html", values, part="state")


@require_POST
def fill_demo(request: HttpRequest) -> HttpResponse:
    """Request the demo. A second click changes nothing."""
    _check(request)
    with as_message(request):
        request_demo(person(request))
    return redirect("demo:demo")


@require_POST
def stop_filling(request: HttpRequest) -> HttpResponse:
    """Stop a queued or running job that fills the demo."""
    _check(request)
    if run := DemoRun.objects.filter(task__code=SIMULATED).first():
        stop_demo(run, person(request))
    return redirect("demo:demo")


@require_POST
def delete_demo(request: HttpRequest) -> HttpResponse:
    """Delete the demo with all its rows."""
    _check(request)
    with as_message(request):
        take_demo_away(person(request))
        messages.success(request, _("The demo is gone."))
    return redirect("demo:demo")
