"""The participants' pages, `/c/<slug>/…`: arrive, agree, work, finish or leave."""

from collections.abc import Mapping, Sequence
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

from core.accounts.people import get_person
from core.errors import Refused
from core.text.markdown import render_markdown
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from core.web.throttles import is_used_up
from dynabench.campaigns import place_services, quality_services
from dynabench.campaigns.before import qualification_services
from dynabench.campaigns.before.qualification_items import (
    QualificationItem,
    build_item,
    draw_test_items,
    lacks_test_items,
)
from dynabench.campaigns.before.questionnaire_services import (
    answer_closing_questions,
    answer_questions,
)
from dynabench.campaigns.before.tour import build_tour
from dynabench.campaigns.forms import ConsentForm, QuestionnaireForm
from dynabench.campaigns.invitations import is_invited, read_link_key
from dynabench.campaigns.models import WORKING_STATES, Campaign, Place
from dynabench.campaigns.place_services import NoPlace
from dynabench.campaigns.questions import find_next_part, find_study_door
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import (
    calculate_pay,
    count_done_work,
    decrypt_panel_ids,
    may_submit,
)
from dynabench.campaigns.session import (
    forget_arrival,
    is_panel_participant,
    read_arrival,
    sign_in_participant,
    store_arrival,
)
from dynabench.campaigns.ways.panels import Arrival
from validation.models import Gold

State = Place.State
WORK_PAGES = {
    "write": "annotation:write",
    "judge": "validation:judge",
    "arena": "leaderboard:battle",
}


