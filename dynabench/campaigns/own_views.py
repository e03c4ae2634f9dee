"""The task owners' pages about campaigns: state, participants, amounts owed, and files."""

from itertools import takewhile
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.machine_text.selectors import build_machine_share_report
from annotation.machine_text.words import list_signal_lines
from core.accounts.people import get_person
from core.errors import Refused
from core.text.markdown import render_markdown
from core.web.downloads import respond_with_csv
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from core.web.throttles import is_used_up
from dynabench.campaigns import payment_services, quality_services, services
from dynabench.campaigns.before.qualification_items import (
    count_needed_items,
    select_test_gold_items,
)
from dynabench.campaigns.files import FILE_TITLES, FILES
from dynabench.campaigns.findings.coverage import count_answers_by_question, measure_coverage
from dynabench.campaigns.findings.information import preview_bonus
from dynabench.campaigns.forms import (
    ExternalPaymentForm,
    InviteForm,
    OpenForm,
    PlaceForm,
)
from dynabench.campaigns.models import Campaign, Payment, Place
from dynabench.campaigns.plan import estimate_cost, list_missing_parts, list_plan_steps
from dynabench.campaigns.quality import find_quality_concerns
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import (
    calculate_numbers,
    find_next_approval,
    list_place_rows,
    select_campaign_examples,
    select_campaigns,
    select_unfinished_payments,
)
from tasks.access import ALL_KINDS, find_task, require_permission
from tasks.models import Task
from tasks.permissions import can_own, can_read

PAGE_SIZE = 20

FORMS = {"open": OpenForm, "paid": ExternalPaymentForm, "invite": InviteForm}


def find_owned_task(request: HttpRequest, code: str) -> Task:
    """Return the task, if the person owns it. Raises Http404 or PermissionDenied."""
    task = find_task(request, code, can_own, kinds=ALL_KINDS)
    # The pages of campaigns show what people wrote and answered.
    require_permission(request.user, task, can_read)
    return task


def find_campaign(request: HttpRequest, code: str, slug: str) -> Campaign:
    """Return a campaign of the task, if the person owns it. Raises Http404 or PermissionDenied."""
    return get_object_or_404(
        find_owned_task(request, code).campaigns.select_related("task"), slug=slug
    )


@require_safe
def list_campaigns(request: HttpRequest, code: str) -> HttpResponse:
    """Show all campaigns of the task."""
    task = find_owned_task(request, code)
    return render(request, "own/campaigns.html", {"task": task, "rows": select_campaigns(task)})


