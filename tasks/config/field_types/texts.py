"""What people write freely: text (one line) and long_text."""

from collections.abc import Mapping
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import PLACES, Component, FieldType, FormInput, display_plainly
from tasks.config.values import FORBIDDEN_CHARACTERS, format_characters, format_subject


class _Text(FieldType):
    keys = ("placeholder", "min_length", "max_length", "counter")
    places = PLACES
    is_text = True
    in_prompt = True
    cell = "text"
    category = "text-generation"
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
            most = format_characters(component.max_length)
            messages.append(f"{subject} must be at most {most}; it is {length}")
        if FORBIDDEN_CHARACTERS.search(value):
            messages.append(f"{subject} holds a control character; delete it")
        return messages

    def described(self, component: Component) -> str:
        return "a text"

    def stand_in(self, component: Component) -> str:
        return f"({component.title})"


class Text(_Text, name="text"):
    """One line."""

    title = gettext_noop("Text, one line")
    place = 1

    def form_input(self, component: Component) -> FormInput:
        return FormInput(attrs={"autocomplete": "off", "dir": "auto"})


class LongText(_Text, name="long_text"):
    """Several lines."""

    title = gettext_noop("Text, several lines")
    place = 2

    def form_input(self, component: Component) -> FormInput:
        return FormInput(widget="Textarea", attrs={"rows": 4, "dir": "auto"})
