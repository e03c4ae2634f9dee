"""The pages of a community's owners, and the page where a task's owner asks to join."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.files.decoding import MAX_BYTES
from core.web.bodies import FORM_BYTES, limit_body
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
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
from dynabench.communities.permissions import can_manage
from dynabench.communities.selectors import select_owned_tasks
from dynabench.communities.views import find_community
from tasks.models import TaskProposal
from tasks.permissions import cache_roles, can_own, can_see


def _find_owned_community(request: HttpRequest, slug: str) -> Community:
    """Return the community, if the person is one of its owners.

    Raises PermissionDenied or Http404.
    """
    community = find_community(request, slug)
    if not can_manage(request.user, community):
        raise PermissionDenied(_("Only the community's owners can change this. Ask one of them."))
    return community


def _list_entries(request: HttpRequest, community: Community) -> list[tuple[CommunityTask, bool]]:
    """Return (entry, whether the person may see its task) for each entry of the community."""
    entries = list(community.entries.select_related("task"))
    cache_roles(request.user, [entry.task for entry in entries])
    return [(entry, can_see(request.user, entry.task)) for entry in entries]


def _render_forms(
    request: HttpRequest, community: Community, invalid_form: BaseForm | None = None
) -> HttpResponse:
    """Render the page with all forms. invalid_form: a form with errors, which keeps its input."""
    entries = _list_entries(request, community)
    visible_entries = [
        entry for entry, can_see_task in entries if can_see_task and entry.state == "in"
    ]
    forms = {
        # A form changes its instance, and the page shows the community as it is stored.
        "form": CommunityForm(instance=Community.objects.get(pk=community.pk)),
        "logo_form": LogoForm(),
        "owner_form": OwnerForm(),
        "post_form": PostForm(),
        "weights_form": WeightsForm(visible_entries),
    }
    if invalid_form is not None:
        # Each form has a class of its own, by which the refused one finds its place.
        for name, form in forms.items():
            if type(form) is type(invalid_form):
                forms[name] = invalid_form
    # Each task's row has the box for its weight.
    weights_form = forms["weights_form"]
    rows = []
    for entry, can_see_task in entries:
        name = f"weight_{entry.pk}"
        weight = weights_form[name] if name in weights_form.fields else None
        rows.append((entry, can_see_task, weight))
    # Tasks that were proposed for this community, about which its owners may decide.
    waiting_proposals = TaskProposal.objects.filter(
        for_community__community=community, state=TaskProposal.State.WAITING
    )
    values: dict[str, Any] = forms | {
        "community": community,
        "here": "manage",
        "runs": True,
        "wrong": invalid_form,
        "entries": rows,
        "owners": community.owners.select_related("annotator"),
        "proposals": waiting_proposals,
    }
    status = 422 if invalid_form is not None else 200
    return render(request, "communities/manage.html", values, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def show_settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the settings of a community; POST changes its text."""
    community = _find_owned_community(request, slug)
    if request.method != "POST":
        return _render_forms(request, community)
    form = CommunityForm(request.POST, instance=Community.objects.get(pk=community.pk))
    if form.is_valid():
        with show_as_form_error(form):
            services.change_community(
                community=community, actor=get_person(request), **form.cleaned_data
            )
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@limit_body(MAX_BYTES + FORM_BYTES)
@require_POST
def change_logo(request: HttpRequest, slug: str) -> HttpResponse:
    """Store a logo, or delete the current one."""
    community = _find_owned_community(request, slug)
    form = LogoForm(request.POST, request.FILES)
    if "remove" in request.POST:
        services.set_logo(community=community, actor=get_person(request), data=None)
        return redirect("communities:manage", slug)
    if form.is_valid():
        with show_as_form_error(form, field="logo"):
            data = form.cleaned_data["logo"].read()
            services.set_logo(community=community, actor=get_person(request), data=data)
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@require_POST
def add_owner_view(request: HttpRequest, slug: str) -> HttpResponse:
    """Make a person an owner.

    Rate-limited, because it reveals whether an address has an account.
    """
    community = _find_owned_community(request, slug)
    form = OwnerForm(request.POST)
    if form.is_valid():
        # The same limit as that of inviting members to tasks.
        if is_used_up("members", request.user.pk):
            form.add_error(None, _("You've added many people in the last hour. Try again later."))
            return _render_forms(request, community, form)
        with show_as_form_error(form):
            services.add_owner(community=community, actor=get_person(request), **form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@require_POST
def remove_owner_view(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Remove an owner; owners may remove themselves."""
    community = _find_owned_community(request, slug)
    owner = get_object_or_404(community.owners, pk=pk)
    with show_as_message(request):
        services.remove_owner(community=community, actor=get_person(request), user=owner)
        messages.success(request, _("Saved."))
    is_still_owner = can_manage(request.user, community)
    if is_still_owner:
        return redirect("communities:manage", slug)
    return redirect("communities:communities")


@require_POST
def post_news_view(request: HttpRequest, slug: str) -> HttpResponse:
    """Post a news item."""
    community = _find_owned_community(request, slug)
    form = PostForm(request.POST)
    if form.is_valid():
        services.post_news(community=community, actor=get_person(request), **form.cleaned_data)
        messages.success(request, _("News posted."))
        return redirect("communities:community", slug)
    return _render_forms(request, community, form)


@require_POST
def delete_news_view(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Delete a news item."""
    community = _find_owned_community(request, slug)
    post = get_object_or_404(community.posts.select_related("community"), pk=pk)
    services.delete_post(post=post, actor=get_person(request))
    messages.success(request, _("News deleted."))
    return redirect("communities:community", slug)


@require_POST
def change_weights(request: HttpRequest, slug: str) -> HttpResponse:
    """Set the weights of the tasks that the person may see."""
    community = _find_owned_community(request, slug)
    entries = _list_entries(request, community)
    visible_entries = [
        entry for entry, can_see_task in entries if can_see_task and entry.state == "in"
    ]
    form = WeightsForm(visible_entries, request.POST)
    if form.is_valid():
        services.set_weights(community=community, actor=get_person(request), weights=form.weights)
        messages.success(request, _("Saved."))
        return redirect("communities:manage", slug)
    return _render_forms(request, community, form)


@require_POST
def change_entry(request: HttpRequest, slug: str, pk: int, action: str) -> HttpResponse:
    """Admit a task, or remove it.

    The community's owners may do both. The task's owners may only remove it.
    """
    community = find_community(request, slug)
    chosen_entry = get_object_or_404(community.entries.select_related("task", "community"), pk=pk)
    may_manage = can_manage(request.user, community)
    if not may_manage and not (action == "remove" and can_own(request.user, chosen_entry.task)):
        raise Http404
    with show_as_message(request):
        apply_action = services.admit_task if action == "admit" else services.remove_entry
        apply_action(entry=chosen_entry, actor=get_person(request))
        messages.success(request, _("Saved."))
    if may_manage:
        return redirect("communities:manage", slug)
    return redirect("communities:community", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def request_to_join(request: HttpRequest, slug: str) -> HttpResponse:
    """Request that one of the person's tasks join the community.

    Tasks that joined or asked to are listed with a button to remove them.
    """
    community = find_community(request, slug)
    user = get_person(request)
    own_tasks = select_owned_tasks(user)
    form = JoinForm(own_tasks, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with show_as_form_error(form):
            task = form.cleaned_data["task"]
            new_entry = services.ask_to_join(community=community, task=task, actor=user)
            if new_entry.state == CommunityTask.State.IN:
                messages.success(request, _("Task added."))
            else:
                messages.success(request, _("Request sent. The community's owners will decide."))
            return redirect("communities:join", slug)
    values = {
        "community": community,
        "here": "join",
        "runs": can_manage(user, community),
        "form": form,
        "mine": community.entries.filter(task__in=own_tasks).select_related("task"),
    }
    status = get_form_status(form)
    return render(request, "communities/join.html", values, status=status)
