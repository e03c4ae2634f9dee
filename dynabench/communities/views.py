"""The pages of communities: the list, one community, its board across tasks, its people."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.text.markdown import render_markdown
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error
from dynabench.cards import build_cards
from dynabench.communities.board import build_board, list_data_rows
from dynabench.communities.forms import CommunityDecisionForm, CommunityProposalForm
from dynabench.communities.models import Community, CommunityProposal
from dynabench.communities.pairs import build_pair_board, filter_tasks_with_pairs
from dynabench.communities.permissions import can_manage, can_propose, find_visible_communities
from dynabench.communities.proposal_services import (
    DECISION_MESSAGES,
    decide_community,
    propose_community,
)
from dynabench.communities.selectors import (
    NEWS_PER_PAGE,
    count_visible_tasks,
    list_visible_entries,
    select_waiting_proposals,
)
from leaderboard.board.previews import read_previews
from leaderboard.people.ranking import select_ranking_lines
from leaderboard.people.standings import list_standings, may_use_rankings
from tasks.contexts.media.views import FILE_HEADERS


def find_community(request: HttpRequest, slug: str) -> Community:
    """Return the community, if the person may see it. Raises Http404."""
    return get_object_or_404(find_visible_communities(request.user), slug=slug)


def _build_frame(request: HttpRequest, community: Community, current_tab: str) -> dict[str, Any]:
    """Return the context that every page of the community needs. current_tab: its current tab."""
    return {
        "community": community,
        "here": current_tab,
        "runs": can_manage(request.user, community),
    }


@login_not_required
@require_safe
def show_communities(request: HttpRequest) -> HttpResponse:
    """Show the communities that the person may see."""
    values: dict[str, Any] = {"rows": count_visible_tasks(request.user)}
    if request.user.is_authenticated:
        user = get_person(request)
        values |= {
            "proposals": user.community_proposals.select_related("community"),
            "waiting": select_waiting_proposals(user),
        }
    return render(request, "communities/communities.html", values)


@login_not_required
@require_safe
def show_community(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a community: its text, its news and the tasks that the person may see."""
    community = find_community(request, slug)
    tasks = [entry.task for entry in list_visible_entries(request.user, community)]
    # Of all tasks at once: the cards would ask for each.
    previews_by_task = read_previews(tasks)
    page = list_page(request, community.posts.all(), size=NEWS_PER_PAGE)
    values = _build_frame(request, community, "community") | {
        "text": render_markdown(community.text),
        "cards": [
            replace(card, top=previews_by_task.get(card.task.pk)) for card in build_cards(tasks)
        ],
        "page": page,
        "posts": [(post, render_markdown(post.text)) for post in page],
    }
    return render(request, "communities/community.html", values)


@login_not_required
@require_safe
def send_logo(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the logo, with the security headers of all pictures."""
    community = find_community(request, slug)
    try:
        # Through the site, so that the storage needs no public address.
        with community.logo.open("rb") as file:
            data = file.read()
    except (ValueError, FileNotFoundError):
        raise Http404 from None
    kind = str(community.logo.name).rpartition(".")[2]
    headers = {
        **FILE_HEADERS,
        "Content-Type": f"image/{kind}",
        "Cache-Control": "private, no-cache",
    }
    return HttpResponse(data, headers=headers)


@login_not_required
@require_safe
def show_board(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the board across the tasks, ranked by the reader's weights or the owners' defaults."""
    community = find_community(request, slug)
    entries = list_visible_entries(request.user, community)
    values = _build_frame(request, community, "board") | {
        "board": build_board(community, entries, request.GET.dict()),
        "with_pairs": filter_tasks_with_pairs(entries),
        "with_data": any(entry.task.config.training_rows for entry in entries),
    }
    return render(request, "communities/board.html", values)


@login_not_required
@require_safe
def show_pair_board(request: HttpRequest, slug: str, code: str) -> HttpResponse:
    """Show the board of a task by language pair, with the reader's filters."""
    community = find_community(request, slug)
    tasks = filter_tasks_with_pairs(list_visible_entries(request.user, community))
    # Only tasks that this person may see are among them.
    task = next((task for task in tasks if task.code == code), None)
    if task is None:
        raise Http404
    values = _build_frame(request, community, "board")
    values["pairs"] = build_pair_board(task, request.GET.dict())
    return render(request, "communities/pairs.html", values)


@login_not_required
@require_safe
def show_data_board(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the data board: what a fixed model learned from each submission of rows."""
    community = find_community(request, slug)
    entries = list_visible_entries(request.user, community)
    data_entries = [entry for entry in entries if entry.task.config.training_rows]
    data_board = build_board(community, data_entries, request.GET.dict())
    values = _build_frame(request, community, "board") | {
        "board": data_board,
        "rows": list_data_rows(data_board),
    }
    return render(request, "communities/data.html", values)


@require_safe
def show_people(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the ranking of people across the community's tasks, except sensitive ones.

    Raises Http404 for people who may not use rankings.
    """
    community = find_community(request, slug)
    annotator = get_annotator(get_person(request))
    if not may_use_rankings(annotator):
        raise Http404
    tasks = [entry.task for entry in list_visible_entries(request.user, community)]
    ranking_lines = select_ranking_lines(
        list_standings([task for task in tasks if not task.is_sensitive]), annotator.pseudonym
    )
    values = _build_frame(request, community, "people") | {
        "me": annotator,
        # People who are not in the ranking do not see it either.
        "places": ranking_lines if annotator.in_ranking else [],
    }
    return render(request, "communities/people.html", values)


@require_http_methods(["GET", "HEAD", "POST"])
def show_proposal_form(request: HttpRequest) -> HttpResponse:
    """Show the form to propose a community, and store the proposal."""
    form = CommunityProposalForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with show_as_form_error(form):
            propose_community(proposer=get_person(request), **form.cleaned_data)
            messages.success(request, _("Proposal sent. An administrator will decide."))
            return redirect("communities:communities")
    values = {"form": form, "may": can_propose(request.user)}
    return render(request, "communities/propose.html", values, status=get_form_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
def show_proposal(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a proposal, and store the decision. Administrators only."""
    if not request.user.is_superuser:
        raise Http404
    rows = CommunityProposal.objects.select_related("proposer", "community")
    community_proposal = get_object_or_404(rows, pk=pk)
    form_data = request.POST if request.method == "POST" else None
    form = CommunityDecisionForm(form_data, initial={"slug": community_proposal.slug})
    if form.is_valid():
        with show_as_form_error(form):
            decided_proposal = decide_community(
                proposal=community_proposal, actor=get_person(request), **form.cleaned_data
            )
            messages.success(request, _(DECISION_MESSAGES[decided_proposal.state]))
            return redirect("communities:communities")
    values = {"proposal": community_proposal, "form": form}
    status = get_form_status(form)
    return render(request, "communities/proposal.html", values, status=status)
