"""The administrators' pages about proposed tasks."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from dynabench.accounts.people import person
from dynabench.lib.refusals import as_form_error
from tasks.config.parsing import ConfigError
from tasks.making.forms import DecisionForm
from tasks.making.proposal_services import decide_proposal
from tasks.models import TaskProposal


def _bosses_only(request: HttpRequest) -> None:
    if not request.user.is_superuser:
        raise Http404


@require_GET
def proposals(request: HttpRequest) -> HttpResponse:
    """Those that wait, the oldest first."""
    _bosses_only(request)
    waiting = TaskProposal.objects.filter(state=TaskProposal.State.WAITING)
    return render(request, "own/new/proposals.html", {"proposals": waiting})


@require_http_methods(["GET", "POST"])
def proposal(request: HttpRequest, pk: int) -> HttpResponse:
    """One proposal, and its decision."""
    _bosses_only(request)
    found = get_object_or_404(TaskProposal.objects.select_related("proposer", "task"), pk=pk)
    form = DecisionForm(request.POST or None, initial={"code": found.wanted_code})
    if form.is_valid():
        with as_form_error(form, ConfigError):
            decided = decide_proposal(proposal=found, actor=person(request), **form.cleaned_data)
            messages.success(request, _("It is %(state)s.") % {"state": _(decided.state)})
            return redirect("proposals")
    values = {"proposal": found, "form": form}
    return render(request, "own/new/proposal.html", values, status=422 if form.errors else 200)
