"""The pages on which a person writes an example and learns whether the model was fooled."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotation import questions
from annotation.access import find_assigned_context, is_gate_shut, require_annotator
from annotation.aids.drafts import provide_draft
from annotation.aids.saliency import measure_saliency
from annotation.attempts import services
from annotation.attempts.author_answer_services import answer_undecided
from annotation.attempts.conversation_services import save_unsent_turn
from annotation.attempts.failures import FAILURE_MESSAGES, NO_ANSWER_MESSAGE
from annotation.attempts.services import ask_targets
from annotation.care.services import (
    check_rested,
    get_care,
    record_text_answered,
    record_text_shown,
    record_text_skipped,
)
from annotation.care.views import show_care
from annotation.context_picking.services import (
    assign,
    assign_next,
    pass_gate,
    save_draft,
    use_saved_text_as_draft,
)
from annotation.machine_text.services import store_model_answer
from annotation.models import Assignment, Attempt, Example
from annotation.moderation import report_context
from annotation.open_round import describe_closed_round, find_round_to_begin, find_round_to_write
from annotation.refusals import CapReached, NoContext, StaleForm
from annotation.rules.care import STOPPING_RESTS
from annotation.rules.near_duplicates import get_written_text
from annotation.rules.typing_evidence import read_typing_evidence
from annotation.selectors import find_unanswered_example, has_begun_writing
from annotation.writing import page
from annotation.writing.criteria_forms import CriteriaForm
from annotation.writing.forms import (
    ComponentForm,
    ReportForm,
    is_of_other_assignment,
    read_typed_values,
)
from annotation.writing.page import WritePage
from annotation.writing.result_panel import list_context_fields, list_why_components
from annotation.writing.uploads import MAX_BODY_BYTES, receive_form
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from core.data.prepared import PreparedRead, Slot
from core.errors import Refused
from core.web.bodies import limit_body
from core.web.guest_text import GuestText, delete_guest_text, get_guest_text
from core.web.htmx import is_htmx_partial, render_page
from tasks.access import ALL_KINDS, find_task
from tasks.arms import DRAFTS
from tasks.config.verdicts import list_criteria
from tasks.models import Round, Task
from tasks.permissions import can_see
from tasks.targets.endpoints.base import EndpointError

# `for` of the gate's address; pages of later stages are known here by their names only.
PAGE_AFTER_GATE = {
    "try": "annotation:try-out",
    "judge": "validation:judge",
    "battle": "leaderboard:battle",
}
# Each submit reads these; the votes' relation saves the panel of a new example a query.
POSTED_ASSIGNMENT = PreparedRead(
    lambda: Assignment.objects.select_related(
        "context", f"round__{questions.get_votes_relation()}"
    ).filter(pk=Slot("pk"))
)
MAX_ID_DIGITS = 19
"""Numbers with this many digits or more are too large to be ids."""


def render_refusal(request: HttpRequest, error: Refused, task: Task) -> HttpResponse:
    """Show the reason why the person cannot write, and what to do instead."""
    values = {"task": task, "message": str(error), "code": error.code}
    if request.user.is_authenticated:
        values["to_judge"] = questions.count_examples_to_judge(get_annotator(request.user), task)
    status = 200 if isinstance(error, NoContext) else error.status
    return render_page(
        request, "annotation/refused.html", values, block_name="panel", status=status
    )


def show_gate(request: HttpRequest, code: str) -> HttpResponse:
    """Show a sensitive task's content warning; POST accepts it."""
    task = find_task(request, code, kinds=ALL_KINDS)
    default_purpose = "battle" if task.config.kind == "arena" else ""
    next_page = PAGE_AFTER_GATE.get(request.GET.get("for", default_purpose), "annotation:write")
    if request.method == "POST":
        if request.user.is_authenticated:
            pass_gate(annotator=require_annotator(request, task, can_see), task=task)
        else:
            # Without an account there is no annotator to store it for.
            request.session[f"gate-{task.pk}"] = True
        return redirect(next_page, code=code)
    return render(request, "annotation/gate.html", {"task": task, "wanted": next_page})


show_gate = login_not_required(require_http_methods(["GET", "POST"])(show_gate))


