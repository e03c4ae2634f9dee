"""The pages on which proposed tasks are decided: by administrators, or a community's owners."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from dynabench.accounts.people import person
from dynabench.communities.proposal_services import can_decide_task, decide_task
from dynabench.lib.refusals import as_form_error
from tasks.config.parsing import ConfigError
from tasks.making.forms import DecisionForm
from tasks.models import TaskProposal


@require_GET
def proposals(request: HttpRequest) -> HttpResponse:
    """Those that wait, the oldest first; a community's owners find theirs on its own page."""
    if not request.user.is_superuser:
        raise Http404
    waiting = TaskProposal.objects.filter(state=TaskProposal.State.WAITING)
    return render(request, "own/new/proposals.html", {"proposals": waiting})


@require_http_methods(["GET", "POST"])
def proposal(request: HttpRequest, pk: int) -> HttpResponse:
    """One proposal, and its decision."""
    rows = TaskProposal.objects.select_related("proposer__annotator", "task")
    found = get_object_or_404(rows.select_related("for_community__community"), pk=pk)
    if not can_decide_task(person(request), found):
        raise Http404
    form = DecisionForm(request.POST or None, initial={"code": found.wanted_code})
    if form.is_valid():
        with as_form_error(form, ConfigError):
            decided = decide_task(proposal=found, actor=person(request), **form.cleaned_data)
            messages.success(request, _("It is %(state)s.") % {"state": _(decided.state)})
            if request.user.is_superuser:
                return redirect("proposals")
            return redirect("communities:manage", found.for_community.community.slug)
    values = {"proposal": found, "form": form}
    return render(request, "own/new/proposal.html", values, status=422 if form.errors else 200)
