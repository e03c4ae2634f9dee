"""The owners' page of a mixed round: its shares, and what each arm has brought."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.adversaries.fit import can_run_adversaries
from dynabench.adversaries.ready_services import list_ready_adversaries
from dynabench.mixed_rounds import services
from dynabench.mixed_rounds.forms import SharesForm
from dynabench.mixed_rounds.selectors import measure_arms
from tasks.access import find_task
from tasks.arms import ARMS
from tasks.models import Round


def _find_round(request: HttpRequest, code: str, number: int) -> Round:
    """Return the task's round, for its editors who may read labels.

    Raises Http404 and PermissionDenied.
    """
    task = find_task(request, code, can_run_adversaries)
    return get_object_or_404(task.rounds.select_related("task"), number=number)


@require_http_methods(["GET", "HEAD", "POST"])
def show_arms(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the shares of the arms and what each has brought. A POST sets the shares."""
    round = _find_round(request, code, number)
    initial = round.arm_shares or dict.fromkeys(ARMS, 0)
    form = SharesForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_valid():
        with show_as_form_error(form):
            services.set_arm_shares(
                round=round, actor=get_person(request), shares=form.cleaned_data
            )
            messages.success(request, _("Shares saved. They apply to people’s next texts."))
            return redirect("own-mixed:arms", code, number)
    is_over = round.state in Round.FINISHED_STATES
    arms = measure_arms(round)
    values = {
        "task": round.task,
        "round": round,
        "form": form,
        "arms": arms,
        # Before the round is mixed, the table would have only dashes.
        "has_numbers": bool(round.arm_shares) or any(row.tries for row in arms),
        "is_over": is_over,
        "can_start": round.state == Round.State.OPEN and not round.arm_shares
        and bool(list_ready_adversaries(round.task)),
    }  # fmt: skip
    return render(request, "own/arms.html", values, status=get_form_status(form))


@require_POST
def start_arms(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Start a mixed round with the task's ready adversaries."""
    round = _find_round(request, code, number)
    with show_as_message(request):
        services.start_mixed_round(round=round, actor=get_person(request))
        messages.success(request, _("Mixed round started. Its adversaries work within a minute."))
    return redirect("own-mixed:arms", code, number)


@require_POST
def end_arms(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Assign no more arms in the round."""
    round = _find_round(request, code, number)
    with show_as_message(request):
        services.end_mixing(round=round, actor=get_person(request))
        messages.success(request, _("Mixing ended. New texts are in no arm."))
    return redirect("own-mixed:arms", code, number)
