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
from annotation.care.services import check_rested, get_care, record_text_answered, record_text_shown
from annotation.care.views import show_care
from annotation.models import Example
from annotation.rules.care import STOPPING_RESTS
from core.accounts.models import Annotator
from core.accounts.return_page import remember_return_page
from core.accounts.services import get_annotator
from core.data.prepared import PreparedRead, Slot
from core.errors import Refused
from core.web.htmx import get_form_status, is_htmx_partial, render_page
from tasks.access import find_task
from tasks.config.judging import STEPS_KEY
from tasks.models import Task
from tasks.permissions import can_enter_judging
from validation.judging import after_services, blind, gold_pause, pace, page, services
from validation.judging.forms import AfterVoteForm
from validation.models import GoldAnswer, Validation

BREAK_MINUTES = 45  # tasks with a warning have limits of their own
AWAY_MINUTES = 20
FORM_EXAMPLE = PreparedRead(
    lambda: Example.objects.select_related("round", "context").filter(
        uuid=Slot("uuid", UUIDField()), round__task=Slot("task")
    )
)


def _redirect_to_gate(task: Task) -> HttpResponse:
    return redirect(reverse("annotation:gate", args=[task.code]) + "?for=judge")


def _get_example(request: HttpRequest, task: Task) -> Example:
    """Return the example that a form names. Raises Http404."""
    try:
        uuid = UUID(request.POST.get("example", ""))
    except ValueError:
        raise Http404 from None
    example = FORM_EXAMPLE.first(uuid=uuid, task=task.pk)
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
    """Show the judge page with its next example, or the break page if the person must rest.

    status_words: the status line; by default, that the answer is saved.
    """
    # Before leasing an example, which nobody else could judge during the break.
    if (care := get_care(validator, task)).rest in STOPPING_RESTS:
        return show_care(request, task, care, status=status)
    record_text_shown(annotator=validator, task=task)
    # This request has already checked it when it stored the vote.
    is_checked = forms.get("saved_answer") is not None
    session = services.open_session(validator=validator, task=task, is_checked=is_checked)
    values = page.build_page_values(session, **forms)
    # So that the confirmed address leads back to this page.
    if values.get("unconfirmed"):
        remember_return_page(request)
    status_words = status_words or (
        page.describe_saved_answer(values["judged"]) if forms.get("saved_answer") else ""
    )
    values |= {
        "said": status_words,
        "break_minutes": _find_break_minutes(request, task),
        "care": care,
    }
    return render_page(request, "validation/judge.html", values, block_name="work", status=status)


def _find_break_minutes(request: HttpRequest, task: Task) -> int:
    """Return the minutes since the person began, if a break is due; else 0.

    The session is written only when they begin, when a break is offered and after an absence.
    """
    # Such tasks have breaks of their own (`annotation/care`).
    if task.is_sensitive:
        return 0
    key, now, limit = f"judging-{task.pk}", int(time.time()), BREAK_MINUTES
    minutes = (now - request.session.get(key, 0)) // 60
    if minutes < limit:
        return 0
    request.session[key] = now
    # A longer absence was already a break.
    return limit if minutes < limit + AWAY_MINUTES else 0


def _continue_judging(
    request: HttpRequest,
    task: Task,
    validator: Annotator,
    status_words: str = "",
    saved_answer: Validation | GoldAnswer | None = None,
) -> HttpResponse:
    """Show the next example: as a partial for an htmx request, otherwise by a redirect.

    Also displays a confirmation that the answer was saved.
    """
    if is_htmx_partial(request):
        return _show_next(request, task, validator, status_words, saved_answer=saved_answer)
    judged_count = page.count_judgements_today(
        validator, task, gold_pause.list_gold_answers(validator, task)
    )
    messages.success(request, status_words or page.describe_saved_answer(judged_count))
    return redirect("validation:judge", code=task.code)