@limit_body(MAX_BODY_BYTES)
@require_http_methods(["GET", "POST"])
def show_write_page(request: HttpRequest, code: str) -> HttpResponse:
    """Show the page for writing an example; POST submits the text to the round's targets.

    Shows a refusal, or the page about breaks, while the person cannot write.
    """
    task = find_task(request, code)
    annotator = require_annotator(request, task)
    if is_gate_shut(request, task):
        return redirect("annotation:gate", code=code)
    if request.method == "POST":
        return _submit_example(request, task, annotator)
    if (care := get_care(annotator, task)).rest in STOPPING_RESTS:
        return show_care(request, task, care)
    # From here on a text is in view, so its time begins.
    record_text_shown(annotator=annotator, task=task)
    round = find_round_to_write(task, annotator)
    if round is None:
        message = _("Examples are written in rounds. You can write again when the next one opens.")
        return _render_closed(request, task, annotator, message)
    # Whoever has begun a text still finds it while the round is paused.
    if round.state == Round.State.PAUSED and not has_begun_writing(annotator, round):
        message = describe_closed_round(round)
        return _render_closed(request, task, annotator, message, code="paused")
    try:
        assignment = assign(annotator=annotator, round=round)
    except Refused as error:
        return render_refusal(request, error, task)
    provide_draft(assignment)
    text = get_guest_text(request)
    is_used = bool(text and text.task == task.code and _use_guest_text(request, assignment, text))
    opened_aid = request.GET.get("support", "")
    write_page = WritePage.from_assignment(
        assignment, _find_retried_example(request, assignment), opened_aid
    )
    response = page.render_write_page(request, write_page)
    if is_used:
        delete_guest_text(response)
    return response


def _render_closed(
    request: HttpRequest, task: Task, annotator: Annotator, message: str, code: str = ""
) -> HttpResponse:
    """Show why the task is closed for writing. Offer judging if examples wait for the person."""
    to_judge = questions.count_examples_to_judge(annotator, task)
    values = {"task": task, "code": code, "message": message, "to_judge": to_judge}
    return render(request, "annotation/refused.html", values)


def _use_guest_text(request: HttpRequest, assignment: Assignment, text: GuestText) -> bool:
    """Load a text from practice into the form; return whether that was possible.

    Returns False if the person has begun another text or gets a draft, or if the round has closed.
    """
    if assignment.draft or assignment.parent_id or assignment.mends_id:
        return False
    # Its text is begun by the suggestion model. The browser keeps the other one.
    if assignment.arm == DRAFTS:
        return False
    try:
        use_saved_text_as_draft(assignment=assignment, goal=text.goal, inputs=text.inputs)
    except Refused:
        return False  # the page says why nobody writes now; the browser keeps the text
    messages.success(request, _("We've filled in your text. Submit it to make it count."))
    return True


def _find_retried_example(request: HttpRequest, assignment: Assignment) -> Example | None:
    """Return the person's example that the URL names, or None.

    It must be about the current context.
    """
    own_examples = Example.objects.filter(
        annotator=assignment.annotator_id, context=assignment.context_id
    )
    try:
        return own_examples.filter(uuid=UUID(request.GET.get("retry", ""))).first()
    except ValueError:
        return None


def _submit_example(request: HttpRequest, task: Task, annotator: Annotator) -> HttpResponse:
    """Check the form, ask the targets and show the verdict."""
    assignment = get_posted_assignment(request, annotator, task)
    write_page = WritePage.from_assignment(assignment)
    form = write_page.build_form(*receive_form(request, task, annotator))
    if not form.is_valid():
        return page.render_write_page(request, write_page, form=form, status=422)
    data = form.cleaned_data
    try:
        # Checked before anything is stored: the text stays in the form, to be sent after the break.
        check_rested(annotator, task)
        # The page was opened before another tab took another context.
        if form.is_of_other_assignment:
            raise StaleForm(
                _("You wrote your example for another text. Check that it fits this one.")
            )
        # The text would be compared with a goal that its author did not see.
        if data["goal"] != assignment.goal:
            raise StaleForm(
                _(
                    "Your goal has changed since you opened this page. Check that your example "
                    "fits the new goal."
                )
            )
        attempt, must_ask = services.begin_attempt(
            annotator=annotator,
            assignment=assignment,
            key=data["attempt_key"],
            inputs=form.inputs,
            parent=_find_own_example(annotator, data["parent"]),
            typing=read_typing_evidence(
                request.POST, len(get_written_text(task.config, form.inputs))
            ),
            takes_challenge=form.takes_challenge,
        )
    except Refused as error:
        return page.render_refused_page(request, write_page, error, form)
    if must_ask:
        record_text_answered(annotator=annotator, task=task)
        attempt = ask_targets(attempt)
    # So that reloading the page does not submit the text once more.
    if attempt.state == Attempt.State.DONE and not is_htmx_partial(request):
        return redirect("annotation:attempt", uuid=attempt.uuid)
    return page.render_attempt(request, write_page, attempt, is_new=must_ask)


