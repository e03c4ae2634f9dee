"""The page at which people arrive for a study, `/s/<slug>/`: it leads to the drawn arm."""

from allauth.account.adapter import get_adapter
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.accounts.people import get_person
from core.web.throttles import is_used_up
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.place_services import NoPlace
from dynabench.campaigns.selectors import decrypt_panel_ids
from dynabench.campaigns.session import is_panel_participant, store_arrival
from dynabench.campaigns.ways.panels import Arrival
from dynabench.studies.models import Study
from dynabench.studies.services import draw_person


@never_cache
@login_not_required
@require_http_methods(["GET"])
def show_study_arrival(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw an arm for a newcomer, and lead everybody to the campaign of their arm.

    1. In a panel's preview, lead to the first arm's preview. Nothing is drawn.
    2. A person with a panel's ids, or with an account, is led to their arm.
    3. Others sign in, or read that the ids are missing.
    """
    # A pilot has simulated people only, who don't come by pages.
    studies = Study.objects.exclude(state=Study.State.DRAFT).filter(pilot_of=None)
    study = get_object_or_404(studies, code=slug)
    first_arm = study.arms.select_related("campaign__task").first()
    assert first_arm is not None
    # All arms recruit in the same way.
    campaign = first_arm.campaign
    query, panel = request.GET.dict(), campaign.way_in.panel
    if panel and panel.is_preview(query):
        return _lead_to_campaign(request, campaign)
    arrival = panel.read(query) if panel else None
    if panel and arrival is None:
        # Who has submitted a part goes on without the ids in the address.
        arrival = _find_known_arrival(request, study)
    if panel and arrival is None:
        return render(request, "campaigns/no_id.html", {"campaign": campaign}, status=400)
    has_account = request.user.is_authenticated and not is_panel_participant(request)
    if not panel and not has_account:
        return redirect_to_login(request.path)
    # Before the draw, so that invented ids don't fill the urns.
    if is_used_up("arriving", get_adapter().get_client_ip(request)):
        return _render_no_place(request, campaign, "busy", status=429)
    try:
        user = None if arrival else get_person(request)
        arm = draw_person(study=study, arrival=arrival, user=user)
    except NoPlace as error:
        return _render_no_place(request, campaign, error.code)
    response = _lead_to_campaign(request, arm.campaign)
    if arrival and not query:
        store_arrival(response, arm.campaign, arrival)
    return response


def _find_known_arrival(request: HttpRequest, study: Study) -> Arrival | None:
    """Return the panel's ids of the signed-in participant of one of the study's arms, or None."""
    if not request.user.is_authenticated:
        return None
    places = Place.objects.filter(campaign__study_arm__study=study, annotator__user=request.user)
    place = places.select_related("campaign").first()
    return decrypt_panel_ids(place) if place else None


def _lead_to_campaign(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    """Redirect to a campaign with the panel's ids of this request."""
    url = reverse("campaigns:arrive", args=[campaign.slug])
    # The campaign reads the ids itself, and takes them out of the address.
    query = request.GET.urlencode()
    return redirect(f"{url}?{query}" if query else url)


def _render_no_place(
    request: HttpRequest, campaign: Campaign, reason: str, *, status: int = 200
) -> HttpResponse:
    """Render why nobody can join now, with the way back to the panel."""
    panel, code = campaign.way_in.panel, campaign.code_returned
    back_url = panel.build_way_back(campaign.completion_url, code) if panel else ""
    values = {"campaign": campaign, "why": reason, "code": code, "back_url": back_url}
    return render(request, "campaigns/no_place.html", values, status=status)
