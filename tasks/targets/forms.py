"""Forms for the settings of targets and generators, and for the example of a target's test."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.web.refusals import as_form_error
from tasks.line_files import find_unstorable
from tasks.models import Generator, TargetModel
from tasks.targets.ask_before_opening import build_sample
from tasks.targets.connect import build_spec, get_endpoint, get_generator_endpoint
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.registry import ADAPTERS
from tasks.targets.gpus import find_gpus_problem
from tasks.targets.services import check_same_model

GENERATOR_ADAPTERS = ("openai_chat", "http", "scripted")
"""Adapters that can generate text."""


class _EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form for the settings of a model, which the adapter checks."""

    def clean_options(self) -> dict[str, Any]:
        return self._mapping("options")

    def _mapping(self, name: str) -> dict[str, Any]:
        value = self.cleaned_data[name] or {}
        if not isinstance(value, dict):
            raise ValidationError(gettext('Write keys and values, such as {"model": "x"}.'))
        if reason := find_unstorable(value):
            raise ValidationError(gettext("It holds %(reason)s.") % {"reason": reason})
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
        """Check the fields together. Raises EndpointError, or adds form errors."""


class TargetForm(_EndpointForm):
    """A form for a target, whose adapter checks the settings."""

    adapter = forms.ChoiceField(choices=[(name, name) for name in sorted(ADAPTERS)], initial="http")
    url = forms.URLField(
        max_length=500,
        required=False,
        assume_scheme="https",
        help_text=_("Empty: our own model server, which loads `source`."),
    )

    # The field is a number, and to Django's own check any number, 0 as well, is a ticked box.
    gpus = forms.BooleanField(
        label=_("Evaluated on a GPU"), required=False, widget=forms.CheckboxInput(check_test=bool)
    )

    def clean_gpus(self) -> int:
        gpus = int(self.cleaned_data["gpus"])
        if problem := find_gpus_problem(gpus, settings.EVALUATION_GPUS):
            raise ValidationError(gettext(problem))
        if gpus and self.cleaned_data.get("url"):
            raise ValidationError(gettext("What answers at an address has its own machine."))
        return gpus

    def clean_serving(self) -> dict[str, Any]:
        return self._mapping("serving")

    def check_endpoint(self) -> None:
        try:
            # Building the spec checks the names of its keys, which a mapping of JSON does not.
            build_spec(self.instance)
        except TypeError as error:  # the words of a missing or unknown keyword
            words = str(error).removeprefix("ModelSpec.__init__() ")
            message = gettext("The model server cannot read this: %(reason)s.")
            self.add_error("serving", message % {"reason": words})
        get_endpoint(self.instance)
        if before := TargetModel.objects.filter(pk=self.instance.pk).first():
            with as_form_error(self):
                check_same_model(before, self.cleaned_data)


class SettingsForm(TargetForm):
    """A TargetForm for a known task. The admin chooses its own fields."""

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
    """A form for a generator, whose adapter checks it. The admin chooses its own fields."""

    adapter = forms.ChoiceField(choices=[(name, name) for name in GENERATOR_ADAPTERS])
    url = forms.URLField(max_length=500, assume_scheme="https")

    class Meta:
        model = Generator
        fields = ("name", "adapter", "url", "options", "secret_env")

    def check_endpoint(self) -> None:
        get_generator_endpoint(self.instance)


class InputForm(forms.Form):
    """A form for a target's input, initially filled with an example and a context of the task."""

    def __init__(self, target: TargetModel, *args: Any, **kwargs: Any) -> None:
        config = target.task.config
        kwargs["initial"] = build_sample(target.task)
        super().__init__(*args, **kwargs)
        for name in config.model_fields:
            component = config.component(name)
            is_typed = component.kind.cell == "text" and not component.is_media
            kind = forms.CharField if is_typed else forms.JSONField
            self.fields[name] = kind(
                label=component.title,
                required=component.required,
                widget=forms.Textarea(attrs={"rows": 4, "cols": 90}),
            )
