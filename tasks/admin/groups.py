"""Groups of tasks in the admin: superusers keep them."""

from django.contrib import admin

from tasks.models import TaskGroup


@admin.register(TaskGroup)
class TaskGroupAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A community's page, and which tasks are on it."""

    list_display = ("name", "slug", "summary")
    prepopulated_fields = {"slug": ("name",)}
    filter_horizontal = ("tasks",)
    search_fields = ("name", "slug")
