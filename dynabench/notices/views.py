"""The pages of a person's news and of the switches of mails, also behind the link in a mail."""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from core.accounts.models import User
from core.accounts.people import person
from dynabench.notices import services
from dynabench.notices.inbox import see_items
from dynabench.notices.models import Digest
from dynabench.notices.registry import list_switches
from tasks.mails import read_unsubscribe_token, refuse_invitations


@require_http_methods(["GET", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Show the news of the past seven days, open assignments and the email settings."""
    me = person(request)
    if request.method == "POST":
        _store_switch(request, me, request.POST.get("kind", ""))
        return redirect("news")
    return _render_page(request, me, {"news": see_items(request)})


@login_not_required
@csrf_exempt  # mail programs post here (RFC 8058); the link itself says who may
@require_http_methods(["GET", "POST"])
def off(request: HttpRequest, token: str) -> HttpResponse:
    """Switch emails off or on without signing in. GET changes nothing."""
    try:
        # The link is signed; whoever has it may switch mails off, and do nothing else.
        user = services.find_token_user(token)
    except (BadSignature, User.DoesNotExist):
        raise Http404 from None
    if request.method == "POST":
        _store_switch(request, user, request.POST.get("kind") or request.GET.get("kind", ""))
    return _render_page(request, user, {"token": token})


def _store_switch(request: HttpRequest, user: User, kind: str) -> None:
    """Store the form's switch for all emails or one kind. Raises Http404 for an unknown kind."""
    if kind and kind not in list_switches():
        raise Http404
    services.set_digest(user=user, is_off=request.POST.get("digest") != "on", kind=kind)


def _render_page(request: HttpRequest, user: User, values: dict[str, Any]) -> HttpResponse:
    """Render the page with the email switches."""
    digest = Digest.objects.filter(user=user).first() or Digest()
    kinds = [(kind, label, kind in digest.wanted) for kind, label in list_switches().items()]
    context = {"kinds": kinds, "is_off": digest.is_off} | values
    return render(request, "notices/off.html", context)


@login_not_required
@csrf_exempt  # as above
@require_http_methods(["GET", "POST"])
def uninvited(request: HttpRequest, token: str) -> HttpResponse:
    """Record that an address no longer wants invitations. GET changes nothing."""
    try:
        digest = read_unsubscribe_token(token)
    except BadSignature:
        raise Http404 from None
    if request.method == "POST":
        refuse_invitations(digest=digest)
    return render(request, "notices/uninvited.html", {"is_done": request.method == "POST"})
