"""The owners' pages of campaigns: the plan, who takes part, what is owed, and files of it."""

from itertools import takewhile
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import person
from core.errors import Refused
from core.text.markdown import render_markdown
from core.web.downloads import csv_file
from core.web.htmx import form_status
from core.web.lists import list_page
from core.web.refusals import as_form_error, as_message
from core.web.throttles import is_used_up
from dynabench.campaigns import payment_services, quality_services, services
from dynabench.campaigns.before.qualification_items import count_needed_items, select_test_golds
from dynabench.campaigns.files import FILES
from dynabench.campaigns.findings.coverage import count_answers_by_question, measure_coverage
from dynabench.campaigns.forms import CampaignForm, InviteForm, OpenForm, PaidForm, PlaceForm
from dynabench.campaigns.models import Campaign, Payment, Place
from dynabench.campaigns.quality import find_quality_concerns
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import (
    calculate_numbers,
    find_next_approval,
    list_place_rows,
    select_unfinished_payments,
)
from tasks.access import ALL_KINDS, find_task, require_permission
from tasks.models import Task, TaskMember
from tasks.permissions import OWNERS, can_own, can_read

PAGE_SIZE = 20

FORMS = {"open": OpenForm, "paid": PaidForm, "invite": InviteForm}


def _find_task(request: HttpRequest, code: str) -> Task:
    """Return the task, if the person owns it. Raises Http404, PermissionDenied."""
    task = find_task(request, code, can_own, kinds=ALL_KINDS)
    # The pages of campaigns show what people wrote and answered.
    require_permission(request.user, task, can_read)
    return task


def find_campaign(request: HttpRequest, code: str, slug: str) -> Campaign:
    """Return a campaign of the task, if the person owns it. Raises Http404, PermissionDenied."""
    return get_object_or_404(_find_task(request, code).campaigns.select_related("task"), slug=slug)


def _find_owned_tasks(request: HttpRequest) -> QuerySet[Task]:
    """Return the tasks whose test the person's campaigns may require."""
    owned = TaskMember.objects.standing().filter(user=person(request), role__in=OWNERS)
    return Task.objects.filter(pk__in=owned.values("task"))


@require_safe
def campaigns(request: HttpRequest, code: str) -> HttpResponse:
    """Show all campaigns of the task."""
    task = _find_task(request, code)
    return render(request, "own/campaigns.html", {"task": task, "rows": task.campaigns.all()})


@require_http_methods(["GET", "HEAD", "POST"])
def campaign_make(request: HttpRequest, code: str) -> HttpResponse:
    """Show the form for a new campaign, and create it as a draft."""
    task = _find_task(request, code)
    posted = request.POST if request.method == "POST" else None
    form = CampaignForm(posted, task=task, tasks=_find_owned_tasks(request))
    if form.is_valid():
        with as_form_error(form):
            campaign = services.make_campaign(task=task, actor=person(request), **form.cleaned_data)
            messages.success(request, _("The campaign is a draft."))
            return redirect("own-campaigns:campaign", code, campaign.slug)
    return _render_form(request, {"task": task, "form": form})


