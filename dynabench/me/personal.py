"""The page behind the personal link of people without an account: their data, and leaving."""

from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from dynabench.accounts.models import Annotator, User
from dynabench.accounts.tokens import digest_of
from dynabench.campaigns.models import Place
from dynabench.me.data import exported
from dynabench.me.services import delete_person


def _place(key: str) -> tuple[Place, Annotator, User]:
    """The place whose secret this is, and whose it is. Raises Http404."""
    rows = Place.objects.select_related("campaign__task", "annotator__user", "consent")
    place = rows.filter(digest=digest_of(key)).first()
    if place is None or place.annotator is None or place.annotator.user is None:
        raise Http404
    return place, place.annotator, place.annotator.user


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def personal(request: HttpRequest, key: str) -> HttpResponse:
    """What is stored about the person; a POST with `sure` deletes it, as for accounts."""
    place, _annotator, user = _place(key)
    if request.method == "POST" and request.POST.get("sure") == "yes":
        logout(request)
        delete_person(user=user)
        return render(request, "me/personal.html", {"is_gone": True})
    return render(request, "me/personal.html", {"place": place, "key": key})


@never_cache
@login_not_required
@require_GET
def download(request: HttpRequest, key: str) -> StreamingHttpResponse:
    """Everything about the person as JSON."""
    _found, annotator, user = _place(key)
    return exported(user, annotator)
