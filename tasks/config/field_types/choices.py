"""Labels to choose from: multiclass (one) and multilabel (any)."""

from collections.abc import Mapping
from typing import Any

from core.text.words import gettext_noop, label_of
from tasks.config.components import (
    PLACES,
    Component,
    FieldType,
    FormInput,
    format_value,
    join_labels,
)
from tasks.config.values import format_subject

MAX_RADIO_BUTTONS = 7  # more choices than this become a drop-down list


class _Choice(FieldType):
    keys = ("labels", "colours")
    is_read = False
    missing = "Choose {title}"

    def display(self, component: Component, value: Any) -> str:
        words = {label.value: label.words for label in component.labels}
        if isinstance(value, list | tuple):
            return ", ".join(self.display(component, item) for item in value)
        if isinstance(value, str):
            return words.get(value, value)
        return format_value(value)


class Multiclass(_Choice, name="multiclass"):
    """One of the labels."""

    title = gettext_noop("One label of several")
    place = 3
    places = PLACES
    in_prompt = True
    cell = "text"
    category = "text-classification"

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        if isinstance(value, str) and value in component.values:
            return []
        return [f"{format_subject(component)} must be one of: {join_labels(component.values)}"]

    def kept(self, component: Component, value: Any) -> Any:
        label = label_of(value, component.values)
        if label is None:
            return value
        return label

    def form_input(self, component: Component) -> FormInput:
        # Few choices are read at one glance.
        if len(component.labels) <= MAX_RADIO_BUTTONS:
            return FormInput("ChoiceField", "RadioSelect", choices=_build_choices(component))
        nothing = ("", "")  # else the list's first label would be chosen by who chooses none
        choices = _build_choices(component)
        choices.insert(0, nothing)
        return FormInput("ChoiceField", "Select", choices=choices)

    def described(self, component: Component) -> str:
        return f"one of {join_labels(component.values)}"

    def stand_in(self, component: Component) -> str:
        return component.values[0]


class Multilabel(_Choice, name="multilabel"):
    """Any of the labels, each once."""

    title = gettext_noop("Any of several labels")
    place = 4
    places = ("input", "metadata")

    def is_list(self, component: Component) -> bool:
        return True

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if not isinstance(value, list | tuple):
            return [f"{subject} must be a list of choices"]
        unknown = []
        for item in value:
            if item not in component.values:
                unknown.append(item)
        if unknown:
            return [f"{subject} has no choice “{unknown[0]}”; use: {join_labels(component.values)}"]
        if len(set(value)) < len(value):
            return [f"{subject} names a choice twice"]
        return []

    def kept(self, component: Component, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        labels = [label_of(item, component.values) for item in value]
        return [item if label is None else label for item, label in zip(value, labels, strict=True)]

    def form_input(self, component: Component) -> FormInput:
        choices = _build_choices(component)
        return FormInput("MultipleChoiceField", "CheckboxSelectMultiple", choices=choices)

    def described(self, component: Component) -> str:
        return f"a list of any of {join_labels(component.values)}"


def _build_choices(component: Component) -> list[tuple[str, str]]:
    return [(label.value, label.words) for label in component.labels]
