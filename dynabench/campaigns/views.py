"""The pages of people who take part, `/c/<slug>/…`: arrive, agree, work, finish or leave."""

from typing import Any

from allauth.account.adapter import get_adapter
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import person
from core.errors import Refused
from core.text.markdown import render_markdown
from core.web.refusals import as_form_error, as_message
from core.web.throttles import is_used_up
from dynabench.campaigns import place_services, quality_services
from dynabench.campaigns.before import qualification_services
from dynabench.campaigns.before.qualification_items import Item, items_of, lacks_items, shown
from dynabench.campaigns.before.questionnaire_services import answer_questions
from dynabench.campaigns.before.tour import tour_of
from dynabench.campaigns.forms import ConsentForm, QuestionnaireForm
from dynabench.campaigns.invitations import invited, is_invited
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.place_services import NoPlace
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import done_of, ids_of, may_submit, pay_of
from dynabench.campaigns.session import (
    arrival_of,
    enter,
    forget_arrival,
    is_of_panel,
    keep_arrival,
)
from dynabench.campaigns.ways.panels import PANELS, Arrival
from validation.models import Gold

State = Place.State
WORK = {
    "write": "annotation:write",
    "judge": "validation:judge",
    "arena": "leaderboard:battle",
}


def _find(request: HttpRequest, slug: str) -> Campaign:
    """The campaign; its page may be framed where it is Mechanical Turk's."""
    found = get_object_or_404(Campaign.objects.select_related("task"), slug=slug)
    request.is_framed = found.way == Campaign.Way.MTURK  # type: ignore[attr-defined]
    return found


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD"])
def arrive(request: HttpRequest, slug: str) -> HttpResponse:
    """Who comes by the panel's link goes on at the clean address, to the text to agree to.

    Nothing is stored here before the yes; the browser keeps who came. In a panel's preview nobody
    comes.
    """
    campaign = _find(request, slug)
    panel = PANELS.get(campaign.way)
    if panel and panel.is_preview(request.GET.dict()):
        return _page(request, campaign, "campaigns/preview.html", _texts(campaign))
    if came := _arrival(request, campaign):
        response = redirect("campaigns:arrive", slug)
        keep_arrival(response, campaign, came)
        return response
    if arrival := arrival_of(request, campaign):
        place = place_services.known_place(campaign, arrival)
        return _back(request, place) if place else _asked(request, campaign)
    if request.user.is_authenticated:
        mine = campaign.all_places.filter(annotator__user=request.user)
        if mine.exists():
            return redirect("campaigns:progress", slug)
    if not _is_by_account(request, campaign):
        return _page(request, campaign, "campaigns/no_id.html", status=400)
    if not request.user.is_authenticated or is_of_panel(request):
        return redirect_to_login(request.path)
    return _asked(request, campaign)


def _arrival(request: HttpRequest, campaign: Campaign) -> Arrival | None:
    """Who comes, by the address; None where it names nobody."""
    if campaign.way == Campaign.Way.INVITATION:
        return invited(campaign, request.GET.get("key", ""))
    panel = PANELS.get(campaign.way)
    return panel.read(request.GET.dict()) if panel else None


def _is_by_account(request: HttpRequest, campaign: Campaign) -> bool:
    """Whether people of this site come with their account; of an invitation, who has one."""
    if campaign.way == Campaign.Way.INVITATION:
        return is_invited(campaign, request.user)
    return campaign.way == Campaign.Way.ACCOUNT


def _back(request: HttpRequest, place: Place) -> HttpResponse:
    """Who took part before goes on where they were.

    A link alone signs nobody in, as any page of the web may lead a browser to it: people say yes.
    """
    if place.annotator is None or place.annotator.user is None:
        return _page(request, place.campaign, "campaigns/left.html", status=410)
    if request.user == place.annotator.user:
        return redirect("campaigns:progress", place.campaign.slug)
    return _page(request, place.campaign, "campaigns/back.html")


@never_cache
@login_not_required
@require_POST
def go_on(request: HttpRequest, slug: str) -> HttpResponse:
    """Sign in who took part before, as their browser's cookie says."""
    campaign = _find(request, slug)
    arrival = arrival_of(request, campaign)
    place = place_services.known_place(campaign, arrival) if arrival else None
    if arrival is None or place is None or place.annotator is None or not place.annotator.user:
        return redirect("campaigns:arrive", slug)
    enter(request, place, back=arrival.back)
    response = redirect("campaigns:progress", slug)
    forget_arrival(response, campaign)
    return response


