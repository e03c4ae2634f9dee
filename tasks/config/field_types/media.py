"""Links to an image or a recording. No page can ask for them yet."""

import re
from collections.abc import Mapping
from typing import Any

from tasks.config.components import Component, FieldType, never_asked, plainly
from tasks.config.values import subject

LINK = re.compile(r"https?://[^\s/]+(/\S*)?|upload:[A-Za-z0-9._-]+")


class _Media(FieldType):
    keys = ()
    places = ()
    cell = "text"
    missing = "Add {title}"
    form_input = never_asked
    display = plainly

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        if isinstance(value, str) and LINK.fullmatch(value):
            return []
        return [f"{subject(component)} must be a link that begins with https:// or http://"]

    def described(self, component: Component) -> str:
        return "a link"


class Image(_Media, name="image"):
    """A link to an image."""

    element = "image"


class Audio(_Media, name="audio"):
    """A link to a recording."""

    element = "audio"
