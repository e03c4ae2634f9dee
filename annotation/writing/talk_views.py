"""The conversation with the target, a turn at a time, before it is sent as an example."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotation.access import gate_is_shut, writer
from annotation.assignments.services import assign
from annotation.attempts import conversation_services
from annotation.models import Assignment
from annotation.open_round import round_to_write
from annotation.writing import page
from annotation.writing.page import WritePage
from annotation.writing.views import posted_assignment, refusal
from dynabench.lib.errors import Refused
from dynabench.lib.htmx import htmx_partial, render_page
from tasks.access import find_task


@require_http_methods(["GET", "POST"])
def talk(request: HttpRequest, code: str) -> HttpResponse:
    """Say a turn (`say`, `at`), or take one back: `take` or `edit` with its place.

    GET: the conversation as it is, for who waits for the answer.
    """
    task = find_task(request, code)
    annotator = writer(request, task)
    if gate_is_shut(request, task):
        return redirect("annotation:gate", code=code)
    if task.config.talk is None:
        raise Http404
    if request.method == "POST":
        assignment = posted_assignment(request, annotator, task)
        try:
            _spoken(request, assignment)
        except Refused as error:
            return _refused(request, assignment, error)
    else:
        round = round_to_write(task, annotator)
        try:
            if round is None:
                raise Refused(_("No round is open."))
            assignment = assign(annotator=annotator, round=round)
        except Refused as error:
            return refusal(request, error, task)
    if not htmx_partial(request):
        return redirect("annotation:write", code=code)
    return render_page(request, page.TEMPLATE, WritePage.of(assignment).values(), part="talk")


def _spoken(request: HttpRequest, assignment: Assignment) -> None:
    """What the posted form asks for. Raises Refused."""
    sent = request.POST
    for want in ("edit", "take"):
        if want in sent:
            conversation_services.take_back(
                assignment=assignment, turn=_number(sent[want]), edit=want == "edit"
            )
            return
    text, at = sent.get("say", ""), _number(sent.get("at", ""))
    conversation_services.say(assignment=assignment, text=text, at=at)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else -1


def _refused(request: HttpRequest, assignment: Assignment, error: Refused) -> HttpResponse:
    """The conversation with the reason why nothing was said; what was typed is still there."""
    values = WritePage.of(assignment).values()
    typed = request.POST.get("say")
    shown = {**values["talk"], "refused": str(error)}
    shown |= {"said": typed} if typed is not None else {}
    response = render_page(
        request, page.TEMPLATE, {**values, "talk": shown}, part="talk", status=error.status
    )
    response["HX-Reswap"] = "outerHTML"
    return response