def _find_campaign(request: HttpRequest, slug: str) -> Campaign:
    """Return the campaign, and allow its panel to frame this page if it does so. Raises Http404."""
    campaign = get_object_or_404(Campaign.objects.select_related("task"), slug=slug)
    request.is_framed = campaign.way_in.is_framed  # type: ignore[attr-defined]
    return campaign


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD"])
def show_arrival_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the consent form to a newcomer, or lead a participant back to their place.

    1. In a panel's preview, show the study.
    2. If the URL identifies a person, store their ids in a cookie and redirect to the URL
       without the ids.
    3. With that cookie, lead to their place, or show the consent form.
    4. With an account that the campaign admits, lead to their place, or show the consent
       form.

    Nothing is stored on the site before the consent.
    """
    campaign = _find_campaign(request, slug)
    panel = campaign.way_in.panel
    # Panels show the study to people who have not decided yet; they have no session.
    if panel and panel.is_preview(request.GET.dict()):
        return _render_page(request, campaign, "campaigns/preview.html", _render_texts(campaign))
    url_arrival = _find_arrival(request, campaign)
    if door := _find_door(request, campaign, url_arrival):
        return redirect(door)
    if url_arrival:
        response = redirect("campaigns:arrive", slug)
        store_arrival(response, campaign, url_arrival)
        return response
    if arrival := read_arrival(request, campaign):
        place = place_services.find_known_place(campaign, arrival)
        return _show_way_back(request, place) if place else _ask_consent(request, campaign)
    if request.user.is_authenticated:
        own_places = campaign.all_places.filter(annotator__user=request.user)
        if own_places.exists():
            return redirect("campaigns:progress", slug)
    if not _may_use_account(request, campaign):
        return _render_page(request, campaign, "campaigns/no_id.html", status=400)
    if not request.user.is_authenticated or is_panel_participant(request):
        return redirect_to_login(request.path)
    return _ask_consent(request, campaign)


def _find_door(request: HttpRequest, campaign: Campaign, url_arrival: Arrival | None) -> str:
    """Return the address of the study that draws this person first; empty if there is none."""
    arrival = url_arrival or read_arrival(request, campaign)
    has_account = request.user.is_authenticated and not is_panel_participant(request)
    # Nobody who is known by neither can be drawn.
    if not arrival and not has_account:
        return ""
    user = None
    # A panel's person has no account of their own, so only the panel's ids tell who they are.
    if arrival:
        is_known = place_services.find_known_place(campaign, arrival) is not None
    else:
        user = get_person(request)
        is_known = campaign.all_places.filter(annotator__user=user).exists()
    if is_known:
        return ""
    door = find_study_door(campaign, arrival, user)
    query = request.GET.urlencode()
    return f"{door}?{query}" if door and query else door


def _find_arrival(request: HttpRequest, campaign: Campaign) -> Arrival | None:
    """Return the arrival of the person whom the URL identifies; None if it identifies nobody."""
    if campaign.way_in.invites:
        return read_link_key(campaign, request.GET.get("key", ""))
    panel = campaign.way_in.panel
    return panel.read(request.GET.dict()) if panel else None


def _may_use_account(request: HttpRequest, campaign: Campaign) -> bool:
    """Return whether this person may take part with an account of the site."""
    if campaign.way_in.invites:
        return is_invited(campaign, request.user)
    return campaign.way_in.takes_accounts


def _show_way_back(request: HttpRequest, place: Place) -> HttpResponse:
    """Lead an earlier participant back to their place, or show a button to sign in there.

    A link alone does not sign anybody in, because any web page may lead a browser to it. Status 410
    if the person's data was deleted.
    """
    # They took part and had their data deleted since.
    if place.annotator is None or place.annotator.user is None:
        return _render_page(request, place.campaign, "campaigns/left.html", status=410)
    if request.user == place.annotator.user:
        return redirect("campaigns:progress", place.campaign.slug)
    return _render_page(request, place.campaign, "campaigns/back.html")


@never_cache
@login_not_required
@require_POST
def resume_participation(request: HttpRequest, slug: str) -> HttpResponse:
    """Sign in an earlier participant, identified by the arrival cookie."""
    campaign = _find_campaign(request, slug)
    arrival = read_arrival(request, campaign)
    place = place_services.find_known_place(campaign, arrival) if arrival else None
    if arrival is None or place is None or place.annotator is None or not place.annotator.user:
        return redirect("campaigns:arrive", slug)
    # The POST of a form on this site: no link of another page can send it.
    sign_in_participant(request, place, frame_host=arrival.back)
    response = redirect("campaigns:progress", slug)
    forget_arrival(response, campaign)
    return response


def _ask_consent(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    """Show the consent form, or a message if the campaign admits nobody now."""
    # An address that arrives very often makes the site look for no more places.
    if is_used_up("arriving", get_adapter().get_client_ip(request)):
        return _render_no_place(request, campaign, "busy", status=429)
    try:
        place_services.check_place(campaign=campaign)
    except NoPlace as error:
        return _render_no_place(request, campaign, error.code)
    return _render_consent(request, campaign, ConsentForm(campaign))


def _render_no_place(
    request: HttpRequest, campaign: Campaign, reason: str, *, status: int = 200
) -> HttpResponse:
    """Render the page that says why the person cannot take part, with a link to the panel.

    reason: the key of the reason, such as "full".
    """
    values = {"why": reason, **_build_way_back(campaign, campaign.code_returned)}
    return _render_page(request, campaign, "campaigns/no_place.html", values, status=status)


def _build_way_back(campaign: Campaign, code: str) -> dict[str, str]:
    """Return the panel's completion code and the panel URL that accepts it."""
    panel = campaign.way_in.panel
    url = panel.build_way_back(campaign.completion_url, code) if panel else ""
    return {"code": code, "back_url": url}


def _render_consent(
    request: HttpRequest, campaign: Campaign, form: ConsentForm, *, is_again: bool = False
) -> HttpResponse:
    """Render the consent form. is_again: whether the text has changed since the consent."""
    values = {"form": form, "is_again": is_again, **_render_texts(campaign)}
    status = get_form_status(form)
    return _render_page(request, campaign, "campaigns/consent.html", values, status=status)


