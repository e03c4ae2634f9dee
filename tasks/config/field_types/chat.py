"""A conversation. No page can ask for one yet."""

from collections.abc import Mapping
from typing import Any

from tasks.config.components import Component, FieldType, never_asked, plainly
from tasks.config.values import FORBIDDEN, subject


class Chat(FieldType, name="chat"):
    """A list of turns, each `{role, text}`."""

    keys = ()
    places = ()
    form_input = never_asked
    display = plainly

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        named = subject(component)
        if not isinstance(value, list | tuple):
            return [f"{named} must be a list of turns"]
        for number, turn in enumerate(value, 1):
            if not isinstance(turn, Mapping) or set(turn) != {"role", "text"}:
                return [f"{named}, turn {number}: needs role and text"]
            if turn["role"] not in ("system", "user", "assistant"):
                return [f"{named}, turn {number}: the role must be system, user or assistant"]
            if not isinstance(turn["text"], str) or FORBIDDEN.search(turn["text"]):
                return [f"{named}, turn {number}: the text must be a text"]
        return []

    def is_list(self, component: Component) -> bool:
        return True

    def described(self, component: Component) -> str:
        return "a list of turns, each with role and text"
