from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin

from dynabench.accounts.models import User


@admin.register(User)
class UserAdmin(BaseUserAdmin):
    ordering = ["email"]
    list_display = ["email", "is_superuser", "is_active", "date_joined"]
    list_filter = ["is_superuser", "is_active"]
    search_fields = ["email"]
    filter_horizontal = []
    fieldsets = [
        (None, {"fields": ["email", "password"]}),
        ("Permissions", {"fields": ["is_active", "is_superuser"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]
    add_fieldsets = [
        (
            None,
            {"classes": ["wide"], "fields": ["email", "usable_password", "password1", "password2"]},
        )
    ]
