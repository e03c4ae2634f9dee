"""The owners' pages about rounds: the list, the plans, and changes of state."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.models import Example
from core.accounts.people import get_person
from core.errors import Refused
from core.web.htmx import is_htmx_partial, render_page
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.manage.access import build_attention_values, find_owned_round, find_owned_task
from dynabench.manage.forecast import forecast_next_round
from dynabench.manage.round_cards import State, build_round_cards, describe_closing
from evaluation.dataset_releases.tools import select_tools
from evaluation.models import EvaluationSet
from tasks.models import Round, Task
from tasks.permissions import can_edit, can_oversee, can_own, can_read
from tasks.rounds.forms import ReplacementForm, RoundPageForm
from tasks.rounds.loop import replace_target
from tasks.rounds.opening_services import cancel_opening, request_round_state
from tasks.rounds.services import change_round, delete_round, plan_round
from tasks.rounds.states import close_round_if_due
from tasks.rounds.steps import build_step, find_state
from tasks.selectors import find_opened_rounds

TEMPLATE_NAME = "own/rounds.html"
STATE_MESSAGES: dict[str, str] = {
    State.DRAFT: gettext_noop("Round %(number)d is a draft again."),
    State.READY: gettext_noop("Round %(number)d is ready to open."),
    State.OPEN: gettext_noop("Round %(number)d is open."),
    State.PAUSED: gettext_noop("Round %(number)d is paused."),
    State.CLOSED: gettext_noop("Round %(number)d is closed."),
    State.RELEASED: gettext_noop("Round %(number)d is released."),
}


@require_safe
def show_rounds(request: HttpRequest, code: str) -> HttpResponse:
    """Show all rounds with their numbers and possible actions. First closes rounds that are due."""
    task = find_owned_task(request, code, can_oversee)
    for round in task.rounds.filter(state=State.OPEN):
        close_round_if_due(
            round=round
        )  # so that the page never shows a round as open after its end
    values: dict[str, Any] = {
        "task": task,
        "cards": build_round_cards(task),
        "tools": select_tools(task),
        "next_round": None,
    }
    # Who judges blind reads no rates. Tasks with rows to judge have no catch rate.
    if values["cards"] and can_read(request.user, task) and not task.config.has_rows_to_judge:
        values["next_round"] = forecast_next_round(task)
        values["meters"] = _build_meters(task)
    # What members see depends on their role; the numbers do not.
    values |= _list_rights(request, task) | build_attention_values(request, task)
    return render(request, TEMPLATE_NAME, values)


def _build_meters(task: Task) -> list[Any]:
    """Return how worn out each round is (`leaderboard.rounds.worn.WornMeter`)."""
    # A task without test sets has nothing to show, and its page needs no numpy.
    if not EvaluationSet.objects.filter(round__task=task).exists():
        return []
    from leaderboard.board.matrix import read_matrix
    from leaderboard.rounds.worn import build_worn_meters

    return build_worn_meters(read_matrix(task), find_opened_rounds([task]))


def _list_rights(request: HttpRequest, task: Task) -> dict[str, bool]:
    is_editor = can_edit(request.user, task)
    return {"can_edit": is_editor, "can_own": is_editor and can_own(request.user, task)}


@require_http_methods(["GET", "POST"])
def plan_new_round(request: HttpRequest, code: str) -> HttpResponse:
    """Show the form for the next round's plan, and create the round as a draft."""
    task = find_owned_task(request, code, can_edit)
    form = RoundPageForm(request.POST or None, task=task)
    if form.is_valid():
        with show_as_form_error(form):
            planned_round = plan_round(task=task, actor=get_person(request), **form.plan)
            message = _("Round %(number)d planned as a draft.") % {"number": planned_round.number}
            messages.success(request, message)
            return redirect(_build_card_url(planned_round))
    return _show_form(request, form, {"task": task})


