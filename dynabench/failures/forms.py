"""Forms of the page about weak spots."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from core.web.lists import ListFilter
from tasks.models import TargetModel


class ModelFilter(ListFilter):
    """Chooses the model whose errors are searched."""

    model = forms.ChoiceField(required=False, label=_("Model"))

    def __init__(self, request: HttpRequest, models: Sequence[TargetModel]) -> None:
        """Read the filter from the request. Raises InvalidListQuery for the name of no model."""
        names = [(model.name, model.name) for model in models]
        super().__init__(request, model=names)
        # No search is about all models, so the form offers none.
        self.fields["model"].choices = names  # type: ignore[attr-defined]


class ChallengeForm(forms.Form):
    """A challenge for writers, from a weak spot."""

    name = forms.CharField(
        # Translators: a challenge's name, such as irony
        label=_("Short name"),
        max_length=60,
        validators=[RegexValidator(r"\A[a-z][a-z0-9_-]*\Z", _("Use a-z, 0-9, _ and -."))],
    )
    sentence = forms.CharField(
        label=_("What writers read"),
        max_length=200,
        widget=forms.TextInput(),
        help_text=_("A sentence, such as: Try one that needs counting."),
    )


def choose_model(models: Sequence[TargetModel], values: Any) -> TargetModel | None:
    """Return the model with the requested name, by default the first one; None without models."""
    for model in models:
        if model.name == values.get("model"):
            return model
    return models[0] if models else None
