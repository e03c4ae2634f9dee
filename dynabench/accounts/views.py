"""The account page, help, and the keyboard switch."""

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dynabench.accounts.models import ApiToken, User
from dynabench.accounts.people import person
from dynabench.accounts.services import annotator_of, set_in_ranking, set_keyboard_mode


@login_not_required
def help_page(request: HttpRequest) -> HttpResponse:
    """What the site is for, and its keys."""
    _ensure_annotator(request.user)
    return render(request, "help.html")


def account(request: HttpRequest) -> HttpResponse:
    """What a person may do about their account."""
    _ensure_annotator(request.user)
    mine = ApiToken.objects.filter(user=request.user.pk)
    ending = [token.name for token in mine if token.ends_soon]
    return render(request, "accounts/account.html", {"ending": ending})


@require_POST
def keyboard_mode(request: HttpRequest) -> HttpResponse:
    """Switch single-key shortcuts."""
    set_keyboard_mode(annotator=annotator_of(person(request)), on=request.POST.get("on") == "1")
    return redirect("help")


@require_POST
def ranking(request: HttpRequest) -> HttpResponse:
    """Appear in people rankings, or no longer."""
    set_in_ranking(annotator=annotator_of(person(request)), on=request.POST.get("on") == "1")
    messages.success(request, _("Saved."))
    return redirect("account")


def _ensure_annotator(user: User | AnonymousUser) -> None:
    if isinstance(user, User):
        annotator_of(user)
