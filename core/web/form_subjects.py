"""Name form fields after the object that the form is about, such as a passage or a text.

After a reload or a crash, browsers restore what somebody typed, even if the URL now shows a form
about another object. They find the field by its name and id. If the name contains the object, the
browser never puts the text into the other form. The server also recognises a text that was posted
in a form about another object.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.datastructures import MultiValueDict


def build_field_name(field: str, subject: object) -> str:
    """Return the name in HTML of a field in a form about `subject`.

    The name of the field itself contains no hyphen.
    """
    return f"{field}--{subject}"


def find_form_subject(data: Mapping[str, Any], field: str) -> str | None:
    """Return the id of the object that a posted form is about, such as a passage.

    None if no field name in the data contains it.

    >>> find_form_subject({"text--7": "A line.", "other": ""}, "text")
    '7'
    """
    prefix = build_field_name(field, "")
    return next((name.removeprefix(prefix) for name in data if name.startswith(prefix)), None)


def rename_field(data: Mapping[str, Any], field: str, name: str) -> MultiValueDict[str, Any]:
    """Return the data with the field renamed to `name`, whichever object the form is about.

    >>> rename_field({"text--7": "A line."}, "text", "text")["text"]
    'A line.'
    """
    prefix = build_field_name(field, "")
    renamed_data: MultiValueDict[str, Any] = MultiValueDict()
    for key in data:
        values = data.getlist(key) if isinstance(data, MultiValueDict) else [data[key]]
        renamed_data.setlist(name if key == field or key.startswith(prefix) else key, values)
    return renamed_data