def get_posted_assignment(request: HttpRequest, annotator: Annotator, task: Task) -> Assignment:
    """Return the person's assignment to which the form belongs. Raises Http404 for others."""
    pk = request.POST.get("assignment", "")
    assignment = (
        POSTED_ASSIGNMENT.first(pk=int(pk)) if pk.isdecimal() and len(pk) < MAX_ID_DIGITS else None
    )
    if assignment is None:
        raise Http404
    # The same answer as for an id that is not there, so that ids tell nothing.
    if (assignment.annotator_id, assignment.round.task_id) != (annotator.pk, task.pk):
        raise Http404
    assignment.annotator, assignment.round.task = annotator, task  # known, so not read again
    return assignment


def _find_own_example(annotator: Annotator, uuid: UUID | None) -> Example | None:
    return Example.objects.filter(annotator=annotator, uuid=uuid).first() if uuid else None


@require_POST
def assign_next_work(request: HttpRequest, code: str) -> HttpResponse:
    """Assign another context, another goal, or another person's example to change."""
    task = find_task(request, code)
    annotator = require_annotator(request, task)
    if is_gate_shut(request, task):
        return redirect("annotation:gate", code=code)
    # On the next page nothing would remind the author of the question.
    if open_question := find_unanswered_example(annotator, task):
        return _show_open_question(request, open_question)
    record_text_skipped(annotator=annotator, task=task)
    if (care := get_care(annotator, task)).rest in STOPPING_RESTS:
        return show_care(request, task, care)
    requested_kind = request.POST.get("want", "")
    if requested_kind not in ("goal", "edit"):
        requested_kind = "context"
    round = find_round_to_begin(task, annotator)
    try:
        assignment = assign_next(annotator=annotator, round=round, requested_kind=requested_kind)
    except Refused as error:
        return render_refusal(request, error, task)
    if not is_htmx_partial(request):
        return redirect("annotation:write", code=code)
    provide_draft(assignment)
    return render_page(
        request,
        page.TEMPLATE,
        WritePage.from_assignment(assignment).build_context(),
        block_name="work",
    )


def _show_open_question(request: HttpRequest, example: Example) -> HttpResponse:
    """Show the example that the author has not answered about, instead of a new form."""
    if not is_htmx_partial(request):
        messages.info(request, _("Answer this question first, or withdraw the example."))
        return redirect("annotation:attempt", uuid=example.uuid)
    write_page, example = _get_page_and_example(request, example.uuid)
    values = {**write_page.build_context(), **page.build_result_panel(example)}
    return render_page(request, page.TEMPLATE, values, block_name="work")


@require_POST
def save_posted_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Save a draft. Never shows an error, because a script sends it automatically."""
    assignment = get_object_or_404(
        Assignment.objects.select_related("round__task", "context"),
        pk=pk,
        annotator=get_annotator(request.user),  # type: ignore[arg-type]
    )
    if (text := request.POST.get("say")) is not None:
        save_unsent_turn(assignment=assignment, text=text)
    else:
        config, context = assignment.round.task.config, assignment.context.fields
        # A text that was typed for another assignment must not become the draft of this one.
        if not is_of_other_assignment(config, request.POST, assignment.pk):
            save_draft(
                assignment=assignment, inputs=read_typed_values(config, context, request.POST)
            )
    values = {"round": assignment.round, "is_part": True}
    return render(request, "annotation/_draft_saved.html", values)


def _find_own_attempt(request: HttpRequest, uuid: UUID) -> Attempt:
    attempts = Attempt.objects.select_related(
        "assignment__round__task",
        "assignment__context",
        "assignment__annotator",
        "example__round__task",
        "example__context",
    )
    return get_object_or_404(
        attempts,
        uuid=uuid,
        annotator=get_annotator(request.user),  # type: ignore[arg-type]
    )


def show_attempt(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Show an attempt: its verdict, why it failed, or that the model is still being asked."""
    attempt = services.expire_attempt(attempt=_find_own_attempt(request, uuid))
    write_page, is_polled = WritePage.from_assignment(attempt.assignment), is_htmx_partial(request)
    return page.render_attempt(request, write_page, attempt, is_polled=is_polled)


def _get_page_and_example(request: HttpRequest, uuid: UUID) -> tuple[WritePage, Example]:
    """Return the page and the person's own stored example.

    Raises Http404 if the attempt has no example.
    """
    attempt = _find_own_attempt(request, uuid)
    if attempt.example is None:
        raise Http404
    return WritePage.from_assignment(attempt.assignment).copy_for_attempt(attempt), attempt.example


