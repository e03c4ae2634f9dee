"""Free text: text (one line) and long_text (several lines)."""

from collections.abc import Mapping
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import SECTIONS, Component, FieldType, FormInput, display_plainly
from tasks.config.values import FORBIDDEN_CHARACTERS, format_characters, format_subject


class _Text(FieldType):
    keys = ("placeholder", "min_length", "max_length", "counter")
    sections = SECTIONS
    is_text = True
    can_be_in_prompt = True
    cell_type = "text"
    hub_category = "text-generation"
    display = display_plainly

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if not isinstance(value, str):
            return [f"{subject} must be a text"]
        messages = []
        length = len(value.strip())
        if component.min_length is not None and length < component.min_length:
            messages.append(f"{subject} must be at least {format_characters(component.min_length)}")
        if component.max_length is not None and length > component.max_length:
            limit = format_characters(component.max_length)
            messages.append(f"{subject} must be at most {limit}; it is {length}")
        if FORBIDDEN_CHARACTERS.search(value):
            messages.append(f"{subject} contains a control character; delete it")
        return messages

    def describe_value(self, component: Component) -> str:
        return "a text"

    def build_placeholder(self, component: Component) -> str:
        return f"({component.title})"


class Text(_Text, name="text"):
    """A field with one line of free text."""

    title = gettext_noop("Single-line text")
    place = 1

    def build_form_input(self, component: Component) -> FormInput:
        return FormInput(attrs={"autocomplete": "off", "dir": "auto"})


class LongText(_Text, name="long_text"):
    """A field with several lines of free text."""

    title = gettext_noop("Multi-line text")
    place = 2

    def build_form_input(self, component: Component) -> FormInput:
        return FormInput(widget="Textarea", attrs={"rows": 4, "dir": "auto"})
