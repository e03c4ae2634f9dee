from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from dynabench.accounts.erasures import name_of, note_erasure
from dynabench.accounts.models import Erasure, User


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

    @transaction.atomic
    def delete_model(self, request: HttpRequest, obj: User) -> None:
        note_erasure(Erasure.Kind.PERSON, name_of(obj))
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            note_erasure(Erasure.Kind.PERSON, name_of(user))
        super().delete_queryset(request, queryset)
