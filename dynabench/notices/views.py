"""The page behind the link in a digest."""

from django.contrib.auth.decorators import login_not_required
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from dynabench.accounts.models import User
from dynabench.notices.models import Digest
from dynabench.notices.services import person_of, set_digest


@login_not_required
@csrf_exempt  # mail programs post here (RFC 8058); the link itself says who may
@require_http_methods(["GET", "POST"])
def off(request: HttpRequest, token: str) -> HttpResponse:
    """Switch the digest off, or on again, without signing in. A GET changes nothing."""
    try:
        user = person_of(token)
    except (BadSignature, User.DoesNotExist):
        raise Http404 from None
    if request.method == "POST":
        set_digest(user=user, is_off=request.POST.get("digest") != "on")
    is_off = Digest.objects.filter(user=user, is_off=True).exists()
    return render(request, "notices/off.html", {"is_off": is_off, "token": token})
