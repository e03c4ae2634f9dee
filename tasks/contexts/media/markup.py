"""Render the values of fields: pictures and recordings as HTML, other values as text."""

from collections.abc import Mapping
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from tasks.config.schema import TaskConfig


class Markup(SafeString):
    """HTML in place of a plain text. Templates that put texts into paragraphs check `is_markup`."""

    is_markup = True


def render_value(config: TaskConfig, field: str, value: Any) -> str:
    """Return a field's value for a template, as text or, for media, as Markup.

    In a sensitive task the Markup is hidden until the reader opens it.
    """
    component = config.get_component(field)
    if not component.is_media or not isinstance(value, Mapping) or "mime" not in value:
        return config.display(field, value)
    values = {
        "element": component.kind.element,
        "value": value,
        "title": component.third_person_title,
        "language": config.language,
        "is_sensitive": config.content_warning is not None,
    }
    return Markup(render_to_string("components/media.html", values).strip())


def format_media(value: Any) -> str:
    """Return a value for an admin list. For a file, this is its URL and description."""
    if isinstance(value, Mapping) and "digest" in value:
        return f"/media/{value['digest']}/ {value.get('alt', '')}".strip()
    return str(value)


def render_media(config: TaskConfig, inputs: Mapping[str, Any]) -> list[str]:
    """Return the rendered pictures and recordings among a person's inputs."""
    names = []
    for component in config.input:
        if component.is_media and inputs.get(component.name):
            names.append(component.name)
    return [render_value(config, name, inputs[name]) for name in names]
