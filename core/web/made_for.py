"""Names of fields that say what their form was made for: a passage, the text that was read.

Browsers bring back what was typed, after a reload or a crash, into the page that the address has
now, and find the field by its name and id. A text whose name says what it was written for never
stands in a form for something else, and a server that gets it there can tell.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.datastructures import MultiValueDict


def name_for(field: str, made_for: object) -> str:
    """Return the form name of a field for an object. Names of fields have no hyphen."""
    return f"{field}--{made_for}"


def made_for(data: Mapping[str, Any], field: str) -> str | None:
    """Return what the form with these data was made for; None if the field does not say.

    >>> made_for({"text--7": "A line.", "other": ""}, "text")
    '7'
    """
    before = name_for(field, "")
    return next((name.removeprefix(before) for name in data if name.startswith(before)), None)


def renamed(data: Mapping[str, Any], field: str, name: str) -> MultiValueDict[str, Any]:
    """Return the data with the field under another name, whatever the form was made for.

    >>> renamed({"text--7": "A line."}, "text", "text")["text"]
    'A line.'
    """
    prefix = name_for(field, "")
    renamed_data: MultiValueDict[str, Any] = MultiValueDict()
    for key in data:
        values = data.getlist(key) if isinstance(data, MultiValueDict) else [data[key]]
        renamed_data.setlist(name if key == field or key.startswith(prefix) else key, values)
    return renamed_data
