"""The owners' page of a task's visibility, members and their roles."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.communities.proposal_services import request_task_approval
from dynabench.manage.access import find_owned_task
from dynabench.manage.approval import build_approval_form, describe_approval
from tasks.making.forms import ApprovalForm
from tasks.members.forms import ROLE_CHOICES, MemberForm, RoleForm, VisibilityForm
from tasks.models import Task, TaskMember
from tasks.permissions import (
    can_edit,
    can_judge_as_owner,
    can_manage,
    can_own,
    is_blind_owner,
    needs_approval,
)
from tasks.services import change_members, change_task, find_account_within_limit
from validation.judging.blind_services import begin_blind_judging, end_blind_judging


def _build_visibility_form(task: Task, data: Any = None) -> VisibilityForm:
    """Return the form for the task's visibility. Until approval, it has no field `is_visible`."""
    initial = {"is_visible": task.is_visible, "allow_try_out": task.allow_try_out}
    form = VisibilityForm(data, initial=initial)
    if needs_approval(task):
        # Removed and not disabled, so that no POST can set it.
        del form.fields["is_visible"]
    return form


@require_http_methods(["GET", "POST"])
def show_access(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's visibility and its members. A POST changes the visibility."""
    permission_check = can_manage if request.method == "GET" else can_own
    task = find_owned_task(request, code, permission_check)
    # Two unticked boxes are sent as nothing, so an empty POST is a form that was sent.
    data = request.POST if request.method == "POST" else None
    form = _build_visibility_form(task, data)
    if form.is_valid():
        with show_as_form_error(form):
            change_task(task=task, actor=get_person(request), fields=form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("own:access", code)
    return _show_page(request, task, form, MemberForm(initial={"role": TaskMember.Role.ANNOTATOR}))


@require_POST
def add_task_member(request: HttpRequest, code: str) -> HttpResponse:
    """Give a person a role, which takes effect once they have confirmed their email address."""
    task = find_owned_task(request, code, can_own)
    form = MemberForm(request.POST)
    if form.is_valid():
        with show_as_form_error(form):
            member = TaskMember(task=task, role=form.cleaned_data["role"])
            # Counted and limited: an answer tells whether an address has an account.
            member.user = find_account_within_limit(get_person(request), form.cleaned_data["email"])
            change_members(task=task, actor=get_person(request), added_members=[member])
            messages.success(
                request, _("%(email)s added as a member.") % {"email": member.user.email}
            )
            return redirect("own:access", code)
    return _show_page(request, task, _build_visibility_form(task), form, status=422)


@require_POST
def send_approval_request(request: HttpRequest, code: str) -> HttpResponse:
    """Request approval to open the task to non-members."""
    task = find_owned_task(request, code, can_own)
    form = build_approval_form(request, request.POST)
    if form.is_valid():
        with show_as_form_error(form):
            # The field is missing where there are no communities.
            values = {"community": None, **form.cleaned_data}
            request_task_approval(task=task, actor=get_person(request), **values)
            messages.success(request, _("Approval requested. We'll email you the decision."))
            return redirect("own:access", code)
    return _show_page(
        request, task, _build_visibility_form(task), MemberForm(), approval_form=form, status=422
    )


@require_POST
def change_task_member(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Change a member's role, or remove the member.

    The last owner cannot be removed or change roles.
    """
    task = find_owned_task(request, code, can_own)
    member = get_object_or_404(task.members.select_colleagues().select_related("user"), pk=pk)
    form = RoleForm(request.POST)
    with show_as_message(request):
        if "remove" in request.POST:
            change_members(task=task, actor=get_person(request), removed_members=[member])
            messages.success(request, _("Member removed."))
        elif form.is_valid():
            member.role = form.cleaned_data["role"]
            change_members(task=task, actor=get_person(request), changed_members=[member])
            messages.success(request, _("Saved."))
    task.roles.clear()  # it may have been their own role that changed
    if can_manage(request.user, task):
        return redirect("own:access", code)
    return redirect("home")


@require_POST
def switch_blind_judging(request: HttpRequest, code: str) -> HttpResponse:
    """Start or stop the owner's blind judging of the task. Owners only."""
    task, owner = find_owned_task(request, code, can_own), get_person(request)
    with show_as_message(request):
        if "on" in request.POST:
            begin_blind_judging(task=task, owner=owner)
            messages.success(
                request, _("You now judge blind. Labels and votes are hidden from you.")
            )
            return redirect("validation:judge", code)
        end_blind_judging(task=task, owner=owner)
        messages.success(
            request, _("You can see labels and votes again, so you can no longer judge.")
        )
    return redirect("own:access", code)


def _show_page(
    request: HttpRequest,
    task: Task,
    form: VisibilityForm,
    member_form: MemberForm,
    *,
    approval_form: ApprovalForm | None = None,
    status: int = 200,
) -> HttpResponse:
    values = {
        **describe_approval(request, task),
        "task": task,
        "form": form,
        "adding": member_form,
        "roles": ROLE_CHOICES,
        "members": task.members.select_colleagues()
        .annotate_effectiveness()
        .select_related("user")
        .order_by("pk"),
        "can_edit": can_edit(request.user, task),
        "can_own": can_own(request.user, task),
        "blind": is_blind_owner(request.user, task),
        "can_judge_as_owner": can_judge_as_owner(request.user, task),
    }
    if values.get("may_ask"):
        values["asking"] = approval_form or build_approval_form(request)
    return render(request, "own/setup/members.html", values, status=status)
