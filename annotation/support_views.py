"""Help with writing, where the task's owners allow it: each comes when a person asks for it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from annotation import services, work
from annotation.access import gate_is_shut, writer
from annotation.forms import typed
from annotation.views import posted_assignment
from annotation.work import Work
from annotation.worked import open_worked
from dynabench.lib.htmx import htmx_partial, render_page
from tasks.access import find_task


@require_POST
def support(request: HttpRequest, code: str) -> HttpResponse:
    """Show the help that `want` names beside what was typed, which is kept as the draft."""
    task = find_task(request, code)
    annotator = writer(request, task)
    if gate_is_shut(request, task):
        return redirect("annotation:gate", code=code)
    allowed = task.config.support
    if not (allowed and allowed.examples and request.POST.get("want") == "examples"):
        raise Http404
    assignment = posted_assignment(request, annotator, task)
    services.save_draft(assignment=assignment, inputs=typed(task.config, request.POST))
    open_worked(assignment)
    if not htmx_partial(request):
        # Without a fragment, for then the browser would not focus the heading.
        return redirect(reverse("annotation:write", args=[code], query={"support": "examples"}))
    now = Work.of(assignment, opened="examples")
    return render_page(request, work.TEMPLATE, now.page(), part="support")
