"""The pages on which people judge what others wrote."""

import functools
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import UUIDField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotation.access import is_gate_shut, require_annotator
from annotation.care.services import check_rested, get_care, note_answered, note_shown
from annotation.care.views import show_care
from annotation.models import Example
from annotation.rules.care import STOPS
from core.accounts.models import Annotator
from core.accounts.places import keep_place
from core.accounts.services import annotator_of
from core.data.prepared import PreparedRead, Slot
from core.errors import Refused
from core.web.htmx import form_status, htmx_partial, render_page
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_enter_judging
from validation.judging import blind, gold, pace, page, services
from validation.judging.forms import AfterForm
from validation.models import GoldAnswer, Validation

BREAK_MINUTES = 45  # tasks with a warning have limits of their own
AWAY_MINUTES = 20
NAMED = PreparedRead(
    lambda: Example.objects.select_related("round", "context").filter(
        uuid=Slot("uuid", UUIDField()), round__task=Slot("task")
    )
)


def _gate(task: Task) -> HttpResponse:
    return redirect(reverse("annotation:gate", args=[task.code]) + "?for=judge")


def _example(request: HttpRequest, task: Task) -> Example:
    """Return the example that a form names."""
    try:
        uuid = UUID(request.POST.get("example", ""))
    except ValueError:
        raise Http404 from None
    example = NAMED.first(uuid=uuid, task=task.pk)
    if example is None:
        raise Http404
    example.round.task = task
    return example


def _show_next(
    request: HttpRequest,
    task: Task,
    validator: Annotator,
    status_words: str = "",
    *,
    status: int = 200,
    **forms: Any,
) -> HttpResponse:
    """Show the judge page with its next example.

    status_words: the status line; by default, that the answer is saved.
    """
    # Before an example is leased, which nobody else could judge during the break.
    if (care := get_care(validator, task)).rest in STOPS:
        return show_care(request, task, care, status=status)
    note_shown(annotator=validator, task=task)
    # Storing a vote has checked it in this request.
    is_checked = forms.get("saved") is not None
    session = services.open_session(validator=validator, task=task, is_checked=is_checked)
    values = page.page_values(session, **forms)
    # So that the confirmed address leads back to this page.
    if values.get("unconfirmed"):
        keep_place(request)
    status_words = status_words or (
        page.saved_words(values["judged"]) if forms.get("saved") else ""
    )
    values |= {"said": status_words, "break_minutes": _break_minutes(request, task), "care": care}
    return render_page(request, "validation/judge.html", values, part="work", status=status)


def _break_minutes(request: HttpRequest, task: Task) -> int:
    """Return the minutes since the person began, if a break is due; else 0.

    The session is written only when they begin, when a break is offered and after an absence.
    """
    # There the care of the task has breaks of its own.
    if task.is_sensitive:
        return 0
    key, now, limit = f"judging-{task.pk}", int(time.time()), BREAK_MINUTES
    minutes = (now - request.session.get(key, 0)) // 60
    if minutes < limit:
        return 0
    request.session[key] = now
    # A longer absence was a break already.
    return limit if minutes < limit + AWAY_MINUTES else 0


def _go_on(
    request: HttpRequest,
    task: Task,
    validator: Annotator,
    status_words: str = "",
    saved_answer: Validation | GoldAnswer | None = None,
) -> HttpResponse:
    """Show the next example in the same response, or redirect without htmx.

    Confirms the saved answer.
    """
    if htmx_partial(request):
        return _show_next(request, task, validator, status_words, saved=saved_answer)
    judged = page.judged_today(validator, task, gold.gold_answers(validator, task))
    messages.success(request, status_words or page.saved_words(judged))
    return redirect("validation:judge", code=task.code)


