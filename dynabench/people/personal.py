"""The page behind the personal link of people without an account, to see and delete their data."""

from typing import Any

from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation.models import Example
from core.accounts.models import Annotator, User
from core.accounts.tokens import hash_key
from core.web.htmx import get_form_status
from dynabench.campaigns.models import ACTIVE_STATES, LedgerRow, Place
from dynabench.people.data import respond_with_export
from dynabench.people.deletion.services import delete_person
from dynabench.people.forms import LeaveForm
from leaderboard.models import Battle
from validation.models import Validation


def _find_place(key: str) -> tuple[Place, Annotator, User]:
    """Return the place with this secret, its annotator and the annotator's user. Raises Http404."""
    rows = Place.objects.select_related("campaign__task", "annotator__user", "consent")
    # Only a digest is stored, so a copy of the database opens nobody's page.
    place = rows.filter(digest=hash_key(key)).first()
    if place is None or place.annotator is None or place.annotator.user is None:
        raise Http404
    return place, place.annotator, place.annotator.user


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD"])
def show_personal_data(request: HttpRequest, key: str) -> HttpResponse:
    """Show what is stored about the person, with links to download or delete it."""
    place, _annotator, _user = _find_place(key)
    return render(request, "me/personal.html", {"place": place, "key": key})


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete_personal_data(request: HttpRequest, key: str) -> HttpResponse:
    """Show what would be deleted. A POST deletes it if the person has ticked the box."""
    _place, annotator, user = _find_place(key)
    # An unticked box is sent as nothing, so an empty POST is a form that was sent.
    data = request.POST if request.method == "POST" else None
    form = LeaveForm(data)
    if form.is_valid():
        # Before the user is gone, on whom the session depends.
        logout(request)
        delete_person(user=user)
        return render(request, "me/personal.html", {"is_gone": True})
    values = {"form": form, "key": key, **_describe_deletion(annotator)}
    return render(request, "me/personal_delete.html", values, status=get_form_status(form))


def _describe_deletion(annotator: Annotator) -> dict[str, Any]:
    """Return the template's values: how much the person has made, and their studies.

    Of each study, they say whether the person still takes part and how much money is owed.
    """
    examples = Example.objects.filter(annotator=annotator, retracted_at=None)
    studies = []
    for place in annotator.places.select_related("campaign").prefetch_related("ledger"):
        studies.append((place, place.state in ACTIVE_STATES, _compute_owed_amount(place)))
    return {
        "written": examples.count(),
        "released": examples.filter(dataset_items__isnull=False).distinct().count(),
        "judged": Validation.objects.filter(validator=annotator).count(),
        "compared": Battle.objects.filter(voter=annotator).count(),
        "studies": studies,
    }


def _compute_owed_amount(place: Place) -> int:
    """Return what is owed to the person for a place, in the currency's smallest unit."""
    owed_amount = 0
    for row in place.ledger.all():  # prefetched
        if row.kind == LedgerRow.Kind.PAID:
            owed_amount -= row.amount
        else:
            owed_amount += row.amount
    return owed_amount


@never_cache
@login_not_required
@require_GET
def download_personal_data(request: HttpRequest, key: str) -> StreamingHttpResponse:
    """Download everything about the person as JSON."""
    _place, annotator, user = _find_place(key)
    return respond_with_export(user, annotator)
