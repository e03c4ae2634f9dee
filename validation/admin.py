"""The admin of votes, consensus and owners' decisions: a task's members can read them only."""

from typing import Any

from django.contrib import admin
from django.urls import reverse

from annotation.models import Example
from core.accounts.people import get_shown_name
from tasks.admin.roles import (
    READ_ONLY_PERMISSIONS,
    REVIEWERS,
    RoleAdmin,
    get_account_name,
    shield_text,
)
from validation.models import Consensus, OwnerDecision, Validation


class JudgedAdmin(RoleAdmin):
    """A base admin for rows about an example. It shows the example and the row's choice."""

    task_path = "example__round__task"
    roles_by_action = READ_ONLY_PERMISSIONS
    page_roles = REVIEWERS
    list_per_page = 50
    # An exact match has an index; texts are searched on the review pages.
    search_fields = ["=example__uuid"]

    def get_page_url(self, row: Any) -> str:
        return reverse("own:review-example", args=[row.example.round.task.code, row.example.uuid])

    def describe_for_log(self, row: Any) -> dict[str, str]:
        return {"task": row.example.round.task.code, "target": str(row.example)}

    @admin.display(description="example")
    def text(self, row: Any) -> str:
        example: Example = row.example
        return shield_text(example.round.task, " | ".join(map(str, example.inputs.values())), 120)

    @admin.display(description="choice")
    def choice(self, row: Any) -> str:
        return str(row.label or row.get_verdict_display())


@admin.register(Validation)
class ValidationAdmin(JudgedAdmin):
    list_display = ["created_at", "text", "choice", "judge", "flag_reason", "seconds"]
    list_filter = ["verdict", "flag_reason", "is_imported"]
    list_select_related = ["validator"]
    lookups = ["validator"]
    ordering = ["-pk"]
    fields = readonly_fields = (
        "text",
        "choice",
        "judge",
        "flag_reason",
        "note",
        "reveal",
        "reveal_choice",
        "reveal_note",
        "seconds",
        "is_imported",
        "created_at",
    )

    @admin.display
    def judge(self, vote: Validation) -> str:
        return get_shown_name(vote.validator)

    @admin.display(description="comment")
    def note(self, vote: Validation) -> str:
        return shield_text(vote.example.round.task, vote.comment, 500) if vote.comment else ""

    @admin.display(description="comment after the reveal")
    def reveal_note(self, vote: Validation) -> str:
        comment = vote.reveal_comment
        return shield_text(vote.example.round.task, comment, 500) if comment else ""


@admin.register(Consensus)
class ConsensusAdmin(JudgedAdmin):
    list_display = ["text", "state", "choice", "votes", "still_needed", "is_verified", "decided_by"]
    list_filter = ["state", "is_verified", "is_validated_error", "decided_by"]
    ordering = ["-pk"]
    fields = readonly_fields = (
        "text",
        "state",
        "choice",
        "votes",
        "still_needed",
        "is_verified",
        "is_validated_error",
        "decided_by",
        "decided_at",
    )


@admin.register(OwnerDecision)
class OwnerDecisionAdmin(JudgedAdmin):
    list_display = ["created_at", "text", "choice", "owner_name", "reason", "withdrawn_at"]
    list_filter = [("withdrawn_at", admin.EmptyFieldListFilter)]
    list_select_related = ["owner__annotator"]
    roles_by_action = {**READ_ONLY_PERMISSIONS, "view": REVIEWERS}
    ordering = ["-pk"]
    fields = readonly_fields = (
        "text",
        "choice",
        "owner_name",
        "reason",
        "created_at",
        "withdrawn_at",
    )

    @admin.display(description="decided by")
    def owner_name(self, decision: OwnerDecision) -> str:
        return get_account_name(decision.owner, decision)
