"""Proposals that await a decision: tasks, communities and metrics."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from dynabench.communities.proposal_services import DECISION_MESSAGES, can_decide_task, decide_task
from dynabench.communities.selectors import select_waiting_proposals
from evaluation.judges.custom_metrics.selectors import find_waiting_metrics
from tasks.config.parsing import ConfigError
from tasks.making.forms import DecisionForm, LegacyDecisionForm
from tasks.models import TaskProposal


@require_GET
def list_proposals(request: HttpRequest) -> HttpResponse:
    """Show all proposals that await a decision, oldest first. Administrators only.

    A community's owners find the proposals of tasks for their community on its page.
    """
    if not request.user.is_superuser:
        raise Http404
    values = {
        # Those for a community too: administrators may decide all.
        "proposals": TaskProposal.objects.filter(state=TaskProposal.State.WAITING),
        "communities": select_waiting_proposals(get_person(request)),
        "metrics": find_waiting_metrics(),
    }
    return render(request, "own/new/proposals.html", values)


@require_http_methods(["GET", "POST"])
def decide_proposal(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one proposal and the form for its decision. A POST stores the decision.

    Raises Http404 for people who may not decide on it.
    """
    rows = TaskProposal.objects.select_related("proposer__annotator", "task")
    proposal_row = get_object_or_404(rows.select_related("for_community__community"), pk=pk)
    # A 404, as for what does not exist: others do not learn of the request.
    if not can_decide_task(get_person(request), proposal_row):
        raise Http404
    form_class = DecisionForm
    if not proposal_row.task_id:  # the task is made by the decision
        form_class = LegacyDecisionForm
    form = form_class(request.POST or None, initial={"code": proposal_row.wanted_code})
    if form.is_valid():
        with show_as_form_error(form, ConfigError):
            decided_proposal = decide_task(
                proposal=proposal_row, actor=get_person(request), **form.cleaned_data
            )
            messages.success(request, _(DECISION_MESSAGES[decided_proposal.state]))
            if request.user.is_superuser:
                return redirect("proposals")
            return redirect("communities:manage", proposal_row.for_community.community.slug)
    values = {"proposal": proposal_row, "form": form}
    return render(request, "own/new/proposal.html", values, status=get_form_status(form))
