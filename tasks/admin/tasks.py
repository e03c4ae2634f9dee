"""Tasks, their members and groups in the admin. Other modules have rounds, contexts, targets."""

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, QueryDict
from django.urls import reverse_lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from core.accounts.models import User
from core.accounts.people import get_member_label
from core.mail.addresses import AddressField
from core.web.refusals import show_as_form_error
from tasks.admin.roles import (
    EDITORS,
    NO_ROLES,
    OWNERS,
    READERS,
    REVIEWERS,
    CountColumn,
    RoleAdmin,
    RolePermissions,
    get_person,
)
from tasks.config.parsing import ConfigError
from tasks.config_changes import hash_text, parse_or_convert
from tasks.making.services import delete_unopened_task
from tasks.models import Task, TaskMember
from tasks.services import (
    change_members,
    change_task,
    create_task,
    find_account_within_limit,
    save_config,
)


class TaskAdminForm(forms.ModelForm):
    """A form for a task, which parses its configuration.

    Configurations of Dynabench 1.0 and 2.0 are converted.
    """

    class Meta:
        model = Task
        fields = ["code", "config_text", "is_visible", "allow_try_out", "is_official"]
        widgets = {
            "config_text": forms.Textarea(
                attrs={"rows": 40, "cols": 110, "spellcheck": "false", "wrap": "off"}
            )
        }
        help_texts = {
            # The admin shows help as HTML.
            "config_text": format_lazy(
                'YAML. <a href="{reference}">See what each key means</a>. A configuration of '
                "Dynabench 1.0 or 2.0 is converted when you save.",
                reference=reverse_lazy("docs-page", args=["task-config"]),
            )
        }

    notes: Sequence[str] = ()

    def clean_config_text(self) -> str:
        """Return the configuration text, converted if it comes from Dynabench 1.0 or 2.0.

        Raises ValidationError for a text that cannot be parsed. The services check the rest.
        """
        typed_text = self.cleaned_data["config_text"]
        try:
            _, text, self.notes = parse_or_convert(typed_text, name=self.instance.name)
        except ConfigError as error:
            raise ValidationError([str(problem) for problem in error.problems]) from None
        if text != typed_text:  # the form shows what it became
            self.data = cast(QueryDict, self.data).copy()
            self.data[self.add_prefix("config_text")] = text
        return text


class MemberAdminForm(forms.ModelForm):
    """A form for a member. The email address is typed, so that no addresses are listed."""

    person: User | AnonymousUser = AnonymousUser()
    email = AddressField(label="E-mail address of the account")

    class Meta:
        model = TaskMember
        fields = ["role"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["email"].initial = self.instance.user.email
            self.fields["email"].disabled = True

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if not self.instance.pk:
            with show_as_form_error(self):
                self.instance.user = find_account_within_limit(self.person, email)
        return email


class MemberInline(RolePermissions, admin.StackedInline):
    model = TaskMember
    form = MemberAdminForm
    extra = 0
    task_path = ""
    roles_by_action = {"view": REVIEWERS, "add": OWNERS, "change": OWNERS, "delete": OWNERS}

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request)
        return (
            rows.select_colleagues()
            .annotate_effectiveness()
            .select_related("user__annotator", "task")
        )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the columns of a member; the address only for owners, who may change members."""
        return [self.get_identity_column(request, obj), "role", "is_confirmed"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        if self.get_identity_column(request, obj) == "email":
            return ["is_confirmed"]
        return ["pseudonym", "is_confirmed"]

    def get_identity_column(self, request: HttpRequest, task: Task | None) -> str:
        """Return the name of the column that identifies a member."""
        if task is None or self.is_allowed(request, "change", task):
            return "email"
        return "pseudonym"

    def pseudonym(self, member: TaskMember) -> str:
        return get_member_label(member.user, is_owner=False)

    @admin.display(boolean=True, description="address confirmed")
    def is_confirmed(self, member: TaskMember) -> bool | None:
        return getattr(member, "is_effective", None)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset: Any = super().get_formset(request, obj, **kwargs)
        formset.form.person = request.user
        return formset


@admin.register(Task)
class TaskAdmin(RoleAdmin):
    form = TaskAdminForm
    inlines = [MemberInline]
    fields = ["code", "config_text", "is_visible", "allow_try_out", "is_official"]
    list_display = ["code", "name", CountColumn("rounds"), "visible", "official"]
    list_filter = ["is_visible", "is_official"]
    search_fields = ["code", "name"]
    task_path = ""
    roles_by_action = {"view": READERS, "add": NO_ROLES, "change": EDITORS, "delete": OWNERS}

    @admin.display(description=_("Visible"), boolean=True, ordering="is_visible")
    def visible(self, row: Task) -> bool:
        """Return whether everybody sees the task."""
        return row.is_visible

    @admin.display(description=_("Official"), boolean=True, ordering="is_official")
    def official(self, row: Task) -> bool:
        """Return whether the task is one of the site's own."""
        return row.is_official

    def is_allowed(self, request: HttpRequest, action: str, row: Model | None = None) -> bool:
        if action == "add":
            return bool(request.user.is_superuser)
        return super().is_allowed(request, action, row)

    def get_fields(self, request: HttpRequest, obj: Task | None = None) -> Any:
        """Return the fields of a task, with the configuration only for people who may edit it."""
        can_read_config = obj is None or self.is_allowed(request, "change", obj)
        return [name for name in self.fields if can_read_config or name != "config_text"]

    def get_readonly_fields(self, request: HttpRequest, obj: Task | None = None) -> list[str]:
        fixed_fields = []
        if obj:
            fixed_fields = ["code"]
        if request.user.is_superuser:
            return fixed_fields
        is_owner = obj is None or self.is_allowed(request, "delete", obj)
        fixed_fields.append("is_official")
        if not is_owner:
            fixed_fields += ["is_visible", "allow_try_out"]
        return fixed_fields

    def describe_for_log(self, row: Task) -> dict[str, str]:
        return {"task": row.code}

    def save_model(self, request: HttpRequest, obj: Task, form: Any, change: bool) -> None:
        actor = get_person(request)
        if not change:
            obj.pk = create_task(actor=actor, **form.cleaned_data)[0].pk
            self._show_notes(request, form)
            return
        fields = {name: form.cleaned_data[name] for name in form.changed_data}
        if text := fields.pop("config_text", ""):
            save_config(
                task=obj, text=text, base=hash_text(form.initial["config_text"]), actor=actor
            )
        if fields:
            # Read again: `save_config` has stored another text, and `obj` has the form's values.
            stored_task = Task.objects.get(pk=obj.pk)
            change_task(task=stored_task, actor=actor, fields=fields)
        self._show_notes(request, form)

    def _show_notes(self, request: HttpRequest, form: Any) -> None:
        """Show the warnings about a saved configuration, and what was converted in it."""
        for note in form.notes:
            messages.warning(request, note)

    def delete_model(self, request: HttpRequest, obj: Task) -> None:
        delete_unopened_task(task=obj, actor=get_person(request))

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        # The keys are the service's arguments.
        member_lists = {
            "added_members": formset.new_objects,
            "changed_members": [member for member, _ in formset.changed_objects],
            "removed_members": formset.deleted_objects,
        }
        if not any(member_lists.values()):
            return
        change_members(task=form.instance, actor=get_person(request), **member_lists)
        for member in (*member_lists["added_members"], *member_lists["changed_members"]):
            if not TaskMember.objects.select_effective().filter(pk=member.pk).exists():
                text = "%s has this role once the person has confirmed the address."
                messages.warning(request, text % member.user.email)
