"""doccano's JSONL of text classification and of texts to texts, a file for each person or one.

Layout: `backend/data_export/pipeline` and `backend/data_import` of doccano/doccano: `id`, `text`
(and any columns of the uploaded file), `label`, a list, and `Comments`. Where people work apart
doccano packs a file `<person>.jsonl` for each, else `all.jsonl`.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tasks.formats.base import KEPT, Format, Item, Part, Record, checked, kept_row, vote_of
from tasks.formats.reading import json_lines
from tasks.line_files import BadRow

TITLE = "doccano"
SHAPE = {"id": int, "text": str, "label": list}
TOGETHER = "all"
ONE_PROJECT = "import each project of doccano by itself, into a round of its own"
SHOWN = "dynabench_label"
"""The label that an export brought along: where nobody changed it, nobody voted."""
OWN = {*SHAPE, "Comments", "comments", KEPT, SHOWN}


def row(parts: Sequence[Part]) -> Record:
    """A text; each person's label is a vote, other columns are metadata."""
    votes = [vote for name, record in parts for vote in _votes(name, record)]
    first = parts[0][1]
    for name, record in parts:
        if record["text"] != first["text"]:
            raise BadRow(f"the id {first['id']} has another text in {name}; {ONE_PROJECT}")
    kept = kept_row(first.get(KEPT))
    if kept:
        return {**kept, "validations": [*kept.get("validations", []), *votes]}
    return {
        "uid": str(first["id"]),
        "input": {"text": first["text"]},
        "validations": votes,
        "metadata": {name: value for name, value in first.items() if name not in OWN},
    }


def write(item: Item) -> Record:
    """A text with the label that is settled, to be confirmed or changed."""
    label = [] if item.label is None else [item.label]
    return {"text": item.text, "label": label, KEPT: item.kept, SHOWN: item.label or ""}


def _votes(name: str, record: Record) -> list[Record]:
    checked(record, SHAPE, TITLE)
    labels = record["label"]
    if len(labels) > 1 or any(not isinstance(label, str) for label in labels):
        raise BadRow(
            f"`label` has {len(labels)} entries, and here a person gives one text; doccano's spans "
            "and several labels do not come in"
        )
    if not labels or labels[0] == record.get(SHOWN):
        return []
    file = PurePosixPath(name.removesuffix(".gz"))
    is_person = file.stem != TOGETHER and not file.is_absolute()  # a file alone has any name
    return [vote_of(file.stem if is_person else None, labels[0])]


FORMAT = Format(TITLE, row, json_lines, same=lambda record: str(record["id"]), write=write)
