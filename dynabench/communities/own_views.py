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
from core.files.decoding import MAX_BYTES
from core.web.bodies import FORM_BYTES, takes
from core.web.htmx import form_status
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
from dynabench.communities.selectors import select_owned_tasks
from dynabench.communities.views import find_community
from tasks.models import TaskProposal
from tasks.permissions import can_own, can_see, look_up_roles


def _find_own(request: HttpRequest, slug: str) -> Community:
    """Return the community, for its owners. Raises PermissionDenied, Http404."""
    community = find_community(request, slug)
    if not can_run(request.user, community):
        raise PermissionDenied(_("Only the owners of a community change it."))
    return community


def _list_entries(request: HttpRequest, community: Community) -> list[tuple[CommunityTask, bool]]:
    """Return (entry, whether the person may see its task) for each entry of the community."""
    entries = list(community.entries.select_related("task"))
    look_up_roles(request.user, [entry.task for entry in entries])
    return [(entry, can_see(request.user, entry.task)) for entry in entries]


def _render_forms(
    request: HttpRequest, community: Community, invalid_form: BaseForm | None = None
) -> HttpResponse:
    """Render all forms. invalid_form: the invalid one, which keeps its input."""
    entries = _list_entries(request, community)
    weighed_entries = [entry for entry, is_seen in entries if is_seen and entry.state == "in"]
    forms = {
        # A form changes its instance, and the page shows the community as it is stored.
        "form": CommunityForm(instance=Community.objects.get(pk=community.pk)),
        "logo_form": LogoForm(),
        "owner_form": OwnerForm(),
        "post_form": PostForm(),
        "weights_form": WeightsForm(weighed_entries),
    }
    if invalid_form is not None:
        # Each form has a class of its own, by which the refused one finds its place.
        for name, form in forms.items():
            if type(form) is type(invalid_form):
                forms[name] = invalid_form
    # Tasks that were proposed for this community, about which its owners may decide.
    waiting_proposals = TaskProposal.objects.filter(
        for_community__community=community, state=TaskProposal.State.WAITING
    )
    values: dict[str, Any] = forms | {
        "community": community,
        "here": "manage",
        "runs": True,
        "wrong": invalid_form,
        "entries": entries,
        "owners": community.owners.select_related("annotator"),
        "proposals": waiting_proposals,
    }
    status = 422 if invalid_form is not None else 200
    return render(request, "communities/manage.html", values, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def manage(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the settings of a community; POST changes its text."""
    community = _find_own(request, slug)
    if request.method != "POST":
        return _render_forms(request, community)
    form = CommunityForm(request.POST, instance=Community.objects.get(pk=community.pk))
    if form.is_valid():
        with as_form_error(form):
            services.change_community(
                community=community, actor=person(request), **form.cleaned_data
            )
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@takes(MAX_BYTES + FORM_BYTES)
@require_POST
def change_logo(request: HttpRequest, slug: str) -> HttpResponse:
    """Store a logo, or delete it."""
    community = _find_own(request, slug)
    form = LogoForm(request.POST, request.FILES)
    if "remove" in request.POST:
        services.set_logo(community=community, actor=person(request), data=None)
        return redirect("communities:manage", slug)
    if form.is_valid():
        with as_form_error(form, field="logo"):
            data = form.cleaned_data["logo"].read()
            services.set_logo(community=community, actor=person(request), data=data)
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@require_POST
def owner_add(request: HttpRequest, slug: str) -> HttpResponse:
    """Make a person an owner.

    Rate-limited, because it reveals whether an address has an account.
    """
    community = _find_own(request, slug)
    form = OwnerForm(request.POST)
    if form.is_valid():
        # The same limit as that of inviting members to tasks.
        if is_used_up("members", request.user.pk):
            form.add_error(None, _("You have named many people. Go on in an hour."))
            return _render_forms(request, community, form)
        with as_form_error(form):
            services.add_owner(community=community, actor=person(request), **form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@require_POST
def owner_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Remove an owner; owners may remove themselves."""
    community = _find_own(request, slug)
    other = get_object_or_404(community.owners, pk=pk)
    with as_message(request):
        services.remove_owner(community=community, actor=person(request), user=other)
        messages.success(request, _("Saved."))
    is_still_owner = can_run(request.user, community)
    if is_still_owner:
        return redirect("communities:manage", slug)
    return redirect("communities:communities")


@require_POST
def news_post(request: HttpRequest, slug: str) -> HttpResponse:
    """Post a news item."""
    community = _find_own(request, slug)
    form = PostForm(request.POST)
    if form.is_valid():
        services.post_news(community=community, actor=person(request), **form.cleaned_data)
        messages.success(request, _("It is told."))
        return redirect("communities:community", slug)
    return _render_forms(request, community, form)


@require_POST
def news_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Delete a news item."""
    community = _find_own(request, slug)
    post = get_object_or_404(community.posts.select_related("community"), pk=pk)
    services.delete_post(post=post, actor=person(request))
    messages.success(request, _("It is deleted."))
    return redirect("communities:community", slug)


@require_POST
def weights(request: HttpRequest, slug: str) -> HttpResponse:
    """Set the weights of the tasks that the person may see."""
    community = _find_own(request, slug)
    entries = _list_entries(request, community)
    weighed = [entry for entry, is_seen in entries if is_seen and entry.state == "in"]
    form = WeightsForm(weighed, request.POST)
    if form.is_valid():
        services.set_weights(community=community, actor=person(request), weights=form.weights)
        messages.success(request, _("Saved."))
        return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@require_POST
def entry(request: HttpRequest, slug: str, pk: int, action: str) -> HttpResponse:
    """Admit a task, or remove it.

    For the community's owners; the task's owners may also remove it.
    """
    community = find_community(request, slug)
    chosen_entry = get_object_or_404(community.entries.select_related("task", "community"), pk=pk)
    may_manage = can_run(request.user, community)
    if not may_manage and not (action == "remove" and can_own(request.user, chosen_entry.task)):
        raise Http404
    with as_message(request):
        change = services.admit_task if action == "admit" else services.remove_entry
        change(entry=chosen_entry, actor=person(request))
        messages.success(request, _("Saved."))
    if may_manage:
        return redirect("communities:manage", slug)
    return redirect("communities:community", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, slug: str) -> HttpResponse:
    """Request that one of the person's tasks join the community.

    Lists those that did, each with a button to remove it.
    """
    community = find_community(request, slug)
    user = person(request)
    own_tasks = select_owned_tasks(user)
    form = JoinForm(own_tasks, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with as_form_error(form):
            task = form.cleaned_data["task"]
            new_entry = services.ask_to_join(community=community, task=task, actor=user)
            if new_entry.state == CommunityTask.State.IN:
                messages.success(request, _("The task is in."))
            else:
                messages.success(request, _("The community's owners decide now."))
            return redirect("communities:join", slug)
    values = {
        "community": community,
        "here": "join",
        "runs": can_run(user, community),
        "form": form,
        "mine": community.entries.filter(task__in=own_tasks).select_related("task"),
    }
    status = form_status(form)
    return render(request, "communities/join.html", values, status=status)
