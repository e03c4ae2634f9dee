"""The pages of a community's owners, and the one on which a task's owner asks to join."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import person
from core.web.bodies import FORM_BYTES, takes
from core.web.refusals import as_form_error, as_message
from core.web.throttles import is_used_up
from dynabench.communities import services
from dynabench.communities.forms import (
    CommunityForm,
    JoinForm,
    LogoForm,
    OwnerForm,
    PostForm,
    WeightsForm,
)
from dynabench.communities.models import Community, CommunityTask
from dynabench.communities.permissions import can_run
from dynabench.communities.selectors import owned_tasks
from dynabench.communities.views import find_community
from tasks.contexts.media.decoding import MAX_BYTES
from tasks.models import TaskProposal
from tasks.permissions import can_own, can_see, look_up_roles


def _find(request: HttpRequest, slug: str) -> Community:
    """The community, for its owners. Raises PermissionDenied; Http404 where it is not seen."""
    found = find_community(request, slug)
    if not can_run(request.user, found):
        raise PermissionDenied(_("Only the owners of a community change it."))
    return found


def _entries(request: HttpRequest, community: Community) -> list[tuple[CommunityTask, bool]]:
    """All tasks of the community, and whether the person may see each: else it has no name."""
    entries = list(community.entries.select_related("task"))
    look_up_roles(request.user, [entry.task for entry in entries])
    return [(entry, can_see(request.user, entry.task)) for entry in entries]


def _page(
    request: HttpRequest, community: Community, wrong: BaseForm | None = None
) -> HttpResponse:
    """All forms; the one that was refused keeps what was typed."""
    entries = _entries(request, community)
    there = [entry for entry, is_seen in entries if is_seen and entry.state == "in"]
    made = {
        "form": CommunityForm(instance=Community.objects.get(pk=community.pk)),
        "logo_form": LogoForm(),
        "owner_form": OwnerForm(),
        "post_form": PostForm(),
        "weights_form": WeightsForm(there),
    }
    names = {type(form): name for name, form in made.items()}
    if wrong is not None:
        made[names[type(wrong)]] = wrong
    waiting = TaskProposal.objects.filter(
        for_community__community=community, state=TaskProposal.State.WAITING
    )
    values: dict[str, Any] = {
        **made,
        "community": community,
        "here": "manage",
        "runs": True,
        "wrong": wrong,
        "entries": entries,
        "owners": community.owners.select_related("annotator"),
        "proposals": waiting,
    }
    status = 422 if wrong is not None else 200
    return render(request, "communities/manage.html", values, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def manage(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything about the community; POST changes its text."""
    found = _find(request, slug)
    if request.method != "POST":
        return _page(request, found)
    form = CommunityForm(request.POST, instance=Community.objects.get(pk=found.pk))
    if form.is_valid():
        with as_form_error(form):
            services.change_community(community=found, actor=person(request), **form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _page(request, found, form)


@takes(MAX_BYTES + FORM_BYTES)
@require_POST
def change_logo(request: HttpRequest, slug: str) -> HttpResponse:
    """Take a logo, or take it away."""
    found = _find(request, slug)
    form = LogoForm(request.POST, request.FILES)
    if "remove" in request.POST:
        services.set_logo(community=found, actor=person(request), data=None)
        return redirect("communities:manage", slug)
    if form.is_valid():
        with as_form_error(form, field="logo"):
            data = form.cleaned_data["logo"].read()
            services.set_logo(community=found, actor=person(request), data=data)
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _page(request, found, form)


@require_POST
def owner_add(request: HttpRequest, slug: str) -> HttpResponse:
    """Name another owner; so many times an hour, as it tells whether there is an account."""
    found = _find(request, slug)
    form = OwnerForm(request.POST)
    if form.is_valid():
        if is_used_up("members", request.user.pk):
            form.add_error(None, _("You have named many people. Go on in an hour."))
            return _page(request, found, form)
        with as_form_error(form):
            services.add_owner(community=found, actor=person(request), **form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _page(request, found, form)


@require_POST
def owner_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Take an owner out, oneself too."""
    found = _find(request, slug)
    other = get_object_or_404(found.owners, pk=pk)
    with as_message(request):
        services.remove_owner(community=found, actor=person(request), user=other)
        messages.success(request, _("Saved."))
    is_in = can_run(request.user, found)
    return redirect("communities:manage", slug) if is_in else redirect("communities:communities")


@require_POST
def news_post(request: HttpRequest, slug: str) -> HttpResponse:
    """Tell something."""
    found = _find(request, slug)
    form = PostForm(request.POST)
    if form.is_valid():
        services.post_news(community=found, actor=person(request), **form.cleaned_data)
        messages.success(request, _("It is told."))
        return redirect("communities:community", slug)
    return _page(request, found, form)


@require_POST
def news_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Take news back."""
    found = _find(request, slug)
    post = get_object_or_404(found.posts.select_related("community"), pk=pk)
    services.delete_post(post=post, actor=person(request))
    messages.success(request, _("It is deleted."))
    return redirect("communities:community", slug)


@require_POST
def weights(request: HttpRequest, slug: str) -> HttpResponse:
    """What each task counts at first, of those that the person may see."""
    found = _find(request, slug)
    there = [one for one, is_seen in _entries(request, found) if is_seen and one.state == "in"]
    form = WeightsForm(there, request.POST)
    if form.is_valid():
        services.set_weights(community=found, actor=person(request), weights=form.weights)
        messages.success(request, _("Saved."))
        return redirect("communities:manage", slug)
    return _page(request, found, form)


@require_POST
def entry(request: HttpRequest, slug: str, pk: int, action: str) -> HttpResponse:
    """Let a task in, or take it out: the community's owners; take it out: the task's, too."""
    found = find_community(request, slug)
    one = get_object_or_404(found.entries.select_related("task", "community"), pk=pk)
    runs = can_run(request.user, found)
    if not runs and not (action == "remove" and can_own(request.user, one.task)):
        raise Http404
    with as_message(request):
        change = services.admit if action == "admit" else services.take_out
        change(entry=one, actor=person(request))
        messages.success(request, _("Saved."))
    return redirect("communities:manage" if runs else "communities:community", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask that a task of one's own joins; those that did, which one may take out again."""
    found = find_community(request, slug)
    user = person(request)
    mine = owned_tasks(user)
    form = JoinForm(mine, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with as_form_error(form):
            made = services.ask_to_join(community=found, task=form.cleaned_data["task"], actor=user)
            is_in = made.state == CommunityTask.State.IN
            said = _("The task is in.") if is_in else _("The community's owners decide now.")
            messages.success(request, said)
            return redirect("communities:join", slug)
    values = {
        "community": found,
        "here": "join",
        "runs": can_run(user, found),
        "form": form,
        "mine": found.entries.filter(task__in=mine).select_related("task"),
    }
    status = 422 if form.errors else 200
    return render(request, "communities/join.html", values, status=status)
