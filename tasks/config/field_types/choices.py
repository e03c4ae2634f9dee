"""Labels to choose from: multiclass (exactly one) and multilabel (any number)."""

from collections.abc import Mapping
from typing import Any

from core.text.words import find_label, gettext_noop
from tasks.config.components import (
    SECTIONS,
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
    missing_message = "Choose {title}"

    def display(self, component: Component, value: Any) -> str:
        texts_by_value = {label.value: label.words for label in component.labels}
        if isinstance(value, list | tuple):
            return ", ".join(self.display(component, item) for item in value)
        if isinstance(value, str):
            return texts_by_value.get(value, value)
        return format_value(value)


class Multiclass(_Choice, name="multiclass"):
    """A field with exactly one of the labels."""

    title = gettext_noop("One of several labels")
    place = 3
    sections = SECTIONS
    can_be_in_prompt = True
    cell_type = "text"
    hub_category = "text-classification"

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        if isinstance(value, str) and value in component.values:
            return []
        return [f"{format_subject(component)} must be one of: {join_labels(component.values)}"]

    def normalise(self, component: Component, value: Any) -> Any:
        label = find_label(value, component.values)
        if label is None:
            return value
        return label

    def build_form_input(self, component: Component) -> FormInput:
        # Few choices are read at one glance.
        if len(component.labels) <= MAX_RADIO_BUTTONS:
            return FormInput("ChoiceField", "RadioSelect", choices=_build_choices(component))
        empty_choice = ("", "")  # else the list's first label would be chosen by who chooses none
        choices = _build_choices(component)
        choices.insert(0, empty_choice)
        return FormInput("ChoiceField", "Select", choices=choices)

    def describe_value(self, component: Component) -> str:
        return f"one of {join_labels(component.values)}"

    def build_placeholder(self, component: Component) -> str:
        return component.values[0]


class Multilabel(_Choice, name="multilabel"):
    """A field with any number of the labels, without duplicates."""

    title = gettext_noop("Any number of labels")
    place = 4
    sections = ("input", "metadata")

    def is_list(self, component: Component) -> bool:
        return True

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if not isinstance(value, list | tuple):
            return [f"{subject} must be a list of choices"]
        unknown_values = []
        for item in value:
            if item not in component.values:
                unknown_values.append(item)
        if unknown_values:
            choices = join_labels(component.values)
            return [f"{subject} has no choice “{unknown_values[0]}”; use: {choices}"]
        if len(set(value)) < len(value):
            return [f"{subject} names a choice twice"]
        return []

    def normalise(self, component: Component, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        labels = [find_label(item, component.values) for item in value]
        return [item if label is None else label for item, label in zip(value, labels, strict=True)]

    def build_form_input(self, component: Component) -> FormInput:
        choices = _build_choices(component)
        return FormInput("MultipleChoiceField", "CheckboxSelectMultiple", choices=choices)

    def describe_value(self, component: Component) -> str:
        return f"a list of any of {join_labels(component.values)}"


def _build_choices(component: Component) -> list[tuple[str, str]]:
    return [(label.value, label.words) for label in component.labels]