@require_POST
def store_author_answer(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Store whether the author finds the model's answer acceptable, or which criteria it meets.

    If that has been decided before, show the earlier decision.
    """
    write_page, example = _get_page_and_example(request, uuid)
    answer, criteria_form = _read_author_answer(request, write_page, example)
    if answer is None:
        panel = page.build_result_panel(example, criteria_form=criteria_form)
        return page.render_write_page(request, write_page, panel, status=422)
    with suppress(Refused):  # answered before: show what was decided then
        answer_undecided(example=example, **answer)
    if not is_htmx_partial(request):
        return redirect("annotation:attempt", uuid=uuid)
    # The service changes a locked copy of the row.
    example.refresh_from_db(fields=["outcome", "decided_by"])
    return page.render_write_page(request, write_page, page.build_result_panel(example))


def _read_author_answer(
    request: HttpRequest, write_page: WritePage, example: Example
) -> tuple[dict[str, Any] | None, CriteriaForm | None]:
    """Return the arguments for `answer_undecided`, None if the answer is incomplete.

    Also return the form of the criteria if the example has some.
    """
    if criteria := list_criteria(write_page.task.config.verdict, example.inputs):
        form = CriteriaForm(request.POST, criteria=criteria)
        return ({"criteria": form.judgements} if form.is_valid() else None), form
    if request.POST.get("model_right") not in ("yes", "no"):
        return None, None
    return {"model_right": request.POST["model_right"] == "yes"}, None


@require_POST
def answer_model_question(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Store whether the author says that a language model wrote any of the text."""
    write_page, example = _get_page_and_example(request, uuid)
    if request.POST.get("used") not in ("yes", "no"):
        return redirect("annotation:attempt", uuid=uuid)
    try:
        answered = store_model_answer(example=example, has_used_model=request.POST["used"] == "yes")
    except Refused as error:
        return page.render_refused_page(request, write_page, error)
    if not is_htmx_partial(request):
        return redirect("annotation:attempt", uuid=uuid)
    example.signs = answered.signs
    return page.render_write_page(request, write_page, page.build_result_panel(example))


@require_POST
def store_why(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Store why the label is right and why a model might miss it."""
    write_page, example = _get_page_and_example(request, uuid)
    questions = list_why_components(write_page.task.config, example.outcome, example.inputs)
    form = ComponentForm(questions, request.POST, context=write_page.context.fields)
    if form.is_valid():
        services.store_explanation(example=example, metadata=form.inputs)
        if not is_htmx_partial(request):
            return redirect(reverse("annotation:attempt", args=[uuid]) + "#why")
    values = {
        **write_page.build_context(),
        **page.build_result_panel(example),
        "why_form": form,
        "why_saved": form.is_valid(),
    }
    return render_page(
        request, page.TEMPLATE, values, block_name="why", status=200 if form.is_valid() else 422
    )


@require_http_methods(["GET", "POST"])
def retract_own_example(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Ask for confirmation, then retract an example."""
    write_page, example = _get_page_and_example(request, uuid)
    if request.method == "GET":
        return render(
            request, "annotation/retract.html", {"example": example, "task": write_page.task}
        )
    try:
        example = services.retract_example(example=example)
    except Refused as error:
        return page.render_refused_page(request, write_page, error)
    if not is_htmx_partial(request):
        return redirect("annotation:attempt", uuid=uuid)
    return page.render_write_page(request, write_page, page.build_result_panel(example))


@require_http_methods(["GET", "POST"])
def report_assigned_context(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the form to report an assigned context, and store the report."""
    context, annotator = find_assigned_context(request, pk)
    form = ReportForm(request.POST or None)
    task = context.round.task
    values = {
        "form": form, "context": context, "task": task,
        "given": list_context_fields(task.config, context),
    }  # fmt: skip
    if request.method == "POST" and form.is_valid():
        report_context(annotator=annotator, context=context, **form.cleaned_data)
        return render_page(
            request, "annotation/report.html", {**values, "sent": True}, block_name="report"
        )
    status = 422 if request.method == "POST" else 200
    return render_page(
        request, "annotation/report.html", values, block_name="report", status=status
    )


@require_POST
def show_saliency(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Show which words mattered to the first target.

    The target is asked once more for each word, without that word.
    """
    write_page, example = _get_page_and_example(request, uuid)
    values = {
        **write_page.build_context(),
        **page.build_result_panel(example),
        "saliency_asked": True,
    }
    status = 200
    try:
        words = measure_saliency(example, write_page.text_field)
        top = sorted(words, key=lambda word: -word.drop)[:5]
        values |= {"saliency": words, "saliency_top": top}
    except EndpointError as error:
        status = 503
        values["saliency_failed"] = _(FAILURE_MESSAGES.get(error.reason, NO_ANSWER_MESSAGE))
    except CapReached as error:
        status, values["saliency_failed"] = error.status, str(error)
    return render_page(request, page.TEMPLATE, values, block_name="saliency", status=status)