@require_http_methods(["GET", "POST"])
def edit_round_plan(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the form for a round's plan. A POST changes the plan."""
    round = find_owned_round(request, code, number, can_edit)
    form = RoundPageForm(request.POST or None, task=round.task, instance=round)
    if form.is_valid():
        with show_as_form_error(form):
            changed_round = change_round(round=round, actor=get_person(request), **form.plan)
            # Limits that are reached already close it at once.
            message = " ".join(
                (
                    _("Plan for round %(number)d saved."),
                    _(STATE_MESSAGES[changed_round.state]),
                )
            )
            messages.success(request, message % {"number": number})
            return redirect(_build_card_url(round))
    return _show_form(request, form, {"task": round.task, "round": round})


def _show_form(request: HttpRequest, form: RoundPageForm, values: dict[str, Any]) -> HttpResponse:
    """Show the form, with status 422 if it was submitted with errors."""
    status = 422 if form.is_bound else 200
    return render(request, "own/round_form.html", {**values, "form": form}, status=status)


@require_http_methods(["GET", "POST"])
def replace_round_target(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the form that replaces a target of a round without examples, and replace it."""
    round = find_owned_round(request, code, number, can_edit)
    form = ReplacementForm(request.POST or None, round=round)
    status = 422 if form.is_bound else 200
    if form.is_valid():
        status = 409  # where the service refuses what the form takes
        with show_as_form_error(form):
            old_target, new_target = form.cleaned_data["old"], form.cleaned_data["new"]
            replace_target(
                round=round,
                old_target=old_target,
                new_target=new_target,
                actor=get_person(request),
            )
            values = {"number": number, "target": new_target.name}
            messages.success(request, _("Round %(number)d now uses the model %(target)s.") % values)
            return redirect(_build_card_url(round))
    values = {"task": round.task, "round": round, "form": form}
    return render(request, "own/round_replace.html", values, status=status)


@require_http_methods(["GET", "POST"])
def delete_empty_round(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Ask for confirmation to delete a round without examples. A POST deletes it.

    A round that can't be deleted gets status 409, with the number of its examples.
    """
    round = find_owned_round(request, code, number, can_own)
    if request.method == "POST":
        with show_as_message(request):
            delete_round(round=round, actor=get_person(request))
            messages.success(request, _("Round %(number)d deleted.") % {"number": number})
        return redirect("own:rounds", code)
    example_count = Example.objects.filter(round=round).count()
    can_delete = not example_count and round.state not in (State.OPEN, State.PAUSED)
    values = {"task": round.task, "round": round, "examples": example_count}
    values["can_delete"] = can_delete
    return render(request, "own/round_delete.html", values, status=200 if can_delete else 409)


@require_http_methods(["GET", "POST"])
def change_round_state(request: HttpRequest, code: str, number: int, action: str) -> HttpResponse:
    """Ask for confirmation to change the round's state. A POST changes it.

    action: the change, as `find_state` reads it. Raises Http404 for unknown ones.
    """
    state = find_state(action)
    if state is None:
        raise Http404
    round = find_owned_round(request, code, number, can_edit)
    if request.method == "GET" and round.state == state:
        # A reload of the page after the change would ask again.
        return redirect(_build_card_url(round))
    error = ""
    if request.method == "POST":
        try:
            # Asks the targets first where it opens, outside of any transaction.
            request_round_state(round=round, state=state, actor=get_person(request))
            return _show_changed_round(request, round)
        except Refused as refused:
            error = str(refused)
    change = build_step(state, round)
    effect = change.effect
    if state == State.CLOSED:
        effect = describe_closing(round)  # with numbers
    values = {"task": round.task, "round": round, "step": change, "effect": effect, "error": error}
    status = 409 if error else 200  # the page says what to do first
    return render_page(request, "own/round_change.html", values, block_name="ask", status=status)


@require_POST
def cancel_round_opening(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Cancel the opening of a round that waits for its targets."""
    round = find_owned_round(request, code, number, can_edit)
    cancel_opening(round=round, actor=get_person(request))
    return _show_changed_round(request, round)


def _show_changed_round(request: HttpRequest, round: Round) -> HttpResponse:
    """Show the changed round's card. Requests by htmx get only the card."""
    # Read again: a worker may have changed it too, such as its opening.
    (card,) = build_round_cards(round.task, round.number)
    sentence = _(STATE_MESSAGES[card.round.state])
    if card.round.opening_since:
        sentence = _("Round %(number)d opens as soon as its models are ready.")
    message = sentence % {"number": round.number}
    if not is_htmx_partial(request):
        messages.success(request, message)
        return redirect(_build_card_url(round))
    rights = _list_rights(request, round.task)
    values = {"task": round.task, "card": card, "tools": select_tools(round.task), "said": message}
    values |= rights
    return render_page(request, TEMPLATE_NAME, values, block_name="card")


def _build_card_url(round: Round) -> str:
    return reverse("own:rounds", args=[round.task.code]) + f"#round-{round.number}"
