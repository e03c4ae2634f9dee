"""The pages of a person's news and of email switches, which links in emails open, too."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from core.accounts.models import User
from core.accounts.people import get_person
from dynabench.notices import digest_services
from dynabench.notices.inbox import open_inbox
from dynabench.notices.models import Digest
from dynabench.notices.registry import list_switches
from dynabench.notices.weekly_digest_services import WEEKLY, set_weekly_summary
from tasks.mails import read_unsubscribe_token, refuse_invitations


@require_http_methods(["GET", "POST"])
def show_news(request: HttpRequest) -> HttpResponse:
    """Show the news of the past seven days, open assignments and the email settings.

    A GET marks the news as seen. A POST stores the email settings.
    """
    user = get_person(request)
    if request.method == "POST":
        _store_choice(request, user, request.POST.get("kind", ""))
        messages.success(request, _("Saved"))
        return redirect("news")
    return _render_page(request, user, {"news": open_inbox(request)})


@login_not_required
@csrf_exempt  # mail programs post here (RFC 8058); the link itself says who may
@require_http_methods(["GET", "POST"])
def switch_emails(request: HttpRequest, token: str) -> HttpResponse:
    """Switch emails off or on without signing in. A GET changes nothing."""
    try:
        # The link is signed; whoever has it may switch mails off, and do nothing else.
        user = digest_services.find_token_user(token)
    except (BadSignature, User.DoesNotExist):
        raise Http404 from None
    if request.method == "POST":
        _store_choice(request, user, request.POST.get("kind") or request.GET.get("kind", ""))
    values: dict[str, Any] = {"token": token, "is_saved": request.method == "POST"}
    asked_kind = request.GET.get("kind", "")
    words = {**list_switches(), WEEKLY: _("the summary on Mondays")}
    if request.method == "GET" and asked_kind in words:
        values |= {"asked_kind": asked_kind, "asked_words": words[asked_kind]}
    return _render_page(request, user, values)


def _store_choice(request: HttpRequest, user: User, kind: str) -> None:
    """Store the ticked kinds, or switch all emails or one kind on or off.

    Raises Http404 for an unknown kind.
    """
    if kind == WEEKLY:  # by the link in that email
        set_weekly_summary(user=user, is_wanted=request.POST.get("digest") == "on")
        return
    ticked_kinds = request.POST.getlist("kinds")
    if not {kind, *ticked_kinds} <= {"", *list_switches()}:
        raise Http404
    if "save" in request.POST:
        digest_services.set_wanted_kinds(user=user, kinds=ticked_kinds)
        set_weekly_summary(user=user, is_wanted="weekly" in request.POST)
        return
    digest_services.switch_digest(user=user, is_off=request.POST.get("digest") != "on", kind=kind)


def _render_page(request: HttpRequest, user: User, values: dict[str, Any]) -> HttpResponse:
    """Render the page with the email switches."""
    digest = Digest.objects.filter(user=user).first() or Digest()
    kinds = [(kind, label, kind in digest.wanted_kinds) for kind, label in list_switches().items()]
    context = {"kinds": kinds, "is_off": digest.is_off, "is_weekly": digest.is_weekly} | values
    return render(request, "notices/off.html", context)


@login_not_required
@csrf_exempt  # as above
@require_http_methods(["GET", "POST"])
def stop_invitations(request: HttpRequest, token: str) -> HttpResponse:
    """Record that an address no longer wants invitations. A GET changes nothing."""
    try:
        digest = read_unsubscribe_token(token)
    except BadSignature:
        raise Http404 from None
    if request.method == "POST":
        refuse_invitations(digest=digest)
    return render(request, "notices/uninvited.html", {"is_done": request.method == "POST"})