def _render_texts(campaign: Campaign) -> dict[str, str]:
    """Return the texts that people read before they consent."""
    text = campaign.consents.first()
    return {
        "text": render_markdown(text.text) if text else "",
        "ethics": render_markdown(campaign.ethics),
    }


def _render_page(
    request: HttpRequest,
    campaign: Campaign,
    template: str,
    values: dict[str, Any] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Render a page of the campaign."""
    context = {"campaign": campaign} | (values or {})
    return render(request, template, context, status=status)


@never_cache
@login_not_required
@require_POST
def answer_consent(request: HttpRequest, slug: str) -> HttpResponse:
    """Give a consenting person a place and sign them in. If they refuse, store nothing."""
    campaign = _find_campaign(request, slug)
    arrival = read_arrival(request, campaign)
    if arrival:
        may_agree = place_services.find_known_place(campaign, arrival) is None
    else:
        has_account = request.user.is_authenticated and not is_panel_participant(request)
        may_agree = has_account and _may_use_account(request, campaign)
    if not may_agree:
        return redirect("campaigns:arrive", slug)
    if "no" in request.POST:
        return _render_refusal(request, campaign, "no")
    form = ConsentForm(campaign, request.POST)
    if not form.is_valid():
        return _render_consent(request, campaign, form)
    # The version that the person has read, which may not be the newest one any more.
    text = get_object_or_404(campaign.consents, number=form.cleaned_data["number"])
    with show_as_form_error(form):
        try:
            place, secret = place_services.take_place(
                campaign=campaign, consent=text, arrival=arrival,
                user=None if arrival else get_person(request),
                address=get_adapter().get_client_ip(request) or "",
            )  # fmt: skip
        except NoPlace as error:
            return _render_refusal(request, campaign, error.code)
        sign_in_participant(request, place, frame_host=arrival.back if arrival else "")
        # People with an account reach what is stored of them by signing in.
        return _respond_to_consent(request, campaign, secret if arrival else "")
    return _render_consent(request, campaign, form)


def _render_refusal(request: HttpRequest, campaign: Campaign, reason: str) -> HttpResponse:
    """Render the reason with a link to the panel, and delete the arrival cookie."""
    response = _render_no_place(request, campaign, reason)
    forget_arrival(response, campaign)
    return response


def _respond_to_consent(request: HttpRequest, campaign: Campaign, secret: str) -> HttpResponse:
    """Show the personal link once; without a secret, redirect to the progress page."""
    if secret:
        url = request.build_absolute_uri(reverse("personal", args=[secret]))
        response = _render_page(request, campaign, "campaigns/agreed.html", {"url": url})
    else:
        response = redirect("campaigns:progress", campaign.slug)
    forget_arrival(response, campaign)
    return response


def _find_own_place(request: HttpRequest, slug: str) -> Place:
    """Return the signed-in person's place. Raises Http404."""
    campaign = _find_campaign(request, slug)
    places = campaign.all_places.select_related("consent", "annotator", "campaign__task")
    return get_object_or_404(places, annotator__user=get_person(request))


@never_cache
@require_http_methods(["GET", "HEAD"])
def show_progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what is done and what is left; after submission, the way back to the panel."""
    place = _find_own_place(request, slug)
    campaign = place.campaign
    newest_consent = campaign.consents.first()
    # A new text asks everybody who still works.
    if place.consent != newest_consent and place.state in WORKING_STATES:
        return _render_consent(request, campaign, ConsentForm(campaign), is_again=True)
    if place.state == State.TESTING:
        return redirect("campaigns:test", slug)
    done_work, pause = count_done_work(place), place.pauses.last()
    is_working = place.state in WORKING_STATES
    may_continue = is_working and (pause is None or pause.lifted_at is not None)
    # Looking for work may give the person some, so it is done only where they need it.
    has_work = (
        may_continue
        and not done_work.is_enough
        and not place_services.note_end_of_work(place, done_work)
    )
    values = {
        "place": place,
        "may_submit": is_working and may_submit(place, done_work),
        "done": done_work,
        "has_work": has_work,
        "is_out_of_work": may_continue and not done_work.is_enough and not has_work,
        "pay": calculate_pay(place, done_work),
        "work": [(WORK_PAGES[name], n) for name, n in done_work.amounts],
        "pause": pause,
        "late_until": place.expires_at + campaign.late_time,
        "is_working": is_working,
        "next_part": find_next_part(place),
        "help": render_markdown(campaign.help_text),
        **_build_way_back(campaign, _choose_completion_code(place)),
        "turk": decrypt_panel_ids(place) if campaign.way_in.is_framed else None,
    }
    return _render_page(request, campaign, "campaigns/progress.html", values)


@never_cache
@require_http_methods(["GET", "HEAD"])
def open_next_work(request: HttpRequest, slug: str) -> HttpResponse:
    """Redirect to unfinished work, or to the progress page if none is left."""
    place = _find_own_place(request, slug)
    campaign = place.campaign
    if place.state == State.WORKING and place.consent == campaign.consents.first():
        done_work = count_done_work(place)
        # The first kind of work that is not done; the page of the progress offers the others.
        if done_work.unfinished_kinds and not place_services.note_end_of_work(place, done_work):
            return redirect(WORK_PAGES[done_work.unfinished_kinds[0]], campaign.task.code)
    return redirect("campaigns:progress", slug)


def _choose_completion_code(place: Place) -> str:
    """Return the panel's code for the way in which the participation ended."""
    campaign = place.campaign
    # They leave with the code of people who return, and get their pay as a bonus.
    is_part = campaign.pays_parts_as_bonus and place.part_pay is not None
    if place.state in (State.RETURNED, State.OVER) or is_part:
        return campaign.code_returned
    if place.state == State.SCREENED:
        return campaign.code_screened or campaign.code_returned
    return campaign.code_done


@require_POST
def agree_again(request: HttpRequest, slug: str) -> HttpResponse:
    """Store a person's consent to a new version of the text. If they refuse, end their place."""
    place = _find_own_place(request, slug)
    if "no" in request.POST:
        place_services.give_back_place(place=place)
        return redirect("campaigns:progress", slug)
    form = ConsentForm(place.campaign, request.POST)
    if not form.is_valid():
        return _render_consent(request, place.campaign, form, is_again=True)
    text = get_object_or_404(place.campaign.consents, number=form.cleaned_data["number"])
    with show_as_message(request):
        place_services.agree_again(place=place, consent=text)
    return redirect("campaigns:progress", slug)


@require_POST
def finish_work(request: HttpRequest, slug: str) -> HttpResponse:
    """Submit the work, if everything is done or no work is left."""
    place = _find_own_place(request, slug)
    done_work = count_done_work(place)
    if place.state in WORKING_STATES and not may_submit(place, done_work):
        # Where no work is left, a part may be submitted.
        place_services.note_end_of_work(place, done_work)
    elif place.state in WORKING_STATES and place_services.lacks_closing_answers(place):
        return redirect("campaigns:questions", slug)
    with show_as_message(request):
        # The session's campaign is from now on the one that was finished.
        sign_in_participant(request, place_services.submit_place(place=place))
    return redirect("campaigns:progress", slug)


@require_POST
def leave_study(request: HttpRequest, slug: str) -> HttpResponse:
    """End the person's participation before the work is submitted."""
    place_services.give_back_place(place=_find_own_place(request, slug))
    sign_in_participant(request, _find_own_place(request, slug))
    return redirect("campaigns:progress", slug)


@require_POST
def send_appeal(request: HttpRequest, slug: str) -> HttpResponse:
    """Store why the person disagrees with a pause."""
    place = _find_own_place(request, slug)
    with show_as_message(request):
        quality_services.submit_appeal(place=place, text=request.POST.get("appeal", "").strip())
        messages.success(request, _("Appeal sent. The owner will read it."))
    return redirect("campaigns:progress", slug)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def show_questionnaire(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the questionnaire before or after the work, and store the answers once."""
    place = _find_own_place(request, slug)
    if place.state in WORKING_STATES:
        return _ask_closing_questions(request, place)
    if place.state != State.TESTING or place.answers is not None:
        return redirect("campaigns:progress", slug)
    questionnaire = read_questionnaire(place.campaign.questions)
    form = QuestionnaireForm(questionnaire, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with show_as_form_error(form):
            answer_questions(place=place, answers=form.answers, about=form.about)
            sign_in_participant(request, _find_own_place(request, slug))
            return redirect("campaigns:progress", slug)
    values = {"form": form, "is_about": bool(questionnaire.about)}
    status = get_form_status(form)
    return _render_page(request, place.campaign, "campaigns/questions.html", values, status=status)


def _ask_closing_questions(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the questions after the work; with their answers, submit the work."""
    slug = place.campaign.slug
    may_answer = place_services.lacks_closing_answers(place)
    if not may_answer or not may_submit(place, count_done_work(place)):
        return redirect("campaigns:progress", slug)
    questionnaire = read_questionnaire(place.campaign.questions).closing_part
    form = QuestionnaireForm(questionnaire, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with show_as_form_error(form):
            answer_closing_questions(place=place, answers=form.answers)
            sign_in_participant(request, place_services.submit_place(place=place))
            return redirect("campaigns:progress", slug)
    values, status = {"form": form, "is_after": True}, get_form_status(form)
    return _render_page(request, place.campaign, "campaigns/questions.html", values, status=status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def show_test(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the guided tour and the test; POST stores a try and explains the wrong answers."""
    place = _find_own_place(request, slug)
    if place.state != State.TESTING:
        return redirect("campaigns:progress", slug)
    # The questions come first.
    if place.answers is None and read_questionnaire(place.campaign.questions).fields:
        return redirect("campaigns:questions", slug)
    row = qualification_services.get_qualification(place=place)
    golds = [] if row.passed_at else draw_test_items(place, row.tries)
    tour = build_tour(place.campaign)
    # People who saw an item here never judge it, so it is noted before they see it.
    qualification_services.note_tour(place=place, tour=tour)
    answers = request.POST.dict()
    items = [build_item(place, gold, answers.get(str(gold.example.uuid), "")) for gold in golds]
    values: dict[str, Any] = {
        "row": row,
        "lacks_test_items": lacks_test_items(place.campaign, row, golds),
        "steps": tour,
        "items": items,
    }
    if request.method != "POST":
        return _render_page(request, place.campaign, "campaigns/test.html", values)
    try:
        row = qualification_services.take_test(place=place, answers=answers)
    except Refused as error:
        values["refused"] = str(error)
        return _render_page(request, place.campaign, "campaigns/test.html", values, status=422)
    place = _find_own_place(request, slug)
    sign_in_participant(request, place)
    if values["lacks_test_items"]:
        return redirect("campaigns:progress", slug)
    may_begin = place.state == State.WORKING
    if may_begin and not golds:  # nothing was asked, so there is nothing to explain
        return redirect("campaigns:next", slug)
    missed_items = _list_missed_items(items, golds, answers)
    values = {"row": row, "missed": missed_items, "may_begin": may_begin}
    return _render_page(request, place.campaign, "campaigns/tested.html", values)


def _list_missed_items(
    items: Sequence[QualificationItem], golds: Sequence[Gold], answers: Mapping[str, str]
) -> list[tuple[QualificationItem, str, str]]:
    """Return each wrongly answered item with the right answer and the explanation."""
    missed_items = []
    for item, gold in zip(items, golds, strict=True):
        right_answer = f"label:{gold.label}" if gold.label else f"verdict:{gold.verdict}"
        if answers.get(str(item.example.uuid)) != right_answer:
            right_words = dict(item.answers).get(right_answer, right_answer)
            missed_items.append((item, right_words, gold.explanation))
    return missed_items
