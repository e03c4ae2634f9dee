"""The page on which editors let people judge a sample, with the help of a judge model."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from core.accounts.people import get_person
from core.errors import Refused
from core.web.htmx import get_form_status
from dynabench.manage.access import find_owned_round
from tasks.access import require_permission
from tasks.models import Round
from tasks.permissions import can_edit, can_read
from validation.consensus.vote_draws import DEFAULT_PROMPT
from validation.judging.draw_counts import read_draw_state
from validation.judging.draw_forms import DrawForm
from validation.judging.draw_services import change_draw, find_draw_obstacle
from validation.statistics.cache import read_cached_report

DEFAULT_WIDTH = 0.1


class PlanForm(forms.Form):
    """A form for the wanted width of an interval; the page sends it as a query."""

    width = forms.FloatField(
        min_value=0.01,
        max_value=0.9,
        initial=DEFAULT_WIDTH,
        # xgettext:no-python-format
        label=gettext_lazy("Width of the 95% interval"),
        help_text=gettext_lazy("0.1 is ten points from end to end."),
    )


@require_http_methods(["GET", "POST"])
def show_vote_draw(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the rule, what was drawn, and a plan of votes. A POST changes the rule."""
    round = find_owned_round(request, code, number, can_edit)
    require_permission(request.user, round.task, can_read)  # the plan is based on votes
    state = read_draw_state(round)
    initial: dict[str, Any] = {"judge": state.judge_name or ""}
    if state.rule:
        initial["min_chance"] = str(state.rule.min_chance)
        initial["by_instruction"] = state.rule.prompt is not None
    # Shown, so that owners see what is asked, and can begin with it.
    initial["prompt"] = (state.rule and state.rule.prompt) or DEFAULT_PROMPT
    if request.method != "POST":
        return _show_vote_draw(request, round, DrawForm(round, initial=initial))
    form = DrawForm(round, request.POST)
    if not form.is_valid():
        return _show_vote_draw(request, round, form, status=422)
    try:
        change_draw(round=round, owner=get_person(request), rule=form.rule)
    except Refused as error:
        form.add_error(None, str(error))
        return _show_vote_draw(request, round, form, status=error.status)
    if form.rule:
        messages.success(request, _("People judge a sample of new examples."))
    else:
        messages.success(request, _("People judge all new examples."))
    return redirect("own:vote-draw", code=code, number=number)


def _show_vote_draw(
    request: HttpRequest, round: Round, form: DrawForm, *, status: int = 200
) -> HttpResponse:
    is_asked = "width" in request.GET
    plan_form = PlanForm(request.GET if is_asked else None)
    values: dict[str, Any] = {
        "task": round.task,
        "round": round,
        "form": form,
        "plan_form": plan_form,
        "state": read_draw_state(round),
        "obstacle": find_draw_obstacle(round.task.config),
        "released": round.state == Round.State.RELEASED,
    }
    # A wrong width is named at its field, and the usual plan stays on the page.
    width = DEFAULT_WIDTH
    if is_asked and plan_form.is_valid():
        width = plan_form.cleaned_data["width"]
    elif is_asked:
        status = get_form_status(plan_form)
    if not values["obstacle"]:
        values["planned"] = _plan_votes(round, width)
    return render(request, "own/vote_draw.html", values, status=status)


def _plan_votes(round: Round, width: float) -> Any:
    """Return the round's plan; None without examples, or while a large round is counted."""
    report = read_cached_report([round], code=round.task.code)
    if report is None:
        return None
    # Imported on use, because it loads numpy.
    from validation.statistics.vote_planning import plan_round_votes

    return plan_round_votes([round], report.numbers["all"], width)
