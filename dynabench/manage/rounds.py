"""The owners' pages about rounds: all of them, their plans, and each change of state."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import person
from core.errors import Refused
from core.web.htmx import htmx_partial, render_page
from core.web.refusals import as_form_error, as_message
from dynabench.manage.access import build_attention_values, find_owned_round, find_owned_task
from dynabench.manage.round_cards import State, build_round_cards, describe_closing
from evaluation.dataset_releases.tools import select_tools
from tasks.models import Round, Task
from tasks.permissions import can_edit, can_oversee, can_own
from tasks.rounds.forms import ReplaceForm, RoundForm
from tasks.rounds.loop import replace_target
from tasks.rounds.opening_services import cancel_opening, change_state
from tasks.rounds.services import change_round, delete_round, plan_round
from tasks.rounds.states import close_if_due
from tasks.rounds.steps import build_step, find_state

TEMPLATE = "own/rounds.html"
STATE_MESSAGES: dict[str, str] = {
    State.DRAFT: gettext_noop("Round %(number)d is a draft now."),
    State.READY: gettext_noop("Round %(number)d is ready to be opened."),
    State.OPEN: gettext_noop("Round %(number)d is open now."),
    State.PAUSED: gettext_noop("Round %(number)d is paused now."),
    State.CLOSED: gettext_noop("Round %(number)d is closed now."),
    State.RELEASED: gettext_noop("Round %(number)d is released now."),
}


@require_safe
def rounds_page(request: HttpRequest, code: str) -> HttpResponse:
    """Show all rounds with their numbers and possible actions."""
    task = find_owned_task(request, code, can_oversee)
    for round in task.rounds.filter(state=State.OPEN):
        close_if_due(round=round)  # so that the page never shows a round as open after its end
    values = {"task": task, "cards": build_round_cards(task), "tools": select_tools(task)}
    # What members see depends on their role; the numbers do not.
    values |= _list_rights(request, task) | build_attention_values(request, task)
    return render(request, TEMPLATE, values)


def _list_rights(request: HttpRequest, task: Task) -> dict[str, bool]:
    editor = can_edit(request.user, task)
    return {"can_edit": editor, "can_own": editor and can_own(request.user, task)}


@require_http_methods(["GET", "POST"])
def round_create(request: HttpRequest, code: str) -> HttpResponse:
    """Plan the next round."""
    task = find_owned_task(request, code, can_edit)
    form = RoundForm(request.POST or None, task=task)
    if form.is_valid():
        with as_form_error(form):
            planned_round = plan_round(task=task, actor=person(request), **form.plan)
            message = _("Round %(number)d is planned. It is a draft.") % {
                "number": planned_round.number
            }
            messages.success(request, message)
            return redirect(_build_url(planned_round))
    return _show_form(request, form, {"task": task})


@require_http_methods(["GET", "POST"])
def round_edit(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the form for a round's plan. A POST changes the plan."""
    round = find_owned_round(request, code, number, can_edit)
    form = RoundForm(request.POST or None, task=round.task, instance=round)
    if form.is_valid():
        with as_form_error(form):
            changed_round = change_round(round=round, actor=person(request), **form.plan)
            # Limits that are reached already close it at once.
            message = " ".join(
                (
                    _("The plan of round %(number)d is saved."),
                    _(STATE_MESSAGES[changed_round.state]),
                )
            )
            messages.success(request, message % {"number": number})
            return redirect(_build_url(round))
    return _show_form(request, form, {"task": round.task, "round": round})


def _show_form(request: HttpRequest, form: RoundForm, values: dict[str, Any]) -> HttpResponse:
    """Show the form, with status 422 if it was submitted with errors."""
    status = 422 if form.is_bound else 200
    return render(request, "own/round_form.html", {**values, "form": form}, status=status)


@require_http_methods(["GET", "POST"])
def round_replace(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Replace a target of a round that has no examples."""
    round = find_owned_round(request, code, number, can_edit)
    form = ReplaceForm(request.POST or None, round=round)
    status = 422 if form.is_bound else 200
    if form.is_valid():
        status = 409  # where the service refuses what the form takes
        with as_form_error(form):
            replace_target(round=round, actor=person(request), **form.cleaned_data)
            words = {"number": number, "target": form.cleaned_data["new"].name}
            messages.success(request, _("Round %(number)d asks %(target)s now.") % words)
            return redirect(_build_url(round))
    values = {"task": round.task, "round": round, "form": form}
    return render(request, "own/round_replace.html", values, status=status)


@require_http_methods(["GET", "POST"])
def round_delete(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Ask for confirmation to delete a round without examples. A POST deletes it."""
    round = find_owned_round(request, code, number, can_own)
    if request.method == "POST":
        with as_message(request):
            delete_round(round=round, actor=person(request))
            messages.success(request, _("Round %(number)d is deleted.") % {"number": number})
        return redirect("own:rounds", code)
    return render(request, "own/round_delete.html", {"task": round.task, "round": round})


@require_http_methods(["GET", "POST"])
def round_change(request: HttpRequest, code: str, number: int, action: str) -> HttpResponse:
    """Ask for confirmation to change the round's state. A POST changes it."""
    state = find_state(action)
    if state is None:
        raise Http404
    round = find_owned_round(request, code, number, can_edit)
    if request.method == "GET" and round.state == state:
        # A reload of the page after the change would ask again.
        return redirect(_build_url(round))
    error = ""
    if request.method == "POST":
        try:
            # Asks the targets first where it opens, outside of any transaction.
            change_state(round=round, state=state, actor=person(request))
            return _show_changed_round(request, round)
        except Refused as refused:
            error = str(refused)
    change = build_step(state, round)
    effect = change.effect
    if state == State.CLOSED:
        effect = describe_closing(round)  # with numbers
    values = {"task": round.task, "round": round, "step": change, "effect": effect, "error": error}
    status = 409 if error else 200  # the page says what to do first
    return render_page(request, "own/round_change.html", values, part="ask", status=status)


@require_POST
def round_stay(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Cancel the opening of a round that waits for its targets."""
    round = find_owned_round(request, code, number, can_edit)
    cancel_opening(round=round, actor=person(request))
    return _show_changed_round(request, round)


def _show_changed_round(request: HttpRequest, round: Round) -> HttpResponse:
    """Show the changed round's card. Responds to htmx with only the card."""
    # Read again: a worker may have changed it too, such as its opening.
    (card,) = build_round_cards(round.task, round.number)
    sentence = _(STATE_MESSAGES[card.round.state])
    if card.round.opening_since:
        sentence = _("Round %(number)d opens when its target is ready.")
    message = sentence % {"number": round.number}
    if not htmx_partial(request):
        messages.success(request, message)
        return redirect(_build_url(round))
    rights = _list_rights(request, round.task)
    values = {"task": round.task, "card": card, "tools": select_tools(round.task), "said": message}
    values |= rights
    return render_page(request, TEMPLATE, values, part="card")


def _build_url(round: Round) -> str:
    return reverse("own:rounds", args=[round.task.code]) + f"#round-{round.number}"
