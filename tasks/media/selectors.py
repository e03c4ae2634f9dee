"""Reads media: values completed by what is stored, and files for models."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.media.services import value_of
from tasks.models import Media, Task


def with_media(
    task: Task, components: Iterable[Component], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The values, with those of media as they are stored; people and programs send digest and alt.

    One whose file is not there stays as it is, and the check of its type refuses it.
    """
    found = ((one.name, values.get(one.name)) for one in components if one.is_media)
    sent = {name: value for name, value in found if isinstance(value, Mapping) and _digest(value)}
    if not sent:
        return dict(values)
    rows = Media.objects.filter(task=task, digest__in=[_digest(v) for v in sent.values()])
    stored = {media.digest: value_of(media) for media in rows}
    completed = {
        name: {**stored.get(_digest(value), {"digest": _digest(value)}), "alt": _alt(value)}
        for name, value in sent.items()
    }
    return {**values, **completed}


def _digest(value: Mapping[str, Any]) -> str:
    digest = value.get("digest")
    return digest if isinstance(digest, str) else ""


def _alt(value: Mapping[str, Any]) -> Any:
    words = value.get("alt") or ""
    return words.strip() if isinstance(words, str) else words


def data_url(task: Task, value: Any) -> str:
    """A stored file as `data:image/png;base64,…`; empty where there is none (any more)."""
    if isinstance(value, str) and value.startswith("data:"):
        return value  # it was read before
    digest = _digest(value) if isinstance(value, Mapping) else ""
    media = Media.objects.filter(task=task, digest=digest).first() if digest else None
    if media is None:
        return ""
    try:
        with media.file.open("rb") as file:
            return f"data:{media.mime};base64,{base64.b64encode(file.read()).decode()}"
    except FileNotFoundError:
        return ""


def for_models(config: TaskConfig, task: Task, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as models read them: pictures and recordings as data URLs, without their words."""
    urls = {n: data_url(task, values[n]) for n in config.media_fields if n in values}
    return {**values, **urls}
