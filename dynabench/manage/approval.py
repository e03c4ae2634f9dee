"""The request for approval on a task's pages: its state, and the form for sending it."""

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dynabench.communities.permissions import find_visible_communities
from tasks.making.forms import ApprovalForm
from tasks.models import Task, TaskProposal
from tasks.permissions import can_own, needs_approval


def build_approval_form(request: HttpRequest, data: Any = None) -> ApprovalForm:
    """Return the form for requesting approval. It offers the communities that the person sees."""
    communities = find_visible_communities(request.user)
    if not communities:
        return ApprovalForm(data)

    # A class of its own, because a field of the shared form cannot know whose communities it lists.
    class CommunityApprovalForm(ApprovalForm):
        community = forms.ModelChoiceField(
            communities,
            to_field_name="slug",
            required=False,
            label=_("For a community"),
            empty_label=_("No community (an administrator decides)"),
            help_text=_("The community's owners decide. An approved task joins the community."),
        )

    return CommunityApprovalForm(data)


def describe_approval(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Return template values for the task's request for approval; empty if the task needs none.

    One query for a task that is not approved.
    """
    if not needs_approval(task):
        return {}
    proposal = TaskProposal.objects.filter(task=task).first()
    return {"unapproved": True, "approval": proposal, "may_ask": can_own(request.user, task)}
