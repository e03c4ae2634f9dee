"""Forms for the settings of targets and generators, and for a target's test input."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.web.refusals import show_as_form_error
from tasks.line_files import find_unstorable_reason
from tasks.models import Generator, TargetModel
from tasks.targets.ask_before_opening import build_sample
from tasks.targets.connect import build_spec, get_endpoint, get_generator_endpoint
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.registry import ADAPTERS
from tasks.targets.gpus import find_gpu_count_problem
from tasks.targets.services import check_same_model

GENERATOR_ADAPTERS = ("openai_chat", "http", "scripted")
"""Adapters that can generate texts."""
MAX_SECRET_CHARS = 500
SECRET_VALIDATOR = RegexValidator(
    r"^[!-~]+$", _("Use letters, numbers and symbols without spaces.")
)
"""The check of a secret, which is sent in a header."""


class _EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form for the settings of a model. The adapter checks them."""

    def clean_options(self) -> dict[str, Any]:
        return self._read_mapping("options")

    def _read_mapping(self, name: str) -> dict[str, Any]:
        value = self.cleaned_data[name] or {}
        if not isinstance(value, dict):
            raise ValidationError(gettext('Enter keys and values, such as {"model": "x"}.'))
        if reason := find_unstorable_reason(value):
            raise ValidationError(gettext("This field contains %(reason)s.") % {"reason": reason})
        return value

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        # Settings that are wrong by themselves would make the endpoint's error a second, odd one.
        if self.errors:
            return
        try:
            self.check_endpoint()
        except EndpointError as error:
            self.add_error(None, str(error))

    def check_endpoint(self) -> None:
        """Check the fields together. Adds form errors, or raises EndpointError."""


class TargetForm(_EndpointForm):
    """A form for a target. The adapter checks its settings."""

    adapter = forms.ChoiceField(choices=[(name, name) for name in sorted(ADAPTERS)], initial="http")
    url = forms.URLField(
        max_length=500,
        required=False,
        assume_scheme="https",
        help_text=_("Leave empty to use our own model server, which loads `source`."),
    )

    # The field is a number, and to Django's own check any number, 0 as well, is a ticked box.
    gpus = forms.BooleanField(
        label=_("Evaluate on a GPU"), required=False, widget=forms.CheckboxInput(check_test=bool)
    )

    def clean_gpus(self) -> int:
        gpus = int(self.cleaned_data["gpus"])
        if problem := find_gpu_count_problem(gpus, settings.EVALUATION_GPUS):
            raise ValidationError(gettext(problem))
        if gpus and self.cleaned_data.get("url"):
            raise ValidationError(
                gettext("A model with a URL runs on its own machine, so it can't use our GPU.")
            )
        return gpus

    def clean_serving(self) -> dict[str, Any]:
        return self._read_mapping("serving")

    def check_endpoint(self) -> None:
        try:
            # Building the spec checks the names of its keys, which a mapping of JSON does not.
            build_spec(self.instance)
        except TypeError as error:  # the words of a missing or unknown keyword
            reason = str(error).removeprefix("ModelSpec.__init__() ")
            message = gettext("The model server can't read these loading options: %(reason)s.")
            self.add_error("serving", message % {"reason": reason})
        get_endpoint(self.instance)
        if old_target := TargetModel.objects.filter(pk=self.instance.pk).first():
            with show_as_form_error(self):
                check_same_model(old_target, self.cleaned_data)


class SettingsForm(TargetForm):
    """A TargetForm with all settings of a target. The admin uses TargetForm with its own fields."""

    class Meta:
        model = TargetModel
        fields = (
            "name",
            "adapter",
            "url",
            "source",
            "revision",
            "options",
            "serving",
            "gpus",
            "secret_env",
        )


class GeneratorForm(_EndpointForm):
    """A form for a generator, whose settings the adapter checks.

    The admin chooses the fields itself.
    """

    adapter = forms.ChoiceField(choices=[(name, name) for name in GENERATOR_ADAPTERS])
    url = forms.URLField(max_length=500, assume_scheme="https")

    class Meta:
        model = Generator
        fields = ("name", "adapter", "url", "options", "secret_env")

    def check_endpoint(self) -> None:
        get_generator_endpoint(self.instance)


class InputForm(forms.Form):
    """A form for the input of a target's test, prefilled with an example and a context."""

    def __init__(self, target: TargetModel, *args: Any, **kwargs: Any) -> None:
        config = target.task.config
        kwargs["initial"] = build_sample(target.task)
        super().__init__(*args, **kwargs)
        for name in config.model_fields:
            component = config.get_component(name)
            is_typed = component.kind.cell_type == "text" and not component.is_media
            field_class = forms.CharField if is_typed else forms.JSONField
            self.fields[name] = field_class(
                label=component.title,
                required=component.required,
                widget=forms.Textarea(attrs={"rows": 4, "cols": 90}),
            )
