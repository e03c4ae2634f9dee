"""Check the folder's texts before a round exists that could check them."""

from collections.abc import Mapping
from typing import Any

from dynabench.client import types
from dynabench.client.benchmarks.folder import MAX_LISTED_PROBLEMS, Folder, TextLine
from dynabench.client.benchmarks.problems import FileProblem, FolderError

TEXT_TYPES = ("text", "long_text")
OTHER_NAMES = ("tag", "metadata")


def check_texts(folder: Folder, task: types.FullTask) -> None:
    """Raise FolderError for texts that lack a field, have an unknown one, or none that is a text.

    Only for JSON lines. The site checks them again, with all its rules, when it imports them.
    """
    if folder.texts_path is None or folder.text_lines is None:
        return
    name = folder.texts_path.name
    fields = {field["name"]: field for field in task["context"]}
    problems = []
    for text_line in folder.text_lines:
        if message := _find_problem(text_line, fields):
            problems.append(FileProblem(name, message, text_line.line))
    if problems:
        raise FolderError(problems[:MAX_LISTED_PROBLEMS])


def _find_problem(text_line: TextLine, fields: Mapping[str, types.TaskField]) -> str:
    """Return what is wrong with a line, and how to correct it; "" if nothing is."""
    values: Mapping[str, Any] = text_line.values
    allowed_names = [*fields, *OTHER_NAMES]
    for field in fields.values():
        # Pictures have a description beside them.
        if field["type"] in ("image", "audio"):
            allowed_names.append(f"{field['name']}_alt")
        # Files are checked by the site alone, which decodes them.
        elif field["required"] and not values.get(field["name"]):
            return f"Add the field {field['name']!r}."
    for name, value in values.items():
        if name not in allowed_names:
            return f"The task has no context field {name!r}. Use: {', '.join(allowed_names)}."
        is_text = name in fields and fields[name]["type"] in TEXT_TYPES
        if is_text and value is not None and not isinstance(value, str):
            return f"Write a text for {name!r}, in quotes."
    return ""
