from typing import Any, ClassVar

from allauth.core.exceptions import ReauthenticationRequired
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from core.accounts.access_services import change_suspension, end_access
from core.accounts.administrators import are_all_administrators, check_administrator_remains
from core.accounts.erasure_log import get_erasure_name, record_erasure
from core.accounts.models import ApiToken, Erasure, User
from core.accounts.people import get_person
from core.accounts.reauthentication import has_authenticated_recently
from core.accounts.tokens import revoke_token
from core.mail.addresses import AddressField
from core.web.refusals import show_as_form_error, show_as_message


def _require_recent_authentication(request: HttpRequest) -> None:
    """Raise ReauthenticationRequired for a POST unless the person authenticated recently."""
    if request.method == "POST" and not has_authenticated_recently(request):
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
            with show_as_form_error(self):  # the admin saves in the same transaction
                check_administrator_remains(leaving_ids=[self.instance.pk])
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

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show and process Django's page. A POST requires recent authentication."""
        _require_recent_authentication(request)
        return super().changeform_view(request, *args, **kwargs)

    def user_change_password(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Set another person's password. The administrator must have authenticated recently."""
        _require_recent_authentication(request)
        return super().user_change_password(request, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Delete an account. The administrator must have authenticated recently."""
        _require_recent_authentication(request)
        return super().delete_view(request, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show the accounts or run an action; deletion requires recent authentication."""
        if request.POST.get("action") == "delete_selected":
            _require_recent_authentication(request)
        return super().changelist_view(request, *args, **kwargs)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return Django's result, with an obstacle added if no administrator would remain."""
        objects, model_counts, missing_permissions, protected_objects = super().get_deleted_objects(
            objs, request
        )
        if are_all_administrators([user.pk for user in objs]):
            protected_objects = [*protected_objects, "The site would have no administrator."]
        return objects, model_counts, missing_permissions, protected_objects

    @transaction.atomic
    def delete_model(self, request: HttpRequest, obj: User) -> None:
        check_administrator_remains(leaving_ids=[obj.pk])
        record_erasure(Erasure.Kind.PERSON, get_erasure_name(obj))
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        check_administrator_remains(leaving_ids=[user.pk for user in queryset])
        for user in queryset:
            record_erasure(Erasure.Kind.PERSON, get_erasure_name(user))
        super().delete_queryset(request, queryset)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Save the user; deactivating one also ends their sessions and revokes their tokens."""
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data:
            change_suspension(user=obj, is_suspended=not obj.is_active, actor=get_person(request))

    @admin.action(description="Suspend: sign out, revoke tokens, block sign-in")
    def suspend(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users.exclude(pk=get_person(request).pk):
            with show_as_message(request):
                change_suspension(user=user, is_suspended=True, actor=get_person(request))

    @admin.action(description="Sign out everywhere and revoke tokens")
    def end_access(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            end_access(user=user, actor=get_person(request))


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
        revoke_token(token=obj, actor=get_person(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            revoke_token(token=token, actor=get_person(request))