@require_safe
def show_campaign(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show a campaign: numbers, participants by pseudonym, money owed, and actions."""
    return _render_campaign(request, find_campaign(request, code, slug))


def _render_campaign(
    request: HttpRequest, campaign: Campaign, invalid_form: Any = None, kind: str = ""
) -> HttpResponse:
    """Render a campaign's page. invalid_form: a form with errors; kind: its key in FORMS."""
    rows, is_draft = list_place_rows(campaign), campaign.state == Campaign.State.DRAFT
    missing_parts = list_missing_parts(campaign) if is_draft else []
    forms = {f"{name}_form": form(auto_id=f"{name}-%s") for name, form in FORMS.items()}
    if invalid_form is not None:
        forms[f"{kind}_form"] = invalid_form
    values = forms | {
        "task": campaign.task,
        "campaign": campaign,
        "rows": rows,
        "numbers": calculate_numbers(campaign, rows),
        # What one person can cost at most, with fee and tax.
        "most": campaign.pay.compute_max_cost(campaign.max_paid_examples),
        "due": find_next_approval(campaign),
        # With the host of this request, which is the one that the owner copies.
        "link": request.build_absolute_uri(reverse("campaigns:arrive", args=[campaign.slug])),
        "query": _build_panel_query(campaign),
        "ethics": render_markdown(campaign.ethics),
        "files": FILE_TITLES.items(),
        "pays": payment_services.build_panel_client(campaign) is not None,
        "payments": select_unfinished_payments(campaign),
        "may": [
            to for to, states in services.ALLOWED_STATES_BEFORE.items() if campaign.state in states
        ],
        "golds": _count_golds(campaign),
        "steps": list_plan_steps(campaign, missing_parts) if is_draft else (),
        "is_ready": not missing_parts,
        "cost": estimate_cost(campaign),
        "ran_out": sum(row.place.ran_out_at is not None for row in rows),
        "form": invalid_form,
    }
    # An arena's people write no texts, and who only judges writes none either.
    if campaign.max_paid_examples and not is_draft:
        report = build_machine_share_report(select_campaign_examples(campaign))
        values |= {"machine_share": report, "signal_lines": list_signal_lines(report)}
    return render(request, "own/campaign.html", values, status=422 if invalid_form else 200)


def _count_golds(campaign: Campaign) -> tuple[int, int] | None:
    """Return how many gold items the test needs and how many the task has; None without a test."""
    if not campaign.test_items:
        return None
    return count_needed_items(campaign), select_test_gold_items(campaign).count()


def _build_panel_query(campaign: Campaign) -> str:
    """Return the query string that the panel adds to the link, with its placeholders."""
    return campaign.way_in.placeholders


@require_POST
def change_state(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Open, pause or close a campaign."""
    campaign = find_campaign(request, code, slug)
    new_state = request.POST.get("to", "")
    if new_state not in Campaign.State.values or new_state not in services.ALLOWED_STATES_BEFORE:
        raise Http404
    form = OpenForm(request.POST, auto_id="open-%s") if new_state == "open" else None
    # Only the first opening needs a name; later ones have it already.
    if form is not None and not campaign.ethics_name and not form.is_valid():
        return _render_campaign(request, campaign, form, "open")
    name = request.POST.get("ethics_name", "")[:100]
    try:
        services.set_campaign_state(
            campaign=campaign, actor=get_person(request), state=new_state, ethics_name=name
        )
    except Refused as error:
        messages.error(request, str(error))
    return redirect("own-campaigns:campaign", code, slug)


@require_POST
def invite_people(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Email invitations, up to the hourly limit. Addresses over it stay in the form."""
    campaign, actor = find_campaign(request, code, slug), get_person(request)
    form = InviteForm(request.POST, auto_id="invite-%s")
    if form.is_valid():
        addresses = form.cleaned_data["addresses"]
        # Anybody can be written to here, so each address counts towards the owner's hour.
        allowed_addresses = list(
            takewhile(lambda _: not is_used_up("members", actor.pk), addresses)
        )
        person_count = len(allowed_addresses)
        if allowed_addresses:
            services.invite_addresses(campaign=campaign, actor=actor, addresses=allowed_addresses)
            words = ngettext("%(n)d person invited.", "%(n)d people invited.", person_count)
            messages.success(request, words % {"n": person_count})
        if allowed_addresses == addresses:
            return redirect("own-campaigns:campaign", code, slug)
        form = InviteForm({"addresses": "\n".join(addresses[person_count:])}, auto_id="invite-%s")
        form.add_error(
            "addresses", _("You've invited many people in the last hour. Try again later.")
        )
    return _render_campaign(request, campaign, form, "invite")


@require_POST
def record_payments(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Record that all money owed was paid outside the site."""
    campaign = find_campaign(request, code, slug)
    form = ExternalPaymentForm(request.POST, auto_id="paid-%s")
    if form.is_valid():
        with show_as_form_error(form):
            person_count = services.record_external_payment(
                campaign=campaign, actor=get_person(request), **form.cleaned_data
            )
            words = ngettext("%(n)d payment recorded.", "%(n)d payments recorded.", person_count)
            messages.success(request, words % {"n": person_count})
            return redirect("own-campaigns:campaign", code, slug)
    return _render_campaign(request, campaign, form, "paid")


@require_POST
def credit_pay(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Credit the pay that is due now, without waiting for the minutely job."""
    campaign = find_campaign(request, code, slug)
    person_count = services.credit_due_pay(campaign=campaign)
    messages.success(
        request,
        ngettext("%(n)d ledger row added.", "%(n)d ledger rows added.", person_count)
        % {"n": person_count},
    )
    return redirect("own-campaigns:campaign", code, slug)


@require_POST
def plan_all_bonuses(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Plan a bonus for everybody who is owed one; a worker sends them within a minute."""
    campaign = find_campaign(request, code, slug)
    with show_as_message(request):
        person_count = payment_services.plan_bonuses(campaign=campaign, actor=get_person(request))
        words = ngettext("%(n)d bonus planned.", "%(n)d bonuses planned.", person_count)
        messages.success(request, words % {"n": person_count})
    return redirect("own-campaigns:campaign", code, slug)


@require_POST
def resolve_unclear_payment(request: HttpRequest, code: str, slug: str, pk: int) -> HttpResponse:
    """Store the owner's answer about the outcome of an unclear payment."""
    campaign = find_campaign(request, code, slug)
    rows = Payment.objects.select_related("place__campaign__task")
    payment = get_object_or_404(rows, pk=pk, place__campaign=campaign)
    # Anything else means that no money moved, after which it may be planned again.
    is_paid = request.POST.get("to") == "paid"
    with show_as_message(request):
        payment_services.resolve_payment(
            payment=payment, actor=get_person(request), is_paid=is_paid
        )
        messages.success(request, _("Saved."))
    return redirect("own-campaigns:campaign", code, slug)


@require_safe
def show_quality(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show the judges whose work the owner should check, with evidence. Rejects nobody."""
    campaign = find_campaign(request, code, slug)
    values = {"task": campaign.task, "campaign": campaign, "looks": find_quality_concerns(campaign)}
    return render(request, "own/campaign_quality.html", values)


@require_safe
def show_bonus_preview(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show what past catches would have earned by a flat bonus and by a bonus by information."""
    campaign = find_campaign(request, code, slug)
    preview = preview_bonus(campaign)
    values = {
        "task": campaign.task,
        "campaign": campaign,
        "preview": preview,
        "page": list_page(request, preview.people, size=PAGE_SIZE),
    }
    return render(request, "own/campaign_bonus.html", values)


@require_safe
def show_coverage(request: HttpRequest, code: str, slug: str) -> HttpResponse:
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
def show_place(request: HttpRequest, code: str, slug: str, pk: int) -> HttpResponse:
    """Show one participant: pauses, appeal and submitted work; POST stores a decision."""
    campaign = find_campaign(request, code, slug)
    rows = campaign.all_places.select_related("campaign__task", "annotator")
    place_row = get_object_or_404(rows, pk=pk)
    form = PlaceForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with show_as_form_error(form):
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
    status = get_form_status(form)
    return render(request, "own/campaign_place.html", values, status=status)


def _list_answers(place: Place) -> list[tuple[str, str]]:
    """Return (question, answer) for each question that the participant answered, both as text."""
    answers = place.answers or {}
    answered_questions = []
    for question in read_questionnaire(place.campaign.questions).answered_fields:
        if answers.get(question.name) is not None:
            words = question.kind.display(question, answers[question.name])
            answered_questions.append((question.title, words))
    return answered_questions


def _decide_place(request: HttpRequest, place: Place, form: PlaceForm) -> None:
    """Carry out the owner's decision from the form. Raises Refused."""
    actor, reason = get_person(request), form.cleaned_data["reason"]
    decision = form.cleaned_data["to"]
    if decision in ("approve", "reject"):
        approve = decision == "approve"
        # The panel decides about its money, so the decision goes there where it can be asked.
        if payment_services.build_panel_client(place.campaign):
            payment_services.plan_decision(place=place, actor=actor, approve=approve, reason=reason)
        else:
            services.review_place(place=place, actor=actor, approve=approve, reason=reason)
    elif decision == "pause":
        concerns = [
            concern
            for concern in find_quality_concerns(place.campaign)
            if concern.place.pk == place.pk
        ]
        evidence = concerns[0].evidence if concerns else {}
        evidence["reason"] = reason
        quality_services.pause_place(place=place, actor=actor, evidence=evidence)
    elif last_pause := place.pauses.last():
        quality_services.answer_appeal(
            pause=last_pause, actor=actor, text=reason, lift=decision == "lift"
        )


@require_safe
def download_file(request: HttpRequest, code: str, slug: str, kind: str) -> HttpResponse:
    """Download one of the campaign's CSV files, such as the ledger or the bank transfers."""
    campaign = find_campaign(request, code, slug)
    if kind not in FILES:
        raise Http404
    response = respond_with_csv(FILES[kind](campaign), f"{slug}-{kind}.csv")
    # Files with panels' ids or amounts must not stay in caches.
    response["Cache-Control"] = "no-store"
    return response
