"""Fill prompt templates with the fields of an example."""

import json
import re
from collections.abc import Mapping
from typing import Any

_PLACEHOLDER_PATTERN = re.compile(r"\{(\w+)\}")


def fill_prompt(template: str, fields: Mapping[str, Any]) -> str:
    """Return the template with each {field} replaced once, so that field texts are not expanded.

    Placeholders without a field stay as they are.
    """
    return _PLACEHOLDER_PATTERN.sub(lambda place: str(fields.get(place[1], place[0])), template)


def delimit_fields(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each field between tags with its name, by field name.

    Such tags within the text are broken up. A value that is not a text, such as a list of
    candidates, becomes JSON.
    """
    # A text could otherwise close its own tag, and pass for an instruction.
    names = "|".join(map(re.escape, fields))
    tag = re.compile(rf"<(\s*/?\s*(?:{names})\b)", re.IGNORECASE)
    texts = {name: tag.sub(r"< \1", _format_value(value)) for name, value in fields.items()}
    return {name: f"<{name}>\n{text}\n</{name}>" for name, text in texts.items()}


def is_conversation(value: Any) -> bool:
    """Return whether a value is a conversation in which it is the model's turn to answer."""
    turns = value
    if not isinstance(value, list | tuple):
        turns = ()
    if not turns or not isinstance(turns[-1], Mapping):
        return False
    return turns[-1].get("role") in ("user", "tool")


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def build_text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text.strip("\n")}


def build_media_part(url: str) -> dict[str, Any]:
    """Return the message part for media, given as the data URL of a picture or recording."""
    mime, _, data = url.removeprefix("data:").partition(";base64,")
    kind, _, ending = mime.partition("/")
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "input_audio", "input_audio": {"data": data, "format": ending}}
