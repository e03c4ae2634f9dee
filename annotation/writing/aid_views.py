"""The view that provides a writing aid when a person asks for it."""

import logging

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_POST

from annotation.access import is_gate_shut, require_annotator
from annotation.aids.registry import find_aid
from annotation.context_picking.services import save_draft
from annotation.models import Suggestion
from annotation.writing import page
from annotation.writing.forms import read_typed_values
from annotation.writing.page import WritePage
from annotation.writing.views import get_posted_assignment
from core.errors import Refused
from core.web.htmx import is_htmx_partial, render_page
from tasks.access import find_task
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)
Action = Suggestion.Action
NO_ANSWER_REASONS = {
    "busy": gettext_noop("Many people are using the suggestion model right now."),
    "slow": gettext_noop("The suggestion model took too long."),
}
NO_ANSWER_MESSAGE = gettext_noop("The suggestion model didn't answer.")


@require_POST
def show_aid(request: HttpRequest, code: str) -> HttpResponse:
    """Provide the aid that the field `want` names, and store the typed text as the draft."""
    task = find_task(request, code)
    annotator = require_annotator(request, task)
    if is_gate_shut(request, task):
        return redirect("annotation:gate", code=code)
    button_value = request.POST.get("want", "")
    assignment = get_posted_assignment(request, annotator, task)
    aid = find_aid(task.config, button_value, assignment.arm)
    if aid is None:
        raise Http404
    inputs, message, status = (
        read_typed_values(task.config, assignment.context.fields, request.POST),
        "",
        200,
    )
    save_draft(assignment=assignment, inputs=inputs)
    try:
        aid.provide_help(assignment, button_value, inputs)
    except Refused as error:
        message, status = str(error), error.status
    except EndpointError as error:
        logger.warning("no suggestion for assignment %s: %s", assignment.pk, error)
        message, status = _(NO_ANSWER_REASONS.get(error.reason, NO_ANSWER_MESSAGE)), 503
    return _show_page(
        request, WritePage.from_assignment(assignment, opened_aid=button_value), message, status
    )


def _show_page(
    request: HttpRequest, write_page: WritePage, message: str, status: int
) -> HttpResponse:
    """Show the page with the help open, or for htmx only the part that changed.

    message: why there is no help; empty otherwise.
    """
    if not message and not is_htmx_partial(request):
        # Without a fragment, for then the browser would not focus the heading.
        query = {"support": write_page.opened_aid}
        return redirect(reverse("annotation:write", args=[write_page.task.code], query=query))
    part = "work" if write_page.opened_aid in Suggestion.USED_ACTIONS else "support"
    values = {**write_page.build_context(), "support_said": message}
    return render_page(request, page.TEMPLATE, values, block_name=part, status=status)
