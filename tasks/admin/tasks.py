"""Tasks, their members and groups in the admin; other modules have rounds, contexts, targets."""

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, QueryDict

from core.accounts.models import User
from core.accounts.people import account_name
from core.mail.addresses import AddressField
from core.web.refusals import as_form_error
from tasks.admin.roles import (
    EDITORS,
    NO_ROLES,
    OWNERS,
    READERS,
    REVIEWERS,
    ByRole,
    CountColumn,
    RoleAdmin,
    person,
)
from tasks.config.parsing import ConfigError
from tasks.config_changes import hash_text, parse_or_convert
from tasks.making.services import delete_unopened_task
from tasks.models import Task, TaskMember
from tasks.services import (
    change_members,
    change_task,
    create_task,
    find_account_limited,
    save_config,
)


class TaskForm(forms.ModelForm):
    """A form for a task that checks its configuration and converts Dynabench 1.0 and 2.0."""

    class Meta:
        model = Task
        fields = ["code", "config_text", "is_visible", "allow_try_out", "is_official"]
        widgets = {
            "config_text": forms.Textarea(
                attrs={"rows": 40, "cols": 110, "spellcheck": "false", "wrap": "off"}
            )
        }
        help_texts = {
            "config_text": "YAML; see docs/task-config.md. A configuration of Dynabench 1.0 or 2.0 "
            "is converted when you save."
        }

    notes: Sequence[str] = ()

    def clean_config_text(self) -> str:
        """Return the configuration text, converted if it is one of Dynabench.

        Raises ValidationError for a text that cannot be read. The services check the rest.
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


class MemberForm(forms.ModelForm):
    """A form for a member, identified by a typed email address, so that no addresses are listed."""

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
            with as_form_error(self):
                self.instance.user = find_account_limited(self.person, email)
        return email


class MemberInline(ByRole, admin.StackedInline):
    model = TaskMember
    form = MemberForm
    extra = 0
    to_task = ""
    may = {"view": REVIEWERS, "add": OWNERS, "change": OWNERS, "delete": OWNERS}

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request)
        return rows.colleagues().with_standing().select_related("user__annotator", "task")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the columns of a member: the address for owners, who alone may change members."""
        return [self.named_by(request, obj), "role", "counts"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        if self.named_by(request, obj) == "email":
            return ["counts"]
        return ["pseudonym", "counts"]

    def named_by(self, request: HttpRequest, task: Task | None) -> str:
        """Return the name of the column that identifies a member."""
        if task is None or self.allows(request, "change", task):
            return "email"
        return "pseudonym"

    def pseudonym(self, member: TaskMember) -> str:
        return account_name(member.user, owns=False)

    @admin.display(boolean=True, description="address confirmed")
    def counts(self, member: TaskMember) -> bool | None:
        return getattr(member, "stands", None)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset: Any = super().get_formset(request, obj, **kwargs)
        formset.form.person = request.user
        return formset


@admin.register(Task)
class TaskAdmin(RoleAdmin):
    form = TaskForm
    inlines = [MemberInline]
    fields = ["code", "config_text", "is_visible", "allow_try_out", "is_official"]
    list_display = ["code", "name", CountColumn("rounds"), "is_visible", "is_official"]
    list_filter = ["is_visible", "is_official"]
    search_fields = ["code", "name"]
    to_task = ""
    may = {"view": READERS, "add": NO_ROLES, "change": EDITORS, "delete": OWNERS}

    def allows(self, request: HttpRequest, action: str, row: Model | None = None) -> bool:
        if action == "add":
            return bool(request.user.is_superuser)
        return super().allows(request, action, row)

    def get_fields(self, request: HttpRequest, obj: Task | None = None) -> Any:
        """Return the fields of a task, with the configuration only for people who may edit it."""
        reads = obj is None or self.allows(request, "change", obj)
        return [name for name in self.fields if reads or name != "config_text"]

    def get_readonly_fields(self, request: HttpRequest, obj: Task | None = None) -> list[str]:
        fixed_fields = []
        if obj:
            fixed_fields = ["code"]
        if request.user.is_superuser:
            return fixed_fields
        owns = obj is None or self.allows(request, "delete", obj)
        fixed_fields.append("is_official")
        if not owns:
            fixed_fields += ["is_visible", "allow_try_out"]
        return fixed_fields

    def logged(self, row: Task) -> dict[str, str]:
        return {"task": row.code}

    def save_model(self, request: HttpRequest, obj: Task, form: Any, change: bool) -> None:
        actor = person(request)
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
            stored = Task.objects.get(pk=obj.pk)
            change_task(task=stored, actor=actor, fields=fields)
        self._show_notes(request, form)

    def _show_notes(self, request: HttpRequest, form: Any) -> None:
        """Show what was converted, and what is odd about a text that was stored."""
        for note in form.notes:
            messages.warning(request, note)

    def delete_model(self, request: HttpRequest, obj: Task) -> None:
        delete_unopened_task(task=obj, actor=person(request))

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        actions = {
            "added": formset.new_objects,
            "changed": [member for member, _ in formset.changed_objects],
            "removed": formset.deleted_objects,
        }
        if not any(actions.values()):
            return
        change_members(task=form.instance, actor=person(request), **actions)
        for member in (*actions["added"], *actions["changed"]):
            if not TaskMember.objects.standing().filter(pk=member.pk).exists():
                text = "%s has this role once the person has confirmed the address."
                messages.warning(request, text % member.user.email)