def _require_validator(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view so that it gets the task and a validator who may enter judging.

    Redirects to the content warning if needed. A refusal is shown above the next example.
    """

    @functools.wraps(view)
    def wrapper(request: HttpRequest, code: str) -> HttpResponse:
        task = find_task(request, code)
        validator = require_annotator(request, task, can_enter_judging)
        if is_gate_shut(request, task):
            return _redirect_to_gate(task)
        try:
            # A GET shows the break itself (`_show_next`); only work is refused.
            if request.method == "POST":
                check_rested(validator, task)
            return view(request, task, validator)
        except Refused as error:
            return _show_next(request, task, validator, str(error), status=error.status)

    return wrapper


@require_http_methods(["GET", "POST"])
@_require_validator
def judge_example(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Show one example to judge blindly; a POST stores the answer and shows the next example."""
    if request.method == "GET":
        return _show_next(request, task, validator)
    example = _get_example(request, task)
    form = page.build_vote_form(task.config, example, request.POST)
    if not form.is_valid():
        return _show_next(request, task, validator, form=form, status=422)
    if form.vote.verdict == "flagged":  # the "no" for an attempt, which needs a reason
        return _show_next(request, task, validator, flag_form=page.build_flag_form(example, None))
    metadata = {STEPS_KEY: form.steps} if form.steps else {}
    vote = services.cast_validation(
        validator=validator,
        example=example,
        vote=form.vote,
        judgements=form.judgements,
        metadata=metadata,
    )
    record_text_answered(annotator=validator, task=task)
    return _render_after_or_next(request, task, validator, vote)


def _render_after_or_next(
    request: HttpRequest, task: Task, validator: Annotator, vote: Validation | GoldAnswer
) -> HttpResponse:
    """Show the step after this vote if there is one, or else the next example."""
    config = task.config
    if blind.should_reveal_label(config, vote) or blind.list_questions(config, vote, vote.example):
        if not is_htmx_partial(request):
            return redirect("validation:after", uuid=vote.example.uuid)
        return _show_after(request, task, vote, page.build_after_form(vote))
    return _continue_judging(request, task, validator, saved_answer=vote)


@require_POST
@_require_validator
def flag_example(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Flag an example that should not be judged; a flag is also a vote."""
    example = _get_example(request, task)
    form = page.build_flag_form(example, request.POST)
    if not form.is_valid():
        return _show_next(request, task, validator, flag_form=form, status=422)
    try:
        services.cast_validation(validator=validator, example=example, **form.vote_arguments)
    # The form keeps the typed text, because the same flag can be sent a second later.
    except pace.TooSoon as error:
        filled_form, status = page.build_flag_form(example, request.POST), error.status
        return _show_next(
            request, task, validator, str(error), flag_form=filled_form, status=status
        )
    record_text_answered(annotator=validator, task=task)
    return _continue_judging(
        request, task, validator, _("Thank you. The task's owners will look at your report.")
    )


@require_POST
@_require_validator
def skip_example(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Skip an example permanently."""
    services.skip_example(validator=validator, example=_get_example(request, task))
    record_text_answered(annotator=validator, task=task)
    return _continue_judging(
        request, task, validator, _("Example skipped. You won't see it again.")
    )


@require_POST
@_require_validator
def finish_refresher(request: HttpRequest, task: Task, validator: Annotator) -> HttpResponse:
    """Record that the person has read the refresher, and resume judging."""
    gold_pause.finish_refresher(validator=validator, task=task)
    return _continue_judging(request, task, validator, _("Thank you. Here is your next example."))


def _find_own_vote(request: HttpRequest, uuid: UUID) -> tuple[Annotator, Validation | GoldAnswer]:
    """Return the signed-in person, and their vote or gold answer on an example."""
    validator = get_annotator(request.user)  # type: ignore[arg-type]
    return validator, page.find_own_vote(validator, uuid)


@require_POST
def undo_answer(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Undo one's own answer and show its example again."""
    validator, vote = _find_own_vote(request, uuid)
    task = vote.example.round.task
    try:
        services.undo_validation(validator=validator, validation=vote)
    except Refused as error:
        return _show_next(request, task, validator, str(error), status=error.status)
    return _continue_judging(request, task, validator, _("Answer withdrawn."))


def _show_after(
    request: HttpRequest, task: Task, vote: Validation | GoldAnswer, form: AfterVoteForm
) -> HttpResponse:
    undo = None if blind.is_final(vote, task) else vote
    values = {"task": task, "undo": undo, "example": vote.example, "form": form}
    if form.has_reveal:
        values.update(page.describe_revealed_answer(task.config, vote))
    status = get_form_status(form)
    return render_page(request, "validation/after.html", values, block_name="work", status=status)


@require_http_methods(["GET", "POST"])
def show_after_vote(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Show the step after the vote, with the author's label if the task reveals it."""
    validator, vote = _find_own_vote(request, uuid)
    task = vote.example.round.task
    if is_gate_shut(request, task):
        return _redirect_to_gate(task)
    if request.method == "GET":
        return _show_after(request, task, vote, page.build_after_form(vote))
    form = page.build_after_form(vote, request.POST)
    if not form.is_valid():
        return _show_after(request, task, vote, form)
    after_services.store_answers_after_vote(
        validation=vote, reveal_answers=form.reveal_answers, metadata=form.inputs
    )
    return _continue_judging(request, task, validator, saved_answer=vote)