def _for_validators(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Call the view with the task and a validator who may judge it.

    A refusal is shown above the next example.
    """

    @functools.wraps(view)
    def entered(request: HttpRequest, code: str) -> HttpResponse:
        task = find_task(request, code)
        validator = require_annotator(request, task, can_enter_judging)
        if is_gate_shut(request, task):
            return _gate(task)
        try:
            # A GET shows the break by itself (`_show_next`); only work is refused.
            if request.method == "POST":
                check_rested(validator, task)
            return view(request, task, validator)
        except Refused as error:
            return _show_next(request, task, validator, str(error), status=error.status)

    return entered


@require_http_methods(["GET", "POST"])
@_for_validators
def judge(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Show one example to judge blindly; a POST stores the answer and shows the next example."""
    if request.method == "GET":
        return _show_next(request, task, validator)
    example = _example(request, task)
    form = page.vote_form(task.config, example, request.POST)
    if not form.is_valid():
        return _show_next(request, task, validator, form=form, status=422)
    if form.vote.verdict == "flagged":  # the "no" to an attempt; it needs a reason
        return _show_next(request, task, validator, flag_form=page.flag_form(example, None))
    vote = services.cast_validation(validator=validator, example=example, vote=form.vote)
    note_answered(annotator=validator, task=task)
    return _after_or_next(request, task, validator, vote)


def _after_or_next(
    request: HttpRequest, task: Task, validator: Annotator, vote: Validation | GoldAnswer
) -> HttpResponse:
    """Show the step after this vote if there is one, or else the next example."""
    config = task.config
    if blind.asks_reveal(config, vote) or blind.questions(config, vote, vote.example):
        if not htmx_partial(request):
            return redirect("validation:after", uuid=vote.example.uuid)
        return _show_after(request, task, vote, page.after_form(vote))
    return _go_on(request, task, validator, saved_answer=vote)


@require_POST
@_for_validators
def flag(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Flag an example that should not be judged; a flag is also a vote."""
    example = _example(request, task)
    form = page.flag_form(example, request.POST)
    if not form.is_valid():
        return _show_next(request, task, validator, flag_form=form, status=422)
    try:
        services.cast_validation(validator=validator, example=example, **form.said)
    # The form keeps what was typed, as the same flag can be sent a second later.
    except pace.TooSoon as error:
        filled_form, status = page.flag_form(example, request.POST), error.status
        return _show_next(
            request, task, validator, str(error), flag_form=filled_form, status=status
        )
    note_answered(annotator=validator, task=task)
    return _go_on(request, task, validator, _("Thank you. The task owner will look at it."))


@require_POST
@_for_validators
def skip(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Skip an example permanently."""
    services.skip_example(validator=validator, example=_example(request, task))
    note_answered(annotator=validator, task=task)
    return _go_on(request, task, validator, _("Skipped. It will not come back."))


@require_POST
@_for_validators
def refresher(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Record that the person has read the refresher, and resume judging."""
    gold.finish_refresher(validator=validator, task=task)
    return _go_on(request, task, validator, _("Thank you. Here is your next example."))


def _own_vote(request: HttpRequest, uuid: UUID) -> tuple[Annotator, Validation | GoldAnswer]:
    """Return the signed-in person, and their vote or gold answer on an example."""
    validator = annotator_of(request.user)  # type: ignore[arg-type]
    return validator, page.own_vote(validator, uuid)


@require_POST
def undo(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Undo one's own answer and show its example again."""
    validator, vote = _own_vote(request, uuid)
    task = vote.example.round.task
    try:
        services.undo_validation(validator=validator, validation=vote)
    except Refused as error:
        return _show_next(request, task, validator, str(error), status=error.status)
    return _go_on(request, task, validator, _("Your answer was taken back."))


def _show_after(
    request: HttpRequest, task: Task, vote: Validation | GoldAnswer, form: AfterForm
) -> HttpResponse:
    undo = None if blind.is_final(vote, task) else vote
    values = {"task": task, "undo": undo, "example": vote.example, "form": form}
    if form.reveals:
        values.update(page.describe_revealed(task.config, vote))
    status = form_status(form)
    return render_page(request, "validation/after.html", values, part="work", status=status)


@require_http_methods(["GET", "POST"])
def after(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Show the step after the vote, with the author's label if the task reveals it."""
    validator, vote = _own_vote(request, uuid)
    task = vote.example.round.task
    if is_gate_shut(request, task):
        return _gate(task)
    if request.method == "GET":
        return _show_after(request, task, vote, page.after_form(vote))
    form = page.after_form(vote, request.POST)
    if not form.is_valid():
        return _show_after(request, task, vote, form)
    services.answer_afterwards(validation=vote, reveal=form.revealed, metadata=form.inputs)
    return _go_on(request, task, validator, saved_answer=vote)
