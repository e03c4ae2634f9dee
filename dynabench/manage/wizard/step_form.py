"""The base of the steps' forms. Each shows a part of a draft's data and writes it back."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.text.words import compose
from tasks.config.components import ConfigPart
from tasks.config.judging import ValidationPolicy, Votes
from tasks.config.schema import Battles, Limits, Programs, Support
from tasks.making.outline import Data, complete_data, get_value, set_value

Path = tuple[str, ...]
CONFIG_PARTS: Mapping[Path, type[ConfigPart]] = {
    ("battles",): Battles,
    ("limits",): Limits,
    ("programs",): Programs,
    ("support",): Support,
    ("validation",): ValidationPolicy,
    ("validation", "votes"): Votes,
}
NONE_CHOICE = ("", gettext_lazy("None"))


def find_default(path: Path) -> Any:
    """Return a setting's default, or None if it has none. path: the setting's path."""
    section = CONFIG_PARTS.get(path[:-1])
    if section is None:
        return None
    return section.model_fields[path[-1]].default


def build_text_area(rows: int) -> forms.Textarea:
    """Return a text box with this number of lines."""
    return forms.Textarea(attrs={"rows": rows})


def require_both(form: forms.Form, *pair: str) -> None:
    """Add an error if only one of two fields is filled in."""
    values = form.cleaned_data
    for name, other_name in (pair, pair[::-1]):
        if values.get(other_name) and not values.get(name):
            form.add_error(name, _("Fill in both answers, or neither."))


class StepForm(forms.Form):
    """A base form for a step. PATHS: where each form field's value is in the draft's data."""

    PATHS: ClassVar[Mapping[str, Path]] = {}

    def __init__(self, draft: Data, form_data: Any = None) -> None:
        # With what follows from other fields, such as a policy's numbers.
        complete_draft = complete_data(draft)
        values = {}
        for name, path in self.PATHS.items():
            values[name] = get_value(complete_draft, path, find_default(path))
        super().__init__(form_data, initial=values)
        self.adapt_fields(complete_draft)

    def adapt_fields(self, data: Data) -> None:
        """Adapt the fields to the data. Does nothing here; subclasses override it."""

    def set_choices(
        self, name: str, options: Sequence[str], empty_choice: Any = NONE_CHOICE
    ) -> None:
        """Set a field's choices.

        They are `empty_choice`, the options, and the current value if it is not among them.
        """
        current = self.initial.get(name)
        choices = [empty_choice]
        choices += [(option, option) for option in options]
        if current and current not in options:
            choices.append((current, current))
        field: Any = self.fields[name]
        field.choices = choices

    def write(self, data: Data) -> None:
        """Write the submitted values to `data`, and remove settings that equal their default."""
        for name, path in self.PATHS.items():
            if name in self.fields:
                value = self.cleaned_data[name]
                if isinstance(value, str):
                    value = compose(value)
                if value == find_default(path):
                    value = None  # leaves it out: what is not set follows a later default
                set_value(data, path, value)
