"""Read media: complete values from storage, and load files for models."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from core.accounts.models import Annotator, User
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.media.services import build_value
from tasks.models import Media, Task
from tasks.permissions import Person, can_read, can_see


def can_open(user: Person, media: Media) -> bool:
    """Return whether the person sent the file, or may see something that refers to it.

    Nobody may open it without access to the task. An unused file belongs to its sender. If visitors
    or several people sent it, everybody who knows its digest may open it. A withdrawn file is open
    to members, its sender, and people whose own work refers to it.
    """
    task = media.task
    if not can_see(user, task):
        return False
    # The cheap answers first: only a person's own withdrawn or unused work needs a search.
    if can_read(user, task) or (media.is_used and not media.is_withdrawn):
        return True
    if media.sent_by is None and not media.is_used:
        return True
    if not user.is_authenticated:
        return False
    return bool(media.sent_by and media.sent_by.user_id == user.pk) or _is_in_own_work(user, media)


def _is_in_own_work(user: User, media: Media) -> bool:
    """Return whether one of the person's own examples or drafts refers to the file."""
    annotators = Annotator.objects.filter(user=user)
    for relation, column in (("examples", "inputs"), ("assignment", "draft")):
        owners = annotators.filter(**{f"{relation}__round__task": media.task_id})
        text = Cast(f"{relation}__{column}", TextField())
        if owners.annotate(text=text).filter(text__contains=media.digest).exists():
            return True
    return False


def complete_media(
    task: Task, components: Iterable[Component], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values with media completed from storage. Requests send only digest and alt.

    The value of a missing file keeps only these two keys, so that the field's check refuses it.
    """
    sent_values = {}
    for component in components:
        value = values.get(component.name)
        if component.is_media and isinstance(value, Mapping) and _get_digest(value):
            sent_values[component.name] = value
    if not sent_values:
        return dict(values)
    # One query for all fields of an example.
    rows = Media.objects.filter(
        task=task, digest__in=[_get_digest(value) for value in sent_values.values()]
    )
    stored_values = {media.digest: build_value(media) for media in rows}
    completed_values = {}
    for name, value in sent_values.items():
        completed_values[name] = {
            **stored_values.get(_get_digest(value), {"digest": _get_digest(value)}),
            "alt": _get_alt(value),
        }
    return {**values, **completed_values}


def _get_digest(value: Mapping[str, Any]) -> str:
    digest = value.get("digest")
    if isinstance(digest, str):
        return digest
    return ""


def _get_alt(value: Mapping[str, Any]) -> Any:
    description = value.get("alt") or ""
    if isinstance(description, str):
        return description.strip()
    return description


def build_data_url(task: Task, value: Any) -> str:
    """Return a stored file as a data URL, `data:image/png;base64,…`; "" if it does not exist.

    A value that is a data URL already is returned unchanged.
    """
    if isinstance(value, str) and value.startswith("data:"):
        return value  # it was read before
    digest = ""
    if isinstance(value, Mapping):
        digest = _get_digest(value)
    media = None
    if digest:
        media = Media.objects.filter(task=task, digest=digest).first()
    if media is None:
        return ""
    try:
        # The file may be deleted between the query and this line; then there is none.
        with media.file.open("rb") as file:
            return f"data:{media.mime};base64,{base64.b64encode(file.read()).decode()}"
    except FileNotFoundError:
        return ""


def prepare_for_models(config: TaskConfig, task: Task, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as models read them: media as data URLs, without descriptions."""
    urls = {}
    for name in config.media_fields:
        if name in values:
            urls[name] = build_data_url(task, values[name])
    return {**values, **urls}
