"""The conversation with the target, a turn at a time, before it is sent as an example."""

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotation.access import is_gate_shut, require_annotator
from annotation.attempts import conversation_services
from annotation.attempts.event_stream import stream_events
from annotation.attempts.partial_answers import build_stream_key
from annotation.care.services import check_rested, record_text_answered
from annotation.context_picking.services import assign
from annotation.models import Assignment, Conversation
from annotation.open_round import find_round_to_write
from annotation.writing import page
from annotation.writing.page import WritePage
from annotation.writing.views import get_posted_assignment, render_refusal
from core.accounts.services import get_annotator
from core.errors import Refused
from core.web.htmx import is_htmx_partial, render_page
from tasks.access import find_task

POLL_SECONDS = 0.2
"""Seconds that a page with a script waits for an answer before it streams partial ones."""


@require_GET
def stream_talk(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Stream the answer to the person's turn as server-sent events, then `done`.

    204 if there are too many listeners or nothing is asked; the page then polls.
    """
    annotator = get_annotator(request.user)  # type: ignore[arg-type]
    own_conversations = Conversation.objects.filter(assignment__annotator=annotator)
    conversation = get_object_or_404(own_conversations, assignment=pk)
    if not conversation.is_asking:
        return HttpResponse(status=204)
    # Selects nothing once the turn is answered, taken back or asked again.
    waiting_conversations = own_conversations.filter(
        pk=conversation.pk, asked_at=conversation.asked_at
    )
    return stream_events([build_stream_key(conversation)], waiting_conversations)


@require_http_methods(["GET", "POST"])
def show_talk(request: HttpRequest, code: str) -> HttpResponse:
    """Show the conversation; POST sends a turn or takes one back.

    Form fields: `say` with `at` (number of turns seen), or `take` or `edit` with a turn's index.
    Raises Http404 if the task has no chat.
    """
    task = find_task(request, code)
    annotator = require_annotator(request, task)
    if is_gate_shut(request, task):
        return redirect("annotation:gate", code=code)
    if task.config.talk is None:
        raise Http404
    if request.method == "POST":
        assignment = get_posted_assignment(request, annotator, task)
        try:
            check_rested(annotator, task)
            _apply_form(request, assignment)
        except Refused as error:
            return _render_refusal(request, assignment, error)
        record_text_answered(annotator=annotator, task=task)
    else:
        round = find_round_to_write(task, annotator)
        try:
            if round is None:
                raise Refused(_("No round is open. Come back when the next one opens."))
            assignment = assign(annotator=annotator, round=round)
        except Refused as error:
            return render_refusal(request, error, task)
    if not is_htmx_partial(request):
        return redirect("annotation:write", code=code)
    return render_page(
        request,
        page.TEMPLATE,
        WritePage.from_assignment(assignment).build_context(),
        block_name="talk",
    )


def _apply_form(request: HttpRequest, assignment: Assignment) -> None:
    """Carry out what the posted form requests. Raises Refused."""
    if back := read_turn_to_take_back(request):
        conversation_services.take_back_turn(
            assignment=assignment, turn=back[0], keeps_text=back[1]
        )
        return
    text, turn_index = read_next_turn(request)
    seconds = POLL_SECONDS if is_htmx_partial(request) else None  # with a script the answer streams
    conversation_services.say_turn(
        assignment=assignment, text=text, turn_index=turn_index, seconds=seconds
    )


def read_turn_to_take_back(request: HttpRequest) -> tuple[int, bool] | None:
    """Return the index of the turn to take back and whether to edit it; None for other forms."""
    for button in ("edit", "take"):
        if button in request.POST:
            return _parse_number(request.POST[button]), button == "edit"
    return None


def read_next_turn(request: HttpRequest) -> tuple[str, int]:
    """Return the form's next turn, and the number of turns that its page showed.

    The number is -1 if it is invalid.
    """
    return request.POST.get("say", ""), _parse_number(request.POST.get("at", ""))


def _parse_number(text: str) -> int:
    # No conversation is so long that a place needs five digits.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else -1


def _render_refusal(request: HttpRequest, assignment: Assignment, error: Refused) -> HttpResponse:
    """Show the conversation with the reason for the refusal; the typed text is kept."""
    return render_refused_talk(request, WritePage.from_assignment(assignment), error)


def render_refused_talk(
    request: HttpRequest, write_page: WritePage, error: Refused
) -> HttpResponse:
    """Show the conversation of a write page with the reason for the refusal.

    Keeps the text typed in the form.
    """
    values = write_page.build_context()
    typed_text = request.POST.get("say")
    talk_values = {**values["talk"], "refused": str(error)}
    talk_values |= {"said": typed_text} if typed_text is not None else {}
    response = render_page(
        request,
        page.TEMPLATE,
        {**values, "talk": talk_values},
        block_name="talk",
        status=error.status,
    )
    response["HX-Reswap"] = "outerHTML"
    return response
