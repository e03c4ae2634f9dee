"""What the forms of the steps share: each shows a part of a draft's data, and writes it back."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.text.words import composed
from tasks.config.components import Part
from tasks.config.judging import ValidationPolicy, Votes
from tasks.config.schema import Limits, Programs, Support
from tasks.making.outline import Data, completed, get, put

Path = tuple[str, ...]
PARTS: Mapping[Path, type[Part]] = {
    ("limits",): Limits,
    ("programs",): Programs,
    ("support",): Support,
    ("validation",): ValidationPolicy,
    ("validation", "votes"): Votes,
}
NONE = ("", gettext_lazy("None"))


def default_of(path: Path) -> Any:
    """Return the value that counts where a configuration has none."""
    part = PARTS.get(path[:-1])
    return part.model_fields[path[-1]].default if part else None


def text_area(rows: int) -> forms.Textarea:
    """Return a text box with this number of lines."""
    return forms.Textarea(attrs={"rows": rows})


def require_both(form: forms.Form, *pair: str) -> None:
    """Refuse one of two answers without the other."""
    said = form.cleaned_data
    for name, other in (pair, pair[::-1]):
        if said.get(other) and not said.get(name):
            form.add_error(name, _("Fill in both answers, or neither"))


class StepForm(forms.Form):
    """The form of a step. `PATHS` says where each field's value is in the draft's data."""

    PATHS: ClassVar[Mapping[str, Path]] = {}

    def __init__(self, draft: Data, sent: Any = None) -> None:
        full = completed(draft)
        found = {name: get(full, at, default_of(at)) for name, at in self.PATHS.items()}
        super().__init__(sent, initial=found)
        self.arrange(full)

    def arrange(self, data: Data) -> None:
        """Fit the fields to the data."""

    def choose(self, name: str, options: Sequence[str], none: Any = NONE) -> None:
        """Let a field offer these, and what it holds."""
        held = self.initial.get(name)
        more = [held] if held and held not in options else []
        field: Any = self.fields[name]
        field.choices = [none, *((one, one) for one in (*options, *more))]

    def write(self, data: Data) -> None:
        """Write what was filled in, without what holds anyway."""
        for name, path in self.PATHS.items():
            if name in self.fields:
                value = self.cleaned_data[name]
                value = composed(value) if isinstance(value, str) else value
                put(data, path, None if value == default_of(path) else value)
