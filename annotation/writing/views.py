"""The pages on which a person writes an example and learns whether the model was fooled."""

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
from annotation.aids.saliency import measure_saliency
from annotation.attempts import services
from annotation.attempts.conversation_services import save_unsent_text
from annotation.attempts.failures import FAILURES, NO_ANSWER
from annotation.attempts.services import ask_targets
from annotation.care.services import (
    check_rested,
    get_care,
    note_answered,
    note_passed_by,
    note_shown,
)
from annotation.care.views import show_care
from annotation.context_picking.services import (
    assign,
    assign_next,
    begin_with_saved_text,
    pass_gate,
    save_draft,
)
from annotation.models import Assignment, Attempt, Example
from annotation.moderation import report_context
from annotation.open_round import describe_closed_round, find_round_to_begin, find_round_to_write
from annotation.refusals import CapReached, NoContext, StaleForm
from annotation.rules.care import STOPS
from annotation.rules.near_duplicates import get_written_text
from annotation.rules.typing_evidence import read_typing_evidence
from annotation.selectors import find_unanswered, has_begun
from annotation.writing import page
from annotation.writing.forms import ComponentForm, ReportForm, is_of_another, read_typed_values
from annotation.writing.page import WritePage
from annotation.writing.result_panel import list_given_fields, list_why_components
from annotation.writing.uploads import LARGEST_BODY, receive_form
from core.accounts.models import Annotator
from core.accounts.services import annotator_of
from core.data.prepared import PreparedRead, Slot
from core.errors import Refused
from core.web.bodies import takes
from core.web.htmx import htmx_partial, render_page
from core.web.kept_text import KeptText, forget_text, kept_text
from tasks.access import ALL_KINDS, find_task
from tasks.models import Round, Task
from tasks.permissions import can_see
from tasks.targets.endpoints.base import EndpointError

