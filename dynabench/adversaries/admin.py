"""Adversaries and their runs in the admin, read-only: the owners' pages change them."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from dynabench.adversaries.models import (
    BUDGET_FIELDS,
    Adversary,
    AdversaryImage,
    AdversaryRun,
)
from tasks.admin.roles import EDITORS, READ_ONLY_PERMISSIONS, RoleAdmin, RolePermissions


class AdversaryRunInline(RolePermissions, admin.TabularInline):
    """The runs of an adversary, newest first."""

    model = AdversaryRun
    fields = readonly_fields = (
        "number",
        "round",
        "state",
        "ended_by",
        "calls",
        "examples",
        "tokens",
        "cost",
    ) + ("queued_at", "finished_at", "error")
    extra = 0
    roles_by_action = {**READ_ONLY_PERMISSIONS, "view": EDITORS}

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the runs with their rounds, which the table names."""
        return super().get_queryset(request).select_related("round__task", "adversary__task")


class AdversaryImageInline(RolePermissions, admin.TabularInline):
    """The images of an adversary's program, newest first."""

    model = AdversaryImage
    fields = readonly_fields = ("number", "source", "file_name", "digest", "size", "state") + (
        "allowed_at",
        "allowed_by",
        "error",
    )
    extra = 0
    roles_by_action = {**READ_ONLY_PERMISSIONS, "view": EDITORS}

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the images with who allowed them, whom the table names."""
        return super().get_queryset(request).select_related("allowed_by", "adversary__task")


@admin.register(Adversary)
class AdversaryAdmin(RoleAdmin):
    """The admin pages of adversaries. They show no texts, which the owners' pages have."""

    list_display = ["name", "task", "kind", "is_nightly", "created_at", "retired_at"]
    list_filter = ["kind", ("task", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["name"]
    ordering = ["-pk"]
    fields = readonly_fields = (
        ("task", "name", "kind", "seed", "is_nightly")
        + BUDGET_FIELDS
        + ("created_at", "retired_at")
    )
    inlines = [AdversaryRunInline, AdversaryImageInline]
    roles_by_action = {**READ_ONLY_PERMISSIONS, "view": EDITORS}
    page_roles = EDITORS

    def get_page_url(self, row: Adversary) -> str:
        """Return the address of the adversary's page for owners."""
        return reverse("own-adversaries:adversary", args=[row.task.code, row.pk])

    def describe_for_log(self, row: Adversary) -> dict[str, str]:
        """Return the query parameters that show the task's entries about adversaries in the log."""
        return {"task": row.task.code, "action__startswith": "adversary."}
