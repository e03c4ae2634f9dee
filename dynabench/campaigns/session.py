"""A participant's browser session: a cookie before the consent, a restricted session after it.

Panel participants sign in without a password, so they may only open the pages of their work.
"""

import json
from collections.abc import Callable
from http.cookies import Morsel
from typing import Any

from django.conf import settings
from django.contrib.auth import login, logout
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from core.accounts.people import get_person
from core.data.encryption import UnreadableSecret, decrypt, encrypt
from core.web.outages import respond_api_error
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.panel_pages import may_open_page
from dynabench.campaigns.place_services import hide_earlier_work
from dynabench.campaigns.ways.panels import MTURK_HOSTS, Arrival
from dynabench.middleware import build_policy_header

COOKIE_NAME = "arrival"
COOKIE_SECONDS = 3600
FRAME_KEY = "campaign-framed"
SLUG_KEY = "campaign"
WORK_PAGE_PREFIXES = ("annotation:", "validation:", "leaderboard:battle")
# In SQL, as each request of somebody at work asks it: Django takes longer to build the query than
# the database to answer it.
PAUSED_CAMPAIGN_SQL = """
SELECT campaign.slug FROM campaigns_pause AS pause
  JOIN campaigns_place AS place ON place.id = pause.place_id
  JOIN campaigns_campaign AS campaign ON campaign.id = place.campaign_id
  JOIN tasks_task AS task ON task.id = campaign.task_id
  JOIN accounts_annotator AS annotator ON annotator.id = place.annotator_id
WHERE annotator.user_id = %s AND task.code = %s AND pause.lifted_at IS NULL
ORDER BY pause.id LIMIT 1
"""
# Python knows this attribute of cookies from 3.14 on.
Morsel._reserved.setdefault("partitioned", "Partitioned")  # type: ignore[attr-defined]
Morsel._flags.add("partitioned")  # type: ignore[attr-defined]


def store_arrival(response: HttpResponse, campaign: Campaign, arrival: Arrival) -> None:
    """Store the arrival in an encrypted cookie; the site itself stores nothing."""
    cookie_data = {"campaign": campaign.pk, "arrival": list(arrival)}
    # Only below the campaign's pages, and for an hour: long enough to read and agree.
    response.set_cookie(
        COOKIE_NAME,
        encrypt(json.dumps(cookie_data)),
        max_age=COOKIE_SECONDS,
        path=f"/c/{campaign.slug}/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def read_arrival(request: HttpRequest, campaign: Campaign) -> Arrival | None:
    """Return the arrival from the browser's cookie for this campaign, or None."""
    try:
        cookie_data = json.loads(decrypt(request.COOKIES.get(COOKIE_NAME, "")) or "{}")
    except (UnreadableSecret, ValueError):
        return None
    return Arrival(*cookie_data["arrival"]) if cookie_data.get("campaign") == campaign.pk else None


def forget_arrival(response: HttpResponse, campaign: Campaign) -> None:
    """Delete the arrival cookie."""
    response.delete_cookie(COOKIE_NAME, path=f"/c/{campaign.slug}/")


def sign_in_participant(request: HttpRequest, place: Place, *, frame_host: str = "") -> None:
    """Sign in the person who holds the place, and sign out anybody else in this browser.

    A new sign-in deletes the person's drafts (`hide_earlier_work`). Their IP address is not
    stored. frame_host: the panel's host that frames the pages, or "".
    """
    assert place.annotator
    assert place.annotator.user
    user = place.annotator.user
    # Two people may share a browser; the second must not act for the first.
    if request.user.is_authenticated and request.user != user:
        logout(request)
    if not request.user.is_authenticated:
        login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
        hide_earlier_work(user=user)
    request.session[SLUG_KEY] = place.campaign.slug
    request.is_narrow = is_panel_participant(request)  # type: ignore[attr-defined]
    if frame_host:
        request.session[FRAME_KEY] = frame_host


def is_panel_participant(request: HttpRequest) -> bool:
    """Return whether the signed-in person came from a panel, without an account of their own."""
    user = request.user
    return user.is_authenticated and user.is_panel_participant


class PanelParticipantMiddleware(MiddlewareMixin):
    """A middleware that redirects panel participants and paused people to their campaign."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Return a redirection to the campaign; None if the request may proceed.

        1. Paused people do no work in the task.
        2. Panel participants open only the pages of their study's task and a few others.
        """
        match = request.resolver_match
        # The status page is the same for everybody, so nothing is asked about the person.
        if match is None or match.view_name == "status" or not request.user.is_authenticated:
            return None
        slug = request.session.get(SLUG_KEY)
        code = kwargs.get("code")
        if (
            code
            and match.view_name.startswith(WORK_PAGE_PREFIXES)
            and (slug or request.method == "POST")
        ):
            # People with an account may have signed in again, which ends the session that knew
            # their campaign, so every POST is looked up.
            with connection.cursor() as cursor:
                cursor.execute(PAUSED_CAMPAIGN_SQL, [request.user.pk, code])
                paused_row = cursor.fetchone()
            if paused_row:
                return redirect("campaigns:progress", *paused_row)
        if not is_panel_participant(request):
            return None
        # The layout shows such people no links to other pages.
        request.is_narrow = True  # type: ignore[attr-defined]
        if may_open_page(match.view_name, kwargs, get_person(request)):
            return None
        if match.namespace == "v1":
            return respond_api_error(
                "study", "Panel participants work on the site's pages, not through the API.", 403
            )
        return redirect("campaigns:progress", slug) if slug else redirect("help")


class FrameMiddleware(MiddlewareMixin):
    """A middleware that lets only Mechanical Turk frame its participants' pages.

    Cookies in a frame of another host need `SameSite=None`; `Partitioned` separates them
    per host (CHIPS), as browsers that block third-party cookies require.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Add the host to the content security policy and drop X-Frame-Options.

        X-Frame-Options cannot name a host.
        """
        session = getattr(request, "session", None)
        is_framed = getattr(request, "is_framed", False)
        # Without this check every answer would read the session, and vary by its cookie.
        if session is not None and session.accessed:
            is_framed = is_framed or FRAME_KEY in session
        if not is_framed:
            return response
        hosts = list(MTURK_HOSTS)
        form_action = ["'self'", *hosts]
        response["Content-Security-Policy"] = build_policy_header(
            frame_ancestors=hosts, form_action=form_action
        )
        response.headers.pop("X-Frame-Options", None)
        for cookie in response.cookies.values():
            cookie["samesite"], cookie["secure"] = "None", True
            cookie["partitioned"] = True
        return response