@require_http_methods(["GET", "HEAD", "POST"])
def campaign_change(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Change a campaign's plan, except what was already promised to participants."""
    campaign = find_campaign(request, code, slug)
    newest_consent = campaign.consents.first()
    form_data = request.POST if request.method == "POST" else None
    start = {"consent": ""}
    if newest_consent:
        start["consent"] = newest_consent.text
    # A form changes its instance, and the page shows the campaign as it is stored.
    instance = Campaign.objects.get(pk=campaign.pk)
    # The required task stays a choice, also where another owner chose it.
    chosen = Task.objects.filter(pk=campaign.requires_id or 0)
    options: Any = {"task": campaign.task, "tasks": _find_owned_tasks(request) | chosen}
    form = CampaignForm(form_data, instance=instance, initial=start, **options)
    if form.is_valid():
        with as_form_error(form):
            changed_campaign = services.change_campaign(
                campaign=campaign, actor=person(request), **form.cleaned_data
            )
            messages.success(request, _("Saved."))
            return redirect("own-campaigns:campaign", code, changed_campaign.slug)
    return _render_form(request, {"task": campaign.task, "campaign": campaign, "form": form})


def _render_form(request: HttpRequest, values: dict[str, Any]) -> HttpResponse:
    """Render the form of a campaign's plan."""
    status = form_status(values["form"])
    return render(request, "own/campaign_form.html", values, status=status)


@require_safe
def campaign(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show a campaign: numbers, participants by pseudonym, money owed and owner's actions."""
    return _render_campaign(request, find_campaign(request, code, slug))


def _render_campaign(
    request: HttpRequest, campaign: Campaign, invalid_form: Any = None, kind: str = ""
) -> HttpResponse:
    """Render a campaign's page. invalid_form: a form with errors; kind: its key in FORMS."""
    rows = list_place_rows(campaign)
    forms = {f"{name}_form": form(auto_id=f"{name}-%s") for name, form in FORMS.items()}
    if invalid_form is not None:
        forms[f"{kind}_form"] = invalid_form
    values = forms | {
        "task": campaign.task,
        "campaign": campaign,
        "rows": rows,
        "numbers": calculate_numbers(campaign, rows),
        # What one person can cost at most, with fee and tax.
        "most": campaign.pay.most(campaign.written),
        "due": find_next_approval(campaign),
        # With the host of this request, which is the one that the owner copies.
        "link": request.build_absolute_uri(reverse("campaigns:arrive", args=[campaign.slug])),
        "query": _build_panel_query(campaign),
        "ethics": render_markdown(campaign.ethics),
        "files": FILES,
        "pays": payment_services.build_api(campaign) is not None,
        "payments": select_unfinished_payments(campaign),
        "may": [
            to for to, states in services.ALLOWED_STATES_BEFORE.items() if campaign.state in states
        ],
        "golds": _count_golds(campaign),
        "ran_out": sum(row.place.ran_out_at is not None for row in rows),
        "form": invalid_form,
    }
    return render(request, "own/campaign.html", values, status=422 if invalid_form else 200)


def _count_golds(campaign: Campaign) -> tuple[int, int] | None:
    """Return the gold items that the test needs and that the task has; None without a test."""
    if not campaign.test_items:
        return None
    return count_needed_items(campaign), select_test_golds(campaign).count()


def _build_panel_query(campaign: Campaign) -> str:
    """Return the query string that the panel adds to the link, with its placeholders."""
    return campaign.way_in.placeholders


@require_POST
def campaign_state(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Open, pause or close a campaign."""
    campaign = find_campaign(request, code, slug)
    to = request.POST.get("to", "")
    if to not in Campaign.State.values or to not in services.ALLOWED_STATES_BEFORE:
        raise Http404
    form = OpenForm(request.POST, auto_id="open-%s") if to == "open" else None
    # Only the first opening needs a name; later ones have it already.
    if form is not None and not campaign.ethics_name and not form.is_valid():
        return _render_campaign(request, campaign, form, "open")
    name = request.POST.get("ethics_name", "")[:100]
    try:
        services.set_campaign_state(
            campaign=campaign, actor=person(request), state=to, ethics_name=name
        )
    except Refused as error:
        messages.error(request, str(error))
    return redirect("own-campaigns:campaign", code, slug)


@require_POST
def campaign_invite(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Email invitations, up to the hourly limit. Addresses over it stay in the form."""
    campaign, actor = find_campaign(request, code, slug), person(request)
    form = InviteForm(request.POST, auto_id="invite-%s")
    if form.is_valid():
        addresses = form.cleaned_data["addresses"]
        # Anybody can be written to here, so each address counts towards the owner's hour.
        allowed_addresses = list(
            takewhile(lambda _: not is_used_up("members", actor.pk), addresses)
        )
        n = len(allowed_addresses)
        if allowed_addresses:
            services.invite_addresses(campaign=campaign, actor=actor, addresses=allowed_addresses)
            words = ngettext("%(n)d person is invited.", "%(n)d people are invited.", n)
            messages.success(request, words % {"n": n})
        if allowed_addresses == addresses:
            return redirect("own-campaigns:campaign", code, slug)
        form = InviteForm({"addresses": "\n".join(addresses[n:])}, auto_id="invite-%s")
        form.add_error("addresses", _("You have named many people. Go on in an hour."))
    return _render_campaign(request, campaign, form, "invite")


@require_POST
def campaign_paid(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Record that all money owed was paid outside the site."""
    campaign = find_campaign(request, code, slug)
    form = PaidForm(request.POST, auto_id="paid-%s")
    if form.is_valid():
        with as_form_error(form):
            n = services.record_external_payment(
                campaign=campaign, actor=person(request), **form.cleaned_data
            )
            words = ngettext("%(n)d payment is noted.", "%(n)d payments are noted.", n)
            messages.success(request, words % {"n": n})
            return redirect("own-campaigns:campaign", code, slug)
    return _render_campaign(request, campaign, form, "paid")


@require_POST
def campaign_settle(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Credit pay that is due now, as a worker otherwise does every minute."""
    campaign = find_campaign(request, code, slug)
    n = services.credit_due_pay(campaign=campaign)
    messages.success(request, ngettext("%(n)d new row.", "%(n)d new rows.", n) % {"n": n})
    return redirect("own-campaigns:campaign", code, slug)


@require_POST
def campaign_bonuses(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Plan a bonus for everybody who is owed one; a worker sends them within a minute."""
    campaign = find_campaign(request, code, slug)
    with as_message(request):
        n = payment_services.plan_bonuses(campaign=campaign, actor=person(request))
        words = ngettext("%(n)d bonus is planned.", "%(n)d bonuses are planned.", n)
        messages.success(request, words % {"n": n})
    return redirect("own-campaigns:campaign", code, slug)


@require_POST
def payment_resolve(request: HttpRequest, code: str, slug: str, pk: int) -> HttpResponse:
    """Store the owner's answer about the outcome of an unclear payment."""
    campaign = find_campaign(request, code, slug)
    rows = Payment.objects.select_related("place__campaign__task")
    payment = get_object_or_404(rows, pk=pk, place__campaign=campaign)
    # Anything else means that no money moved, after which it may be planned again.
    is_paid = request.POST.get("to") == "paid"
    with as_message(request):
        payment_services.resolve_payment(payment=payment, actor=person(request), is_paid=is_paid)
        messages.success(request, _("Saved."))
    return redirect("own-campaigns:campaign", code, slug)


@require_safe
def quality(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show the judges whose work the owner should check, with evidence. Rejects nobody."""
    campaign = find_campaign(request, code, slug)
    values = {"task": campaign.task, "campaign": campaign, "looks": find_quality_concerns(campaign)}
    return render(request, "own/campaign_quality.html", values)


@require_safe
def coverage(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show the kinds of failures that were found, and groups of similar ones."""
    campaign = find_campaign(request, code, slug)
    findings = measure_coverage(campaign)
    values = {
        "task": campaign.task,
        "campaign": campaign,
        "coverage": findings,
        "page": list_page(request, findings.groups, size=PAGE_SIZE),
        "groups": count_answers_by_question(campaign),
    }
    return render(request, "own/campaign_coverage.html", values)


@require_http_methods(["GET", "HEAD", "POST"])
def place(request: HttpRequest, code: str, slug: str, pk: int) -> HttpResponse:
    """Show one participant: pauses, appeal and submitted work; POST stores a decision."""
    campaign = find_campaign(request, code, slug)
    rows = campaign.all_places.select_related("campaign__task", "annotator")
    place_row = get_object_or_404(rows, pk=pk)
    form = PlaceForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with as_form_error(form):
            _decide_place(request, place_row, form)
            messages.success(request, _("Saved."))
            return redirect("own-campaigns:campaign", code, slug)
    pauses = list(place_row.pauses.all())
    values = {
        "task": campaign.task,
        "campaign": campaign,
        "place": place_row,
        "form": form,
        "pauses": pauses,
        "is_paused": any(pause.lifted_at is None for pause in pauses),
        "answers": _list_answers(place_row),
    }
    status = form_status(form)
    return render(request, "own/campaign_place.html", values, status=status)


def _list_answers(place: Place) -> list[tuple[str, str]]:
    """Return (question, answer as text) for each question that the participant answered."""
    answers = place.answers or {}
    answered_questions = []
    for question in read_questionnaire(place.campaign.questions).questions:
        if question.name in answers:
            words = question.kind.display(question, answers[question.name])
            answered_questions.append((question.title, words))
    return answered_questions


def _decide_place(request: HttpRequest, place: Place, form: PlaceForm) -> None:
    """Carry out the action of the button that was pressed. Raises Refused."""
    actor, reason = person(request), form.cleaned_data["reason"]
    to = form.cleaned_data["to"]
    if to in ("approve", "reject"):
        approve = to == "approve"
        # The panel decides about its money, so the decision goes there where it can be asked.
        if payment_services.build_api(place.campaign):
            payment_services.plan_decision(place=place, actor=actor, approve=approve, reason=reason)
        else:
            services.review_place(place=place, actor=actor, approve=approve, reason=reason)
    elif to == "pause":
        looks = [
            look for look in find_quality_concerns(place.campaign) if look.place.pk == place.pk
        ]
        evidence = looks[0].evidence if looks else {}
        evidence["reason"] = reason
        quality_services.pause_place(place=place, actor=actor, evidence=evidence)
    elif last := place.pauses.last():
        quality_services.answer_appeal(pause=last, actor=actor, text=reason, lift=to == "lift")


@require_safe
def campaign_file(request: HttpRequest, code: str, slug: str, kind: str) -> HttpResponse:
    """Download one of the campaign's CSV files, such as the ledger or the bank transfers."""
    campaign = find_campaign(request, code, slug)
    if kind not in FILES:
        raise Http404
    response = csv_file(FILES[kind](campaign), f"{slug}-{kind}.csv")
    # Files with panels' ids or amounts must not stay in caches.
    response["Cache-Control"] = "no-store"
    return response
