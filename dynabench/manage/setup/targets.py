"""The owners' pages of a task's targets: the list, their settings, and a test."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.models import User
from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from core.web.throttles import is_used_up
from dynabench.manage.access import build_attention_values, find_owned_task
from tasks.models import TargetModel, Task
from tasks.permissions import can_edit, can_manage, list_fixed_settings
from tasks.rounds.services import add_target_to_planned_round
from tasks.targets.contact_pages import show_contact
from tasks.targets.forms import (
    MAX_SECRET_CHARS,
    SECRET_VALIDATOR,
    InputForm,
    SettingsForm,
)
from tasks.targets.send_test import NoAnswer, format_answer, send_test
from tasks.targets.services import add_target, change_target, delete_target

FIELD_WORDS = {
    "name": (
        gettext_lazy("Name"),
        gettext_lazy("Lowercase letters, numbers, hyphens. You can't change it later."),
    ),
    "adapter": (
        gettext_lazy("Protocol"),
        gettext_lazy("How this site sends requests to the model."),
    ),
    "url": (
        gettext_lazy("URL"),
        gettext_lazy("Leave empty if this site's model server loads the model."),
    ),
    "source": (
        gettext_lazy("Source"),
        gettext_lazy("What the model server loads: a Hugging Face model ID, or package:NAME."),
    ),
    # Translators: noun: a version on the hub
    "revision": (gettext_lazy("Revision"), gettext_lazy("The commit of a Hugging Face model.")),
    "options": (gettext_lazy("Protocol options"), gettext_lazy("As JSON.")),
    "serving": (
        gettext_lazy("Loading options"),
        gettext_lazy("As JSON: backend, precision, fields, labels."),
    ),
    "secret_env": (
        # Translators: noun: a key that only the owner knows
        gettext_lazy("Secret"),
        gettext_lazy("Name of the environment variable with the secret."),
    ),
}


class SecretForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form with the settings of a model at a URL, limited to what the person may change."""

    secret = forms.CharField(
        label=gettext_lazy("API key"),
        required=False,
        max_length=MAX_SECRET_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        validators=[SECRET_VALIDATOR],
        help_text=gettext_lazy(
            "Sent as a bearer token over https and stored encrypted. Enter it again if you "
            "change the URL, protocol or options."
        ),
    )
    forget_secret = forms.BooleanField(
        label=gettext_lazy("Delete the stored secret"), required=False
    )

    def __init__(self, user: User, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        limit_fields(self, user)
        # The secret of a variable is the operator's; a second one would never be used.
        if self.instance.secret_env:
            del self.fields["secret"]
        if not self.instance.sealed_secret:
            del self.fields["forget_secret"]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("secret") and (values.get("secret_env") or not values.get("url")):
            self.add_error(
                "secret",
                _("To use an API key, enter the model's URL and leave “Secret” empty."),
            )
        if values.get("secret") or values.get("forget_secret"):
            self.instance.sealed_secret = ""  # it is not read again, should it be unreadable
        return values

    def read_settings(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the named settings, and `secret` if one was entered; "" if it is to be deleted."""
        values = self.cleaned_data
        chosen_settings = {}
        for name in names:
            if name not in ("secret", "forget_secret"):
                chosen_settings[name] = values[name]
        if values.get("forget_secret"):
            chosen_settings["secret"] = ""
        elif values.get("secret"):
            chosen_settings["secret"] = values["secret"]
        return chosen_settings


EMPTY_VALUES = (None, "", "{}", 0, False)
MAIN_FIELDS = ("name", "adapter", "url", "secret", "forget_secret")
"""Settings that every model at a URL needs. The others are for experts."""


class TargetSettings(SecretForm, SettingsForm):
    """A form for the settings of a target."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # No field for what this site cannot give.
        if not settings.EVALUATION_GPUS and not self.instance.gpus:
            del self.fields["gpus"]

    @property
    def main_fields(self) -> list[forms.BoundField]:
        """Return the fields that every model at a URL needs, in their order on the page."""
        return [self[name] for name in MAIN_FIELDS if name in self.fields]

    @property
    def expert_fields(self) -> list[forms.BoundField]:
        """Return the fields that only experts change."""
        return [self[name] for name in self.fields if name not in MAIN_FIELDS]

    @property
    def opens_expert_fields(self) -> bool:
        """Return whether the expert fields need attention: one is wrong or has a value."""
        return any(
            bound.errors or bound.value() not in EMPTY_VALUES for bound in self.expert_fields
        )


def limit_fields(form: SecretForm, user: User) -> None:
    """Remove the fields that the person may not change, and label the others."""
    existing_target = form.instance if form.instance.pk else None
    # Such as a variable with a secret, which only administrators tie to an address.
    for name in list_fixed_settings(user, existing_target):
        form.fields.pop(name, None)
    for name, field in form.fields.items():
        if name in FIELD_WORDS:
            field.label, field.help_text = FIELD_WORDS[name]
        if isinstance(field, forms.JSONField):
            field.widget.attrs["rows"] = 4


@require_safe
def show_targets(request: HttpRequest, code: str) -> HttpResponse:
    """Show all targets of the task."""
    task = find_owned_task(request, code, can_manage)
    targets = list(task.targets.annotate(rounds_in_all=Count("rounds")))
    values = {
        "task": task,
        "targets": targets,
        # Before the first contact, the column would be empty.
        "has_contacts": any(target.contact_at for target in targets),
        "can_edit": can_edit(request.user, task),
    }
    values |= build_attention_values(request, task)
    return render(request, "own/setup/targets.html", values)


@require_http_methods(["GET", "POST"])
def add_new_target(request: HttpRequest, code: str) -> HttpResponse:
    """Show the form for a new target, and register it. The next page tests it."""
    task = find_owned_task(request, code, can_edit)
    user = get_person(request)
    form = TargetSettings(user, request.POST or None, instance=TargetModel(task=task))
    if form.is_valid():
        with show_as_form_error(form):
            target = add_target(task=task, actor=user, fields=form.read_settings(form.fields))
            show_target_added(request, target)
            return redirect("own:target-test", code, target.pk)
    return _show_form(request, task, form)


def show_target_added(request: HttpRequest, target: TargetModel) -> None:
    """Use a new target in a planned round that has none, and show messages about it."""
    round = add_target_to_planned_round(target=target, actor=get_person(request))
    if round:
        message = _("Model %(name)s added. Round %(number)d uses it.")
        messages.success(request, message % {"name": target.name, "number": round.number})
    else:
        message = _("Model %(name)s added. Send it a test, then choose it for a round.")
        messages.success(request, message % {"name": target.name})
    show_contact(request, target)


@require_http_methods(["GET", "POST"])
def edit_target(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show the form for a target's settings. A POST changes them."""
    task = find_owned_task(request, code, can_edit)
    target = get_object_or_404(task.targets.select_related("task"), pk=pk)
    user = get_person(request)
    form = TargetSettings(user, request.POST or None, instance=target)
    if form.is_valid():
        with show_as_form_error(form):
            changed_target = change_target(
                # Only what was changed, so that two editors do not undo each other's fields.
                target=target,
                actor=user,
                fields=form.read_settings(form.changed_data),
            )
            messages.success(request, _("Saved."))
            show_contact(request, changed_target)
            return redirect("own:targets", code)
    return _show_form(request, task, form)


@require_http_methods(["GET", "POST"])
def delete_unused_target(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Ask for confirmation to delete an unused target. A POST deletes it."""
    task = find_owned_task(request, code, can_edit)
    target = get_object_or_404(task.targets, pk=pk)
    if request.method == "POST":
        with show_as_message(request):
            delete_target(target=target, actor=get_person(request))
            messages.success(request, _("Model %(name)s deleted.") % {"name": target.name})
        return redirect("own:targets", code)
    return render(request, "own/setup/target_delete.html", {"task": task, "target": target})


@require_http_methods(["GET", "POST"])
def show_target_test(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show the form for one input; send the input to the target and show the answer.

    The target is asked outside any transaction.
    """
    task = find_owned_task(request, code, can_edit)
    target = get_object_or_404(task.targets.select_related("task"), pk=pk)
    form = InputForm(target, request.POST or None)
    values: dict[str, Any] = {"task": task, "target": target, "form": form}
    if form.is_valid() and is_used_up("test", get_person(request).pk):
        form.add_error(None, _("You've reached the hourly limit of tests. Try again in an hour."))
    elif form.is_valid():
        try:
            values |= format_answer(send_test(target, form.cleaned_data))
        except NoAnswer as error:
            values |= {"failure": str(error), "detail": error.extra_detail}
    return render(request, "own/setup/target_test.html", values, status=get_form_status(form))


def _show_form(request: HttpRequest, task: Task, form: TargetSettings) -> HttpResponse:
    values = {"task": task, "target": form.instance, "form": form}
    return render(request, "own/setup/target_form.html", values, status=get_form_status(form))
