from typing import Any, ClassVar

from allauth.core.exceptions import ReauthenticationRequired
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from core.accounts.access_services import end_access, set_suspended
from core.accounts.administrators import are_all, keep_one
from core.accounts.erasures import name_of, note_erasure
from core.accounts.models import ApiToken, Erasure, User
from core.accounts.people import person
from core.accounts.reauthentication import did_recently
from core.accounts.tokens import revoke_token
from core.mail.addresses import AddressField
from core.web.refusals import as_form_error, as_message


def _ask_again(request: HttpRequest) -> None:
    """Raise ReauthenticationRequired for a POST unless the person authenticated recently."""
    if request.method == "POST" and not did_recently(request):
        raise ReauthenticationRequired


class NewAccountForm(AdminUserCreationForm):
    """Django's form for a new account, which requires a deliverable email address."""

    class Meta(AdminUserCreationForm.Meta):
        model = User
        fields = ("email",)
        field_classes: ClassVar = {"email": AddressField}


class AccountForm(UserChangeForm):
    """Django's form for an account, which refuses to remove the last administrator."""

    class Meta(UserChangeForm.Meta):
        model = User
        field_classes: ClassVar = {"email": AddressField}

    def clean(self) -> dict[str, Any]:
        cleaned_data: dict[str, Any] = super().clean() or self.cleaned_data
        if not (cleaned_data.get("is_active") and cleaned_data.get("is_superuser")):
            with as_form_error(self):  # the admin saves in the same transaction
                keep_one(leaving_ids=[self.instance.pk])
        return cleaned_data


@admin.register(User)
class UserAdmin(BaseUserAdmin):
    form = AccountForm
    add_form = NewAccountForm
    ordering = ["email"]
    actions = ["suspend", "end_access"]
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

    def changeform_view(self, request: HttpRequest, *more: Any, **named: Any) -> Any:
        """Require a recent password to change an address or a role, as for one's own account."""
        _ask_again(request)
        return super().changeform_view(request, *more, **named)

    def user_change_password(self, request: HttpRequest, *more: Any, **named: Any) -> Any:
        """Require a recent password to set another person's password."""
        _ask_again(request)
        return super().user_change_password(request, *more, **named)

    def delete_view(self, request: HttpRequest, *more: Any, **named: Any) -> Any:
        """Require a recent password to delete an account."""
        _ask_again(request)
        return super().delete_view(request, *more, **named)

    def changelist_view(self, request: HttpRequest, *more: Any, **named: Any) -> Any:
        """Require a recent password to delete several accounts, but not for the other actions."""
        if request.POST.get("action") == "delete_selected":
            _ask_again(request)
        return super().changelist_view(request, *more, **named)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return Django's result; deleting the last administrators counts as protected."""
        objects, model_counts, missing_permissions, protected_objects = super().get_deleted_objects(
            objs, request
        )
        if are_all([user.pk for user in objs]):
            protected_objects = [*protected_objects, "The site would have no administrator."]
        return objects, model_counts, missing_permissions, protected_objects

    @transaction.atomic
    def delete_model(self, request: HttpRequest, obj: User) -> None:
        keep_one(leaving_ids=[obj.pk])
        note_erasure(Erasure.Kind.PERSON, name_of(obj))
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        keep_one(leaving_ids=[user.pk for user in queryset])
        for user in queryset:
            note_erasure(Erasure.Kind.PERSON, name_of(user))
        super().delete_queryset(request, queryset)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Save the user; deactivating one also ends their sessions and revokes their tokens."""
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data:
            set_suspended(user=obj, is_suspended=not obj.is_active, actor=person(request))

    @admin.action(description="Suspend: sign out, revoke tokens, let in no more")
    def suspend(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users.exclude(pk=person(request).pk):
            with as_message(request):
                set_suspended(user=user, is_suspended=True, actor=person(request))

    @admin.action(description="Sign out everywhere and revoke tokens")
    def end_access(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            end_access(user=user, actor=person(request))


@admin.register(ApiToken)
class TokenAdmin(admin.ModelAdmin):
    """A ModelAdmin to view and revoke API tokens. Only their owners create tokens."""

    list_display = ["prefix", "user", "name", "scopes", "last_used_at", "expires_at"]
    search_fields = ["prefix", "user__email"]
    fields = readonly_fields = (
        *("prefix", "user", "name", "scopes"),
        *("created_at", "last_used_at", "expires_at"),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: ApiToken) -> None:
        revoke_token(token=obj, actor=person(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            revoke_token(token=token, actor=person(request))
