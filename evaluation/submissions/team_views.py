"""The pages of teams: members, invitations, and the models that were submitted for them."""

from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import person
from core.web.refusals import as_form_error, as_message
from evaluation.submissions.progress import progress_of
from evaluation.submissions.selectors import submissions_for
from evaluation.submissions.teams import services
from evaluation.submissions.teams.access import find_team
from evaluation.submissions.teams.forms import InvitationForm, TeamForm
from evaluation.submissions.teams.selectors import invitations_of, teams_of

LISTED = 100


@require_http_methods(["GET", "HEAD", "POST"])
def teams(request: HttpRequest) -> HttpResponse:
    """Show the person's teams and invitations, and make a team on POST."""
    user = person(request)
    form = TeamForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            made = services.make_team(actor=user, name=form.cleaned_data["name"])
            return redirect("evaluation:team", made.pk)
    values = {"teams": teams_of(user), "invitations": invitations_of(user), "form": form}
    return render(request, "evaluation/teams.html", values, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def team(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a team's members and models; its owners invite people here."""
    found, place, user = find_team(request, pk)
    form = InvitationForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            services.invite(team=found, actor=user, email=form.cleaned_data["email"])
            messages.success(request, _("The address is invited."))
            return redirect("evaluation:team", pk)
    members = found.members.select_related("user__annotator")
    rows = [
        (one, progress_of(one, one.runs.all())) for one in submissions_for(found, user)[:LISTED]
    ]
    values = {"team": found, "place": place, "members": members, "rows": rows, "form": form}
    return render(request, "evaluation/team.html", values, status=422 if form.errors else 200)


@require_POST
def member(request: HttpRequest, pk: int, member: int, action: str) -> HttpResponse:
    """Remove a member or an invitation, or change who owns the team."""
    found, _place, user = find_team(request, pk)
    one = get_object_or_404(found.members, pk=member)
    change: Callable[..., None] = services.remove
    if action != "remove":
        change = partial(services.set_owner, is_owner=action == "owner")
    with as_message(request):
        change(team=found, actor=user, member=one)
        messages.success(request, _("The members are changed."))
    gone = one.user_id == user.pk and action == "remove"
    return redirect("evaluation:teams") if gone else redirect("evaluation:team", pk)


@require_POST
def leave(request: HttpRequest, pk: int) -> HttpResponse:
    """Leave a team."""
    found, _place, user = find_team(request, pk)
    with as_message(request):
        services.leave_team(team=found, user=user)
        messages.success(request, _("You have left the team."))
        return redirect("evaluation:teams")
    return redirect("evaluation:team", pk)


@require_POST
def answer(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Accept or decline an invitation."""
    user = person(request)
    invitation = get_object_or_404(invitations_of(user), pk=pk)
    service = services.accept if action == "accept" else services.decline
    with as_message(request):
        service(invitation=invitation, user=user)
        said = _("You are in the team now.") if action == "accept" else _("It is turned down.")
        messages.success(request, said)
    return redirect("evaluation:teams")