# `for` of the gate's address; pages of later stages are known here by their names only.
AFTER_GATE = {
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
LONGEST_ID = 19
"""Digits of a number that no id reaches, nor does the database take it."""


def render_refusal(request: HttpRequest, error: Refused, task: Task) -> HttpResponse:
    """Show the reason why the person cannot write, and what to do instead."""
    values = {"task": task, "message": str(error), "code": error.code}
    status = 200 if isinstance(error, NoContext) else error.status
    return render_page(request, "annotation/refused.html", values, part="panel", status=status)


def gate(request: HttpRequest, code: str) -> HttpResponse:
    """Show a sensitive task's content warning; POST accepts it."""
    task = find_task(request, code, kinds=ALL_KINDS)
    first = "battle" if task.config.kind == "arena" else ""
    next_page = AFTER_GATE.get(request.GET.get("for", first), "annotation:write")
    if request.method == "POST":
        if request.user.is_authenticated:
            pass_gate(annotator=require_annotator(request, task, can_see), task=task)
        else:
            # Without an account there is no annotator to store it for.
            request.session[f"gate-{task.pk}"] = True
        return redirect(next_page, code=code)
    return render(request, "annotation/gate.html", {"task": task, "wanted": next_page})


gate = login_not_required(require_http_methods(["GET", "POST"])(gate))


@takes(LARGEST_BODY)
@require_http_methods(["GET", "POST"])
def write(request: HttpRequest, code: str) -> HttpResponse:
    """Write one example against the round's targets."""
    task = find_task(request, code)
    annotator = require_annotator(request, task)
    if is_gate_shut(request, task):
        return redirect("annotation:gate", code=code)
    if request.method == "POST":
        return _submit(request, task, annotator)
    if (care := get_care(annotator, task)).rest in STOPS:
        return show_care(request, task, care)
    # From here on a text is in view, so its time begins.
    note_shown(annotator=annotator, task=task)
    round = find_round_to_write(task, annotator)
    if round is None:
        values = {"task": task, "message": _("No round is open.")}
        return render(request, "annotation/refused.html", values)
    # Whoever has begun a text still finds it while the round is paused.
    if round.state == Round.State.PAUSED and not has_begun(annotator, round):
        values = {"task": task, "code": "paused", "message": describe_closed_round(round)}
        return render(request, "annotation/refused.html", values)
    try:
        assignment = assign(annotator=annotator, round=round)
    except Refused as error:
        return render_refusal(request, error, task)
    text = kept_text(request)
    is_used = bool(text and text.task == task.code and _take_kept(request, assignment, text))
    opened = request.GET.get("support", "")
    write_page = WritePage.of(assignment, _find_retried_example(request, assignment), opened)
    response = page.render_write_page(request, write_page)
    if is_used:
        forget_text(response)
    return response


def _take_kept(request: HttpRequest, assignment: Assignment, text: KeptText) -> bool:
    """Load a text from practice into the form; return False if another text was begun."""
    if assignment.draft or assignment.parent_id or assignment.mends_id:
        return False
    try:
        begin_with_saved_text(assignment=assignment, goal=text.goal, inputs=text.inputs)
    except Refused:
        return False  # the page says why nobody writes now; the browser keeps the text
    messages.success(request, _("Your text is filled in. Submit it to make it count."))
    return True


def _find_retried_example(request: HttpRequest, assignment: Assignment) -> Example | None:
    """Return the person's example to edit, if it is about the current context."""
    own_examples = Example.objects.filter(
        annotator=assignment.annotator_id, context=assignment.context_id
    )
    try:
        return own_examples.filter(uuid=UUID(request.GET.get("retry", ""))).first()
    except ValueError:
        return None


def _submit(request: HttpRequest, task: Task, annotator: Annotator) -> HttpResponse:
    """Check the form, ask the targets and show the verdict."""
    assignment = posted_assignment(request, annotator, task)
    write_page = WritePage.of(assignment)
    form = write_page.form(*receive_form(request, task, annotator))
    if not form.is_valid():
        return page.render_write_page(request, write_page, form=form, status=422)
    data = form.cleaned_data
    try:
        # Checked before anything is stored: the text stays in the form, to be sent after the break.
        check_rested(annotator, task)
        # The page was opened before another tab took another context.
        if form.is_of_another:
            raise StaleForm(_("You wrote this for another text. Check that it fits this one."))
        # The text would be compared with a goal that its author did not see.
        if data["goal"] != assignment.goal:
            raise StaleForm(_("Your goal has changed since you opened this page."))
        attempt, is_mine = services.begin_attempt(
            annotator=annotator,
            assignment=assignment,
            key=data["attempt_key"],
            inputs=form.inputs,
            parent=_own_example(annotator, data["parent"]),
            typing=read_typing_evidence(
                request.POST, len(get_written_text(task.config, form.inputs))
            ),
            takes_challenge=form.takes_challenge,
        )
    except Refused as error:
        return page.show_refused(request, write_page, error, form)
    if is_mine:
        note_answered(annotator=annotator, task=task)
        attempt = ask_targets(attempt)
    # So that reloading the page does not submit the text once more.
    if attempt.state == Attempt.State.DONE and not htmx_partial(request):
        return redirect("annotation:attempt", uuid=attempt.uuid)
    return page.show_attempt(request, write_page, attempt, is_new=is_mine)


def posted_assignment(request: HttpRequest, annotator: Annotator, task: Task) -> Assignment:
    """Return the person's assignment to which the form belongs. Raises Http404 for others."""
    pk = request.POST.get("assignment", "")
    assignment = (
        POSTED_ASSIGNMENT.first(pk=int(pk)) if pk.isdecimal() and len(pk) < LONGEST_ID else None
    )
    if assignment is None:
        raise Http404
    # The same answer as for an id that is not there, so that ids tell nothing.
    if (assignment.annotator_id, assignment.round.task_id) != (annotator.pk, task.pk):
        raise Http404
    assignment.annotator, assignment.round.task = annotator, task  # known, so not read again
    return assignment


def _own_example(annotator: Annotator, uuid: UUID | None) -> Example | None:
    return Example.objects.filter(annotator=annotator, uuid=uuid).first() if uuid else None


@require_POST
def write_next(request: HttpRequest, code: str) -> HttpResponse:
    """Assign another context, another goal, or another person's example to change."""
    task = find_task(request, code)
    annotator = require_annotator(request, task)
    if is_gate_shut(request, task):
        return redirect("annotation:gate", code=code)
    # On the next page nothing would remind the author of the question.
    if open_question := find_unanswered(annotator, task):
        return _ask_first(request, open_question)
    note_passed_by(annotator=annotator, task=task)
    if (care := get_care(annotator, task)).rest in STOPS:
        return show_care(request, task, care)
    wish = request.POST.get("want", "")
    want = wish if wish in ("goal", "edit") else "context"
    round = find_round_to_begin(task, annotator)
    try:
        assignment = assign_next(annotator=annotator, round=round, want=want)
    except Refused as error:
        return render_refusal(request, error, task)
    if not htmx_partial(request):
        return redirect("annotation:write", code=code)
    return render_page(request, page.TEMPLATE, WritePage.of(assignment).values(), part="work")


def _ask_first(request: HttpRequest, example: Example) -> HttpResponse:
    """Show the example that the author has not answered about, instead of a new form."""
    if not htmx_partial(request):
        messages.info(request, _("Answer this question first, or retract the example."))
        return redirect("annotation:attempt", uuid=example.uuid)
    write_page, example = _get_page_and_example(request, example.uuid)
    values = {**write_page.values(), **page.build_result_panel(example)}
    return render_page(request, page.TEMPLATE, values, part="work")


@require_POST
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Save a draft. Never shows an error, because a script sends it automatically."""
    assignment = get_object_or_404(
        Assignment.objects.select_related("round__task", "context"),
        pk=pk,
        annotator=annotator_of(request.user),  # type: ignore[arg-type]
    )
    if (text := request.POST.get("say")) is not None:
        save_unsent_text(assignment=assignment, text=text)
    else:
        config, context = assignment.round.task.config, assignment.context.fields
        # A text that was typed for another assignment must not become the draft of this one.
        if not is_of_another(config, request.POST, assignment.pk):
            save_draft(
                assignment=assignment, inputs=read_typed_values(config, context, request.POST)
            )
    values = {"round": assignment.round, "is_part": True}
    return render(request, "annotation/_draft_saved.html", values)


def _own_attempt(request: HttpRequest, uuid: UUID) -> Attempt:
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
        annotator=annotator_of(request.user),  # type: ignore[arg-type]
    )


def attempt_detail(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Show an attempt: its verdict, or that the model is still being asked."""
    attempt = services.expire_attempt(attempt=_own_attempt(request, uuid))
    write_page, is_polled = WritePage.of(attempt.assignment), htmx_partial(request)
    return page.show_attempt(request, write_page, attempt, is_polled=is_polled)


def _get_page_and_example(request: HttpRequest, uuid: UUID) -> tuple[WritePage, Example]:
    """Return the page and the person's own stored example."""
    attempt = _own_attempt(request, uuid)
    if attempt.example is None:
        raise Http404
    return WritePage.of(attempt.assignment).showing(attempt), attempt.example


@require_POST
def attempt_answer(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Store whether the author finds the model's answer acceptable."""
    write_page, example = _get_page_and_example(request, uuid)
    if request.POST.get("model_right") not in ("yes", "no"):
        return page.render_write_page(
            request, write_page, page.build_result_panel(example), status=422
        )
    try:
        right = request.POST["model_right"] == "yes"
        services.answer_undecided(example=example, model_right=right)
    except Refused:
        pass  # answered before: show what was decided then
    if not htmx_partial(request):
        return redirect("annotation:attempt", uuid=uuid)
    # The service changes a locked copy of the row.
    example.refresh_from_db(fields=["outcome", "decided_by"])
    return page.render_write_page(request, write_page, page.build_result_panel(example))


@require_POST
def attempt_why(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Store why the label is right and why a model might miss it."""
    write_page, example = _get_page_and_example(request, uuid)
    questions = list_why_components(write_page.task.config, example.outcome, example.inputs)
    form = ComponentForm(questions, request.POST, context=write_page.context.fields)
    if form.is_valid():
        services.store_explanation(example=example, metadata=form.inputs)
        if not htmx_partial(request):
            return redirect(reverse("annotation:attempt", args=[uuid]) + "#why")
    values = {
        **write_page.values(),
        **page.build_result_panel(example),
        "why_form": form,
        "why_saved": form.is_valid(),
    }
    return render_page(
        request, page.TEMPLATE, values, part="why", status=200 if form.is_valid() else 422
    )


@require_http_methods(["GET", "POST"])
def attempt_retract(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Ask for confirmation, then retract an example."""
    write_page, example = _get_page_and_example(request, uuid)
    if request.method == "GET":
        return render(
            request, "annotation/retract.html", {"example": example, "task": write_page.task}
        )
    try:
        example = services.retract_example(example=example)
    except Refused as error:
        return page.show_refused(request, write_page, error)
    if not htmx_partial(request):
        return redirect("annotation:attempt", uuid=uuid)
    return page.render_write_page(request, write_page, page.build_result_panel(example))


@require_http_methods(["GET", "POST"])
def context_report(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the form to report an assigned context, and store the report."""
    context, annotator = find_assigned_context(request, pk)
    form = ReportForm(request.POST or None)
    task = context.round.task
    values = {
        "form": form, "context": context, "task": task,
        "given": list_given_fields(task.config, context),
    }  # fmt: skip
    if request.method == "POST" and form.is_valid():
        report_context(annotator=annotator, context=context, **form.cleaned_data)
        return render_page(
            request, "annotation/report.html", {**values, "sent": True}, part="report"
        )
    status = 422 if request.method == "POST" else 200
    return render_page(request, "annotation/report.html", values, part="report", status=status)


@require_POST
def attempt_saliency(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Show which words mattered to the first target, which is asked again without each."""
    write_page, example = _get_page_and_example(request, uuid)
    values = {**write_page.values(), **page.build_result_panel(example), "saliency_asked": True}
    status = 200
    try:
        words = measure_saliency(example, write_page.text_field)
        top = sorted(words, key=lambda word: -word.drop)[:5]
        values |= {"saliency": words, "saliency_top": top}
    except EndpointError as error:
        status = 503
        values["saliency_failed"] = _(FAILURES.get(error.reason, NO_ANSWER))
    except CapReached as error:
        status, values["saliency_failed"] = error.status, str(error)
    return render_page(request, page.TEMPLATE, values, part="saliency", status=status)
