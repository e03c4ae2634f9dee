"""The pages of teams: members, invitations, and the models that were submitted for them."""

from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.submissions.progress import describe_progress
from evaluation.submissions.selectors import find_team_submissions
from evaluation.submissions.teams import services
from evaluation.submissions.teams.access import find_team
from evaluation.submissions.teams.forms import InvitationForm, TeamForm
from evaluation.submissions.teams.selectors import find_invitations, find_teams


@require_http_methods(["GET", "HEAD", "POST"])
def show_teams(request: HttpRequest) -> HttpResponse:
    """Show the person's teams and invitations; create a team on POST."""
    user = get_person(request)
    form = TeamForm(_read_posted_data(request))
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            new_team = services.make_team(actor=user, name=form.cleaned_data["name"])
            return redirect("evaluation:team", new_team.pk)
    values = {"teams": find_teams(user), "invitations": find_invitations(user), "form": form}
    return render(request, "evaluation/teams.html", values, status=_choose_status(form))


def _read_posted_data(request: HttpRequest) -> QueryDict | None:
    """Return the posted data; None for a GET request."""
    if request.method == "POST":
        return request.POST
    return None


def _choose_status(form: Form) -> int:
    if form.errors:
        return 422
    return 200


@require_http_methods(["GET", "HEAD", "POST"])
def show_team(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a team's members and models, and the invitation form to its owners.

    On POST, invite an address.
    """
    own_team, membership, user = find_team(request, pk)
    form = InvitationForm(_read_posted_data(request))
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            services.invite_member(team=own_team, actor=user, email=form.cleaned_data["email"])
            messages.success(request, _("Invitation sent."))
            return redirect("evaluation:team", pk)
    members = own_team.members.select_related("user__annotator")
    page = list_page(request, find_team_submissions(own_team, user))
    rows = []
    for submission in page:
        rows.append((submission, describe_progress(submission, submission.runs.all())))
    values = {
        "team": own_team,
        "place": membership,
        "members": members,
        "page": page,
        "rows": rows,
        "form": form,
    }
    return render(request, "evaluation/team.html", values, status=_choose_status(form))


@require_POST
def change_member(request: HttpRequest, pk: int, member: int, action: str) -> HttpResponse:
    """Remove a member or an invitation, or change whether a member is an owner. Team owners only.

    action: "remove", or "owner" for an owner, or any other word for an ordinary member.
    """
    own_team, _place, user = find_team(request, pk)
    membership = get_object_or_404(own_team.members, pk=member)
    change: Callable[..., None] = services.remove_member
    if action != "remove":
        change = partial(services.set_owner, is_owner=action == "owner")
    with show_as_message(request):
        change(team=own_team, actor=user, member=membership)
        messages.success(request, _("Members updated."))
    if membership.user_id == user.pk and action == "remove":  # they may no longer see the page
        return redirect("evaluation:teams")
    return redirect("evaluation:team", pk)


@require_POST
def leave_own_team(request: HttpRequest, pk: int) -> HttpResponse:
    """Leave a team."""
    own_team, _place, user = find_team(request, pk)
    with show_as_message(request):
        services.leave_team(team=own_team, user=user)
        messages.success(request, _("You've left the team."))
        return redirect("evaluation:teams")
    return redirect("evaluation:team", pk)


@require_POST
def answer_invitation(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Accept or decline an invitation.

    action: "accept"; any other word declines it.
    """
    user = get_person(request)
    invitation = get_object_or_404(find_invitations(user), pk=pk)
    if action == "accept":
        service, text = services.accept_invitation, _("You've joined the team.")
    else:
        service, text = services.decline_invitation, _("Invitation declined.")
    with show_as_message(request):
        service(invitation=invitation, user=user)
        messages.success(request, text)
    return redirect("evaluation:teams")
