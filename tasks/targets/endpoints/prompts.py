"""Texts made of a template and the fields of an example."""

import json
import re
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"\{(\w+)\}")


def fill_prompt(template: str, fields: Mapping[str, Any]) -> str:
    """Replace each {field} of the template once, so that field texts are not expanded."""
    return _PLACE.sub(lambda place: str(fields.get(place[1], place[0])), template)


def delimit_fields(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return each field between tags of its name, with such tags inside the text broken up.

    A value that is not a text, such as a list of candidates, becomes JSON.
    """
    # A text could otherwise close its own tag, and pass for an instruction.
    names = "|".join(map(re.escape, fields))
    tag = re.compile(rf"<(\s*/?\s*(?:{names})\b)", re.IGNORECASE)
    texts = {name: tag.sub(r"< \1", _as_text(value)) for name, value in fields.items()}
    return {name: f"<{name}>\n{text}\n</{name}>" for name, text in texts.items()}


def is_conversation(value: Any) -> bool:
    """Return whether a field's value is a conversation whose last turn is to be answered."""
    turns = value
    if not isinstance(value, list | tuple):
        turns = ()
    return bool(turns) and isinstance(turns[-1], Mapping) and turns[-1].get("role") == "user"


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
