"""Potato: the items of its data file, and what people said of them in its output.

Layout: docs/data-export/export_formats.md of davidjurgens/potato. Items are JSON lines with `id`
and `text`. Answers are `annotations.jsonl` of its export `jsonl`, one line for each item and
person, or, of its first version, `<person>/annotated_instances.jsonl`, which have the text too.
"""

import json
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import PurePosixPath
from typing import Any

from tasks.formats.base import (
    FREE,
    KEPT,
    LEFT,
    UNANSWERED,
    Format,
    Item,
    Left,
    Numbered,
    Part,
    Record,
    checked,
    kept_row,
    said_of,
    vote_of,
)
from tasks.formats.reading import json_items, starts_as_json, table
from tasks.line_files import BadRow

TITLE = "Potato"
LABELS = ("labels", "label_annotations")
TEXTS = ("text", "displayed_text")
TYPED = ("text_box", "free_response")
"""Inputs for text."""
MARKED = ("spans", "links", "span_annotations", "link_annotations")
"""Answers that are no labels."""
ANSWERS = {*LABELS, *MARKED, "behavioral_data", "instance_id", "user_id", "annotator_origin"}


def row(parts: Sequence[Part]) -> Record:
    """An item, each person's answer a vote; other fields of the item are metadata."""
    item: Record = {}
    votes, left, is_free = [], Left(), False
    for name, record in _once(parts):
        _refuse_spans(record)
        if any(key in record for key in LABELS):
            votes += _votes(name, record, left)
            is_free = is_free or _is_typed(record)
        if not any(key in record for key in (*TEXTS, *LABELS)):
            record = _renamed(record)
        if any(key in record for key in TEXTS):
            if any(record[key] != item[key] for key in TEXTS if key in record and key in item):
                raise BadRow(f"the id {same(item)} has another text in {name}; give one of them")
            item = {**record, **item}
    if not item:
        raise BadRow("nothing has its text; give a folder that holds Potato's data file, too")
    about = {LEFT: left, FREE: is_free}
    kept = kept_row(item.get(KEPT))
    if kept:
        return {**kept, "validations": [*kept.get("validations", []), *votes], **about}
    text = item.get("text", item.get("displayed_text"))
    others = {"id", *TEXTS, *ANSWERS}
    return {
        "uid": same(item),
        "input": {"text": checked({"text": text}, {"text": str}, TITLE)["text"]},
        "validations": votes,
        "metadata": {name: value for name, value in item.items() if name not in others},
        **about,
    }


def same(record: Record) -> str:
    """The id of the item that a record is of."""
    for key in ("instance_id", "id"):
        if key in record:
            return str(record[key])
    return str(record[_id_key(record)])


def _id_key(record: Record) -> str:
    """The one field that is called like an id: Potato's `id_key`. Raises BadRow."""
    keys = [name for name in record if name.lower().endswith("id")]
    if len(keys) != 1:
        raise BadRow("there is no `id`; call the field that Potato has as `id_key` so")
    return keys[0]


def _renamed(record: Record) -> Record:
    """An item whose text is called otherwise, as Potato's `text_key` may say. Raises BadRow."""
    if "instance_id" in record:
        raise BadRow("it has no answers as Potato's export `jsonl` has them; choose that one")
    key = "id" if "id" in record else _id_key(record)
    texts = [
        name for name, value in record.items() if isinstance(value, str) and name not in (key, KEPT)
    ]
    if len(texts) != 1:
        found = f", and any of {', '.join(texts)} may be it" if texts else ""
        raise BadRow(f"there is no `text`{found}; call the field with the text `text`")
    rest = {name: value for name, value in record.items() if name not in (key, *texts)}
    return {"id": record[key], "text": record[texts[0]], **rest}


def write(item: Item) -> Record:
    """An item of a data file; what is settled can be shown by `pre_annotation`."""
    shown = {} if item.label is None else {item.answer: item.label}
    return {"id": item.uid, "text": item.text, "predictions": shown, KEPT: item.kept}


def _once(parts: Sequence[Part]) -> list[Part]:
    """The records without those of everybody's file that stand in a person's own file, too.

    The first version writes both, so each answer would come twice.
    """
    own = {(_person(name), _said(record)) for name, record in parts if "user_id" not in record}
    return [
        (name, record)
        for name, record in parts
        if not _person(name, is_any=True) or "user_id" not in record
        or (str(record["user_id"]), _said(record)) not in own
    ]  # fmt: skip


def _said(record: Record) -> str:
    return json.dumps([record.get(key) for key in LABELS], sort_keys=True)


def _refuse_spans(record: Record) -> None:
    """Raises BadRow for answers that mark text or link what is marked."""
    for key in MARKED:
        if record.get(key):
            raise BadRow(f"`{key}` has answers; Potato's spans and links do not come in here")


def _votes(name: str, record: Record, left: Left) -> list[Record]:
    """What a person said: of one question the label that is set, or the value that is given."""
    key = next(key for key in LABELS if key in record)
    checked(record, {key: dict}, TITLE)
    if len(record[key]) > 1:
        raise BadRow(f"`{key}` answers several questions ({', '.join(record[key])}); keep one")
    answers = []
    for question, said in record[key].items():
        checked(record[key], {question: dict}, TITLE, key)
        answers = [answer for name, value in said.items() if (answer := _answer(name, value))]
        if len(answers) > 1:
            raise BadRow(
                f"`{key}.{question}` has {len(answers)} answers ({', '.join(said)}); a person "
                "gives one here"
            )
    if not answers:
        left[UNANSWERED] += 1
    who = record.get("user_id") or _person(name)
    return [vote_of(who, answer) for answer in answers]


def _is_typed(record: Record) -> bool:
    """Whether the answers stand in inputs for text."""
    said = next(record[key] for key in LABELS if key in record).values()
    return any(name in TYPED for inputs in said for name in inputs)


def _answer(name: str, value: Any) -> str:
    """The answer in an input of the name; empty where it has none.

    A choice has its own name as value, or true; all others have what people entered: `slider`,
    `number`, `select-one`, `free_response`, `text_box`, the rows of a multirate.
    """
    if value in (False, None, ""):
        return ""
    if value is True or value == "true":
        return name
    if not isinstance(value, str | int | float):
        raise BadRow(f"the value of `{name}` is neither text, number, true nor false")
    return said_of(value).strip()


def _person(name: str, *, is_any: bool = False) -> str | None:
    """Whose folder a file of Potato's first version lies in."""
    file = PurePosixPath(name)
    if not file.name.startswith("annotated_instances"):
        return None
    return file.name if is_any else file.parent.name or None


def read(file: BufferedReader) -> Iterator[Numbered]:
    """The records of JSON lines or a list in JSON; or of a data file that is a table."""
    yield from (json_items() if starts_as_json(file) else table())(file)


FORMAT = Format(
    TITLE,
    row,
    read,
    files=r"(\.jsonl(\.gz)?|(^|/)(?![^/]*(annotat|config|state|schema|survey))[^/]+\.(csv|tsv|json))$",
    same=same,
    write=write,
    hides="votes and the answers of models",
)
