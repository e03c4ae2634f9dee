"""The task owners' pages for planning a campaign, one for each step of the plan."""

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from dynabench.campaigns import services
from dynabench.campaigns.forms import CampaignForm
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.own_views import find_campaign, find_owned_task
from dynabench.campaigns.plan import PLAN_STEPS, list_missing_parts
from tasks.models import Task, TaskMember
from tasks.permissions import OWNERS

STEP_NAMES = list(PLAN_STEPS)
FIRST_STEP = STEP_NAMES[0]


def _find_owned_tasks(request: HttpRequest) -> QuerySet[Task]:
    """Return the tasks that the person owns; a campaign may require the test of any of them."""
    owned_memberships = TaskMember.objects.select_effective().filter(
        user=get_person(request), role__in=OWNERS
    )
    return Task.objects.filter(pk__in=owned_memberships.values("task"))


@require_http_methods(["GET", "HEAD", "POST"])
def create_campaign(request: HttpRequest, code: str) -> HttpResponse:
    """Show the first step of a new campaign; a POST creates the draft and shows the next step."""
    task = find_owned_task(request, code)
    form_data = request.POST if request.method == "POST" else None
    form = CampaignForm(form_data, task=task, tasks=_find_owned_tasks(request), step=FIRST_STEP)
    if "estimate" in request.POST:
        return _render_estimate(request, {"task": task, "form": form})
    if form.is_valid():
        with show_as_form_error(form):
            campaign = services.make_campaign(
                task=task, actor=get_person(request), **form.cleaned_data
            )
            return _redirect_to_next_step(request, campaign, FIRST_STEP)
    return _render_step(request, {"task": task, "form": form})


@require_safe
def continue_plan(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Redirect to the first step of a campaign that lacks something, else to the first one."""
    missing_parts = list_missing_parts(find_campaign(request, code, slug))
    step = missing_parts[0].step if missing_parts else FIRST_STEP
    return redirect("own-campaigns:step", code, slug, step)


@require_http_methods(["GET", "HEAD", "POST"])
def edit_step(request: HttpRequest, code: str, slug: str, step: str) -> HttpResponse:
    """Show a step of a campaign's plan, and store changes.

    What was already promised to participants cannot be changed.
    """
    campaign = find_campaign(request, code, slug)
    if step not in PLAN_STEPS:
        raise Http404
    newest_consent = campaign.consents.first()
    form_data = request.POST if request.method == "POST" else None
    initial = {"consent": newest_consent.text if newest_consent else ""}
    # A form changes its instance, and the page shows the campaign as it is stored.
    instance = Campaign.objects.get(pk=campaign.pk)
    # The required task stays a choice, also where another owner chose it.
    required_task = Task.objects.filter(pk=campaign.requires_id or 0)
    options: Any = {"task": campaign.task, "tasks": _find_owned_tasks(request) | required_task}
    form = CampaignForm(form_data, instance=instance, initial=initial, step=step, **options)
    values = {"task": campaign.task, "campaign": campaign, "form": form}
    if "estimate" in request.POST:
        return _render_estimate(request, values)
    if form.is_valid():
        with show_as_form_error(form):
            changed_campaign = services.change_campaign(
                campaign=campaign, actor=get_person(request), **form.cleaned_data
            )
            return _redirect_to_next_step(request, changed_campaign, step)
    return _render_step(request, values)


def _redirect_to_next_step(request: HttpRequest, campaign: Campaign, step: str) -> HttpResponse:
    """Redirect to the step that the person chose, by default to the one after `step`.

    The last step, and a person who chose to continue later, lead to the campaign's page.
    """
    code, chosen_step = campaign.task.code, request.POST.get("go", "")
    following_steps = STEP_NAMES[STEP_NAMES.index(step) + 1 :]
    if chosen_step in PLAN_STEPS:
        return redirect("own-campaigns:step", code, campaign.slug, chosen_step)
    if following_steps and chosen_step != "later":
        return redirect("own-campaigns:step", code, campaign.slug, following_steps[0])
    messages.success(request, _("Campaign saved."))
    return redirect("own-campaigns:campaign", code, campaign.slug)


def _render_step(request: HttpRequest, values: dict[str, Any]) -> HttpResponse:
    """Render the page of a step. values: `form`, `task`, and `campaign` if there is one."""
    form: CampaignForm = values["form"]
    position = STEP_NAMES.index(form.step)
    step_values = {
        "step": form.step,
        "steps": form.steps,
        "previous_step": STEP_NAMES[position - 1] if position else "",
        "is_last": position == len(STEP_NAMES) - 1,
    }
    status = get_form_status(form)
    return render(request, "own/campaign_form.html", {**values, **step_values}, status=status)


def _render_estimate(request: HttpRequest, values: dict[str, Any]) -> HttpResponse:
    """Render the cost and the missing parts of the plan as entered so far. Stores nothing."""
    return render(request, "own/campaign_form.html#estimate", {**values, "is_part": True})