def _asked(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    """The text to agree to; a kind word where there is no place."""
    if is_used_up("arriving", get_adapter().get_client_ip(request)):
        return _no_place(request, campaign, "busy", status=429)
    try:
        place_services.check_place(campaign=campaign)
    except NoPlace as error:
        return _no_place(request, campaign, error.code)
    return _consent_page(request, campaign, ConsentForm(campaign))


def _no_place(
    request: HttpRequest, campaign: Campaign, why: str, *, status: int = 200
) -> HttpResponse:
    values = {"why": why, **_way_back(campaign, campaign.code_returned)}
    return _page(request, campaign, "campaigns/no_place.html", values, status=status)


def _way_back(campaign: Campaign, code: str) -> dict[str, str]:
    """The panel's code, and the address that takes it."""
    panel = PANELS.get(campaign.way)
    url = panel.way_back(campaign.completion_url, code) if panel else ""
    return {"code": code, "back_url": url}


def _consent_page(
    request: HttpRequest, campaign: Campaign, form: ConsentForm, *, is_again: bool = False
) -> HttpResponse:
    values = {"form": form, "is_again": is_again, **_texts(campaign)}
    status = 422 if form.errors else 200
    return _page(request, campaign, "campaigns/consent.html", values, status=status)


def _texts(campaign: Campaign) -> dict[str, str]:
    """What people read before they agree."""
    text = campaign.consents.first()
    return {
        "text": render_markdown(text.text) if text else "",
        "ethics": render_markdown(campaign.ethics),
    }


def _page(
    request: HttpRequest,
    campaign: Campaign,
    template: str,
    values: dict[str, Any] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    told = {"campaign": campaign, **(values or {})}
    return render(request, template, told, status=status)


@never_cache
@login_not_required
@require_POST
def consent(request: HttpRequest, slug: str) -> HttpResponse:
    """A yes stores the person and signs them in; of a no nothing stays."""
    campaign = _find(request, slug)
    arrival = arrival_of(request, campaign)
    by_account = request.user.is_authenticated and _is_by_account(request, campaign)
    is_known = arrival and place_services.known_place(campaign, arrival)
    if is_known or (arrival is None and (not by_account or is_of_panel(request))):
        return redirect("campaigns:arrive", slug)
    if "no" in request.POST:
        return _gone(request, campaign, "no")
    form = ConsentForm(campaign, request.POST)
    if not form.is_valid():
        return _consent_page(request, campaign, form)
    text = get_object_or_404(campaign.consents, number=form.cleaned_data["number"])
    with as_form_error(form):
        try:
            taken, secret = place_services.take_place(
                campaign=campaign, consent=text, arrival=arrival,
                user=None if arrival else person(request),
                address=get_adapter().get_client_ip(request) or "",
            )  # fmt: skip
        except NoPlace as error:
            return _gone(request, campaign, error.code)
        enter(request, taken, back=arrival.back if arrival else "")
        return _agreed(request, campaign, secret if arrival else "")
    return _consent_page(request, campaign, form)


def _gone(request: HttpRequest, campaign: Campaign, why: str) -> HttpResponse:
    """The way back, and the browser need not know who came."""
    response = _no_place(request, campaign, why)
    forget_arrival(response, campaign)
    return response


def _agreed(request: HttpRequest, campaign: Campaign, secret: str) -> HttpResponse:
    """The personal link, once; who has an account needs none."""
    if secret:
        url = request.build_absolute_uri(reverse("personal", args=[secret]))
        response = _page(request, campaign, "campaigns/agreed.html", {"url": url})
    else:
        response = redirect("campaigns:progress", campaign.slug)
    forget_arrival(response, campaign)
    return response


def _mine(request: HttpRequest, slug: str) -> Place:
    """The signed-in person's place. Raises Http404."""
    campaign = _find(request, slug)
    mine = campaign.all_places.select_related("consent", "annotator", "campaign__task")
    return get_object_or_404(mine, annotator__user=person(request))


@never_cache
@require_http_methods(["GET", "HEAD"])
def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """What is done and what is left; once all is submitted, the way back to the panel."""
    place = _mine(request, slug)
    campaign = place.campaign
    newest = campaign.consents.first()
    if place.consent != newest and place.state in (State.WORKING, State.LAPSED):
        return _consent_page(request, campaign, ConsentForm(campaign), is_again=True)
    if place.state == State.TESTING:
        return redirect("campaigns:test", slug)
    done, pause = done_of(place), place.pauses.last()
    is_working = place.state in (State.WORKING, State.LAPSED)
    goes_on = is_working and (pause is None or pause.lifted_at is not None)
    has_work = goes_on and not done.is_enough and not place_services.note_end_of_work(place, done)
    values = {
        "place": place,
        "may_submit": is_working and may_submit(place, done),
        "done": done,
        "has_work": has_work,
        "is_out_of_work": goes_on and not done.is_enough and not has_work,
        "pay": pay_of(place, done) if done.amount else campaign.pay_test,
        "work": [(WORK[name], n) for name, n in done.parts],
        "pause": pause,
        "late_until": place.expires_at + campaign.late,
        "is_working": is_working,
        "help": render_markdown(campaign.help_text),
        **_way_back(campaign, _code(place)),
        "turk": ids_of(place) if campaign.way == Campaign.Way.MTURK else None,
    }
    return _page(request, campaign, "campaigns/progress.html", values)


@never_cache
@require_http_methods(["GET", "HEAD"])
def next_work(request: HttpRequest, slug: str) -> HttpResponse:
    """Go to the work that is not done; to the page of the progress, which says more, if none is."""
    place = _mine(request, slug)
    campaign = place.campaign
    if place.state == State.WORKING and place.consent == campaign.consents.first():
        done = done_of(place)
        left = [name for name, n in done.parts if n < campaign.each]
        if left and not place_services.note_end_of_work(place, done):
            return redirect(WORK[left[0]], campaign.task.code)
    return redirect("campaigns:progress", slug)


def _code(place: Place) -> str:
    """The panel's code for how somebody's part ended."""
    campaign = place.campaign
    is_part = campaign.pays_parts_as_bonus and place.part_pay is not None
    if place.state in (State.RETURNED, State.OVER) or is_part:
        return campaign.code_returned
    if place.state == State.SCREENED:
        return campaign.code_screened or campaign.code_returned
    return campaign.code_done


@require_POST
def agree_again(request: HttpRequest, slug: str) -> HttpResponse:
    """A yes, or a no, to a new version of the text."""
    place = _mine(request, slug)
    if "no" in request.POST:
        place_services.give_back(place=place)
        return redirect("campaigns:progress", slug)
    form = ConsentForm(place.campaign, request.POST)
    if not form.is_valid():
        return _consent_page(request, place.campaign, form, is_again=True)
    text = get_object_or_404(place.campaign.consents, number=form.cleaned_data["number"])
    with as_message(request):
        place_services.agree_again(place=place, consent=text)
    return redirect("campaigns:progress", slug)


@require_POST
def finish(request: HttpRequest, slug: str) -> HttpResponse:
    """Submit, once everything is done or no work is left."""
    place = _mine(request, slug)
    done = done_of(place)
    if place.state in (State.WORKING, State.LAPSED) and not may_submit(place, done):
        place_services.note_end_of_work(place, done)
    with as_message(request):
        enter(request, place_services.submit(place=place))
    return redirect("campaigns:progress", slug)


@require_POST
def leave(request: HttpRequest, slug: str) -> HttpResponse:
    """Give the place back before the end."""
    place_services.give_back(place=_mine(request, slug))
    enter(request, _mine(request, slug))
    return redirect("campaigns:progress", slug)


@require_POST
def appeal(request: HttpRequest, slug: str) -> HttpResponse:
    """Say why one disagrees with a pause."""
    place = _mine(request, slug)
    with as_message(request):
        quality_services.appeal(place=place, text=request.POST.get("appeal", "").strip())
        messages.success(request, _("The owner reads what you wrote."))
    return redirect("campaigns:progress", slug)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def questions(request: HttpRequest, slug: str) -> HttpResponse:
    """What the study asks before all else, once."""
    place = _mine(request, slug)
    if place.state != State.TESTING or place.answers is not None:
        return redirect("campaigns:progress", slug)
    asked = read_questionnaire(place.campaign.questions)
    form = QuestionnaireForm(asked, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with as_form_error(form):
            answer_questions(place=place, answers=form.answers, about=form.about)
            enter(request, _mine(request, slug))
            return redirect("campaigns:progress", slug)
    told = {"form": form, "is_about": bool(asked.about)}
    status = 422 if form.errors else 200
    return _page(request, place.campaign, "campaigns/questions.html", told, status=status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def test(request: HttpRequest, slug: str) -> HttpResponse:
    """The guided tour and the test: a try is sent as a whole, and answered with explanations."""
    place = _mine(request, slug)
    if place.state != State.TESTING:
        return redirect("campaigns:progress", slug)
    if place.campaign.questions and place.answers is None:
        return redirect("campaigns:questions", slug)
    row = qualification_services.begin(place=place)
    golds = [] if row.passed_at else items_of(place, row.tries)
    tour = tour_of(place.campaign)
    qualification_services.note_tour(place=place, tour=tour)
    values: dict[str, Any] = {
        "row": row,
        "lacks_items": lacks_items(place.campaign, row, golds),
        "steps": tour,
        "items": [
            shown(place, gold, request.POST.get(str(gold.example.uuid), "")) for gold in golds
        ],
    }
    if request.method == "POST":
        try:
            row = qualification_services.take_test(place=place, answers=request.POST.dict())
        except Refused as error:
            told = {**values, "refused": str(error)}
            return _page(request, place.campaign, "campaigns/test.html", told, status=422)
        place = _mine(request, slug)
        enter(request, place)
        if values["lacks_items"]:
            return redirect("campaigns:progress", slug)
        may_begin = place.state == State.WORKING
        if may_begin and not golds:  # nothing was asked, so there is nothing to tell
            return redirect("campaigns:next", slug)
        asked = list(zip(values["items"], golds, strict=True))
        missed = _missed(asked, request.POST.dict())
        told = {"row": row, "missed": missed, "may_begin": may_begin}
        return _page(request, place.campaign, "campaigns/tested.html", told)
    return _page(request, place.campaign, "campaigns/test.html", values)


def _missed(asked: list[tuple[Item, Gold]], said: dict[str, str]) -> list[tuple[Item, str, str]]:
    """The items that were answered otherwise, with the right answer and why it is."""
    found = []
    for item, gold in asked:
        right = f"label:{gold.label}" if gold.label else f"verdict:{gold.verdict}"
        if said.get(str(item.example.uuid)) != right:
            found.append((item, dict(item.answers).get(right, right), gold.explanation))
    return found
