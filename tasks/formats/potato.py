"""Potato: the items of its data file, and what people said of them in its output.

Layout: docs/data-export/export_formats.md of davidjurgens/potato. Items are JSON lines with `id`
and `text`. Answers are `annotations.jsonl` of its export `jsonl`, one line for each item and
person, or, of its first version, `<person>/annotated_instances.jsonl`, which have the text too.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tasks.formats.base import KEPT, Format, Item, Part, Record, checked, kept_row, vote_of
from tasks.formats.reading import json_lines
from tasks.line_files import BadRow

TITLE = "Potato"
LABELS = ("labels", "label_annotations")
TEXTS = ("text", "displayed_text")
ANSWERS = {*LABELS, "spans", "links", "span_annotations", "behavioral_data", "instance_id",
           "user_id", "annotator_origin"}  # fmt: skip


def row(parts: Sequence[Part]) -> Record:
    """An item, each person's answer a vote; other fields of the item are metadata."""
    item: Record = {}
    votes = []
    for name, record in parts:
        if any(key in record for key in LABELS):
            votes += _votes(name, record)
        if any(key in record for key in TEXTS):
            if any(record[key] != item[key] for key in TEXTS if key in record and key in item):
                raise BadRow(f"the id {same(item)} has another text in {name}; give one of them")
            item = {**record, **item}
    if not item:
        raise BadRow("nothing has its text; give a folder that holds Potato's data file, too")
    kept = kept_row(item.get(KEPT))
    if kept:
        return {**kept, "validations": [*kept.get("validations", []), *votes]}
    text = item.get("text", item.get("displayed_text"))
    others = {"id", *TEXTS, *ANSWERS}
    return {
        "uid": same(item),
        "input": {"text": checked({"text": text}, {"text": str}, TITLE)["text"]},
        "validations": votes,
        "metadata": {name: value for name, value in item.items() if name not in others},
    }


def same(record: Record) -> str:
    """The id of the item that a record is of."""
    return str(record["instance_id"] if "instance_id" in record else record["id"])


def write(item: Item) -> Record:
    """An item of a data file; what is settled can be shown by `pre_annotation`."""
    shown = {} if item.label is None else {item.answer: item.label}
    return {"id": item.uid, "text": item.text, "predictions": shown, KEPT: item.kept}


def _votes(name: str, record: Record) -> list[Record]:
    """What a person said: of one question the one label that is set, or the text that is typed."""
    key = next(key for key in LABELS if key in record)
    checked(record, {key: dict}, TITLE)
    if not record[key]:
        return []
    if len(record[key]) > 1:
        raise BadRow(f"`{key}` answers several questions ({', '.join(record[key])}); keep one")
    [(question, said)] = record[key].items()
    checked(record[key], {question: dict}, TITLE, key)
    if said.keys() == {"text_box"}:
        labels = [str(said["text_box"])]
    else:
        labels = [label for label, value in said.items() if value not in (False, None, "")]
    if len(labels) > 1:
        raise BadRow(f"`{key}.{question}` has {len(labels)} labels; a person gives one here")
    who = record.get("user_id") or _person(name)
    return [vote_of(who, label) for label in labels if label]


def _person(name: str) -> str | None:
    """Whose folder a file of Potato's first version lies in."""
    file = PurePosixPath(name)
    return file.parent.name or None if file.name.startswith("annotated_instances") else None


FORMAT = Format(TITLE, row, json_lines, files=r"\.jsonl(\.gz)?$", same=same, write=write)
