"""Proposed tasks in the admin, read-only for superusers. They decide on a page of the site."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from tasks.models import TaskProposal


@admin.register(TaskProposal)
class TaskProposalAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "proposer", "state", "created_at", "decided_by")
    list_filter = ("state",)
    list_select_related = ("proposer", "decided_by")
    fields = (
        "page",
        "name",
        "wanted_code",
        "proposer",
        "kind",
        "source",
        "goal",
        "people",
        "state",
        "reason",
        "task",
        "decided_by",
        "decided_at",
    )
    readonly_fields = ("page",)

    @admin.display(description="decision")
    def page(self, proposal: TaskProposal) -> str:
        """Return a link to the page on which administrators decide about the proposal."""
        url = reverse("proposal", args=[proposal.pk])
        return format_html('<a href="{}">Open the page of the proposal</a>', url)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
