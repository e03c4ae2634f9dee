"""The owners' pages about rounds: all of them, their plans, and each change of state."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import person
from core.errors import Refused
from core.web.htmx import htmx_partial, render_page
from core.web.refusals import as_form_error, as_message
from dynabench.manage.access import owned_round, owned_task, waiting
from dynabench.manage.round_cards import STEPS, State, cards, closing, step
from evaluation.releases.tools import tools_for
from tasks.models import Round, Task
from tasks.permissions import can_edit, can_oversee, can_own
from tasks.rounds.forms import ReplaceForm, RoundForm
from tasks.rounds.loop import replace_target
from tasks.rounds.opening_services import cancel_opening, change_state
from tasks.rounds.services import change_round, delete_round, plan_round
from tasks.rounds.states import close_if_due

PAGE = "own/rounds.html"


@require_safe
def rounds(request: HttpRequest, code: str) -> HttpResponse:
    """Show all rounds, what they have collected, and what can be done with them."""
    task = owned_task(request, code, can_oversee)
    for round in task.rounds.filter(state=State.OPEN):
        close_if_due(round=round)
    values = {"task": task, "cards": cards(task), "tools": tools_for(task)}
    values |= _rights(request, task) | waiting(request, task)
    return render(request, PAGE, values)


def _rights(request: HttpRequest, task: Task) -> dict[str, bool]:
    editor = can_edit(request.user, task)
    return {"can_edit": editor, "can_own": editor and can_own(request.user, task)}


@require_http_methods(["GET", "POST"])
def round_create(request: HttpRequest, code: str) -> HttpResponse:
    """Plan the next round."""
    task = owned_task(request, code, can_edit)
    form = RoundForm(request.POST or None, task=task)
    if form.is_valid():
        with as_form_error(form):
            made = plan_round(task=task, actor=person(request), **form.plan)
            said = _("Round %(number)d is planned. It is a draft.") % {"number": made.number}
            messages.success(request, said)
            return redirect(_place(made))
    return _form_page(request, form, {"task": task})


@require_http_methods(["GET", "POST"])
def round_edit(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Change the plan of a round."""
    round = owned_round(request, code, number, can_edit)
    form = RoundForm(request.POST or None, task=round.task, instance=round)
    if form.is_valid():
        with as_form_error(form):
            changed = change_round(round=round, actor=person(request), **form.plan)
            said = _("Round %(number)d is saved. It is %(state)s.")
            messages.success(request, said % {"number": number, "state": _(changed.state)})
            return redirect(_place(round))
    return _form_page(request, form, {"task": round.task, "round": round})


def _form_page(request: HttpRequest, form: RoundForm, values: dict[str, Any]) -> HttpResponse:
    status = 422 if form.is_bound else 200
    return render(request, "own/round_form.html", {**values, "form": form}, status=status)


@require_http_methods(["GET", "POST"])
def round_replace(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Replace a target of the round by another while nothing was collected."""
    round = owned_round(request, code, number, can_edit)
    form = ReplaceForm(request.POST or None, round=round)
    status = 422 if form.is_bound else 200
    if form.is_valid():
        status = 409
        with as_form_error(form):
            replace_target(round=round, actor=person(request), **form.cleaned_data)
            words = {"number": number, "target": form.cleaned_data["new"].name}
            messages.success(request, _("Round %(number)d asks %(target)s now.") % words)
            return redirect(_place(round))
    values = {"task": round.task, "round": round, "form": form}
    return render(request, "own/round_replace.html", values, status=status)


@require_http_methods(["GET", "POST"])
def round_delete(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Ask whether to delete a round in which nothing was written. A POST deletes it."""
    round = owned_round(request, code, number, can_own)
    if request.method == "POST":
        with as_message(request):
            delete_round(round=round, actor=person(request))
            messages.success(request, _("Round %(number)d is deleted.") % {"number": number})
        return redirect("own:rounds", code)
    return render(request, "own/round_delete.html", {"task": round.task, "round": round})


@require_http_methods(["GET", "POST"])
def round_change(request: HttpRequest, code: str, number: int, action: str) -> HttpResponse:
    """Ask whether to change the round's state. A POST changes it."""
    state = next((state for state, one in STEPS.items() if one.action == action), None)
    if state is None:
        raise Http404
    round = owned_round(request, code, number, can_edit)
    if request.method == "GET" and round.state == state:
        return redirect(_place(round))
    error = ""
    if request.method == "POST":
        try:
            change_state(round=round, state=state, actor=person(request))
            return _changed(request, round)
        except Refused as refused:
            error = str(refused)
    wanted = step(state, round)
    effect = closing(round) if state == State.CLOSED else wanted.effect
    values = {"task": round.task, "round": round, "step": wanted, "effect": effect, "error": error}
    status = 409 if error else 200
    return render_page(request, "own/round_change.html", values, part="ask", status=status)


@require_POST
def round_stay(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Cancel the opening of a round that waits for its targets."""
    round = owned_round(request, code, number, can_edit)
    cancel_opening(round=round, actor=person(request))
    return _changed(request, round)


def _changed(request: HttpRequest, round: Round) -> HttpResponse:
    """Show the round's card as it is now, to htmx only the card."""
    (card,) = cards(round.task, round.number)
    words = {"number": round.number, "state": _(card.round.state)}
    said = _("Round %(number)d is %(state)s now.") % words
    if card.round.opening_since:
        said = _("Round %(number)d opens when its target is ready.") % words
    if not htmx_partial(request):
        messages.success(request, said)
        return redirect(_place(round))
    rights = _rights(request, round.task)
    values = {"task": round.task, "card": card, "tools": tools_for(round.task), "said": said}
    values |= rights
    return render_page(request, PAGE, values, part="card")


def _place(round: Round) -> str:
    return reverse("own:rounds", args=[round.task.code]) + f"#round-{round.number}"
