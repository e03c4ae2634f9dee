"""doccano's JSONL of text classification and of texts to texts, a file for each person or one.

Layout: `backend/data_export/pipeline` and `backend/data_import` of doccano/doccano: `id`, `text`
(and any columns of the uploaded file), `label`, a list, and `Comments`. Where people work apart
doccano packs a file `<person>.jsonl` for each, else `all.jsonl`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import PurePosixPath

from core.text.words import composed
from tasks.formats.base import (
    KEPT,
    LEFT,
    UNANSWERED,
    Format,
    Item,
    Left,
    Part,
    Record,
    Shape,
    checked,
    kept_row,
    vote_of,
    without,
)
from tasks.formats.reading import json_items
from tasks.line_files import BadRow, FileError

TITLE = "doccano"
SHAPE: Shape = {"id": (int, str), "label": list}
TOGETHER = "all"
ONE_PROJECT = "import each project of doccano by itself, into a round of its own"
SHOWN = "dynabench_label"
"""The label that an export brought along. doccano gives it to whoever uploads the file."""
MARKED = ("cats", "entities", "relations", "bbox", "segmentation")
"""What projects of other kinds have in place of labels."""
TEXTS = ("text", "data")
"""What versions of doccano call the text; a project may call it otherwise."""
OWN = {"Comments", "comments", KEPT, SHOWN}.union(SHAPE)


def row(parts: Sequence[Part], uploader: str | None = None) -> Record:
    """Return a text. Each person's label is a vote; other columns are metadata.

    uploader: the person to whom doccano credits the labels that came with an export.
    """
    left = Left()
    votes: list[Record] = []
    for name, record in parts:
        votes += _votes(name, record, uploader, left)
    first = parts[0][1]
    column, text = _text(first)
    for name, record in parts:
        if _text(record)[1] != text:
            raise BadRow(f"the id {first['id']} has another text in {name}; {ONE_PROJECT}")
    kept_fields = kept_row(first.get(KEPT))
    if kept_fields:
        return {
            **kept_fields,
            "validations": list(kept_fields.get("validations", [])) + votes,
            LEFT: left,
        }
    return {
        "uid": str(first["id"]),
        "input": {"text": text},
        "validations": votes,
        "metadata": without(first, OWN | {column}),
        LEFT: left,
    }


def write(item: Item) -> Record:
    """Return a text with the settled label, for people to confirm or change."""
    label = []
    if item.label is not None:
        label = [item.label]
    return {"text": item.text, "label": label, KEPT: item.row_json, SHOWN: item.label or ""}


def row_of_all(parts: Iterable[Part]) -> Callable[[Sequence[Part]], Record | None]:
    """Return `row`, bound to the person who uploaded the file. Raises FileError."""
    return partial(row, uploader=_uploader(parts))


def _uploader(parts: Iterable[Part]) -> str | None:
    """Return the person who has a label at every text that came with one; None without one.

    Of several such people, return the one with no other labels. Raises FileError if several
    remain.
    """
    have: defaultdict[str, set[str]] = defaultdict(set)
    texts: set[str] = set()
    others: set[str] = set()
    for name, record in parts:
        who, label = _person(name), record.get("label")
        if who is None or not isinstance(label, list):
            continue
        if record.get(SHOWN):
            texts.add(str(record.get("id")))
            if label:
                have[who].add(str(record.get("id")))
        if label and label != [record.get(SHOWN)]:
            others.add(who)
    # Whoever uploaded the texts has a label at every text that came with one.
    likely = [who for who, ids in have.items() if len(ids) == len(texts)]
    if len(likely) > 1:
        likely = [who for who in likely if who not in others] or likely
    if len(likely) > 1:
        raise FileError(
            f"{', '.join(sorted(likely))} have each a label wherever `{SHOWN}` has one, and "
            "doccano gave it to whoever uploaded the texts. Take that person's file out."
        )
    if likely:
        return likely[0]
    return None


def _votes(name: str, record: Record, uploader: str | None, left: Left) -> list[Record]:
    if "label" not in record and any(key in record for key in MARKED):
        raise BadRow("it has no `label`; doccano's intents, spans and relations do not come in")
    checked(record, SHAPE, TITLE)
    for key in ("Comments", "comments"):
        if isinstance(record.get(key), list) and record[key]:
            left["comments"] += len(record[key])
    labels = record["label"]
    if len(labels) > 1 or any(not isinstance(label, str) for label in labels):
        raise BadRow(
            f"`label` has {len(labels)} entries, and here a person gives one text; doccano's spans "
            "and several labels do not come in"
        )
    who = _person(name)
    if not labels:
        return []
    if not labels[0].strip():
        left[UNANSWERED] += 1
        return []
    # doccano gave it to the uploader, who may never have looked at the text.
    if labels[0] == record.get(SHOWN) and who in (None, uploader):
        left["labels that the texts came to doccano with"] += 1
        return []
    return [vote_of(who, labels[0])]


def _text(record: Record) -> tuple[str, str]:
    """Return the name of the text column, and the text. Raises BadRow."""
    columns = []
    for name in TEXTS:
        if isinstance(record.get(name), str):
            columns.append(name)
    columns = columns or [
        name for name, value in record.items() if isinstance(value, str) and name not in OWN
    ]
    if not columns or (len(columns) > 1 and columns[0] not in TEXTS):
        hint = ""
        if columns:
            hint = f", and any of {', '.join(columns)} may be it"
        raise BadRow(f"there is no `text`{hint}; call the column of the text `text`")
    return columns[0], record[columns[0]]


def _person(name: str) -> str | None:
    """Return the person whose file it is; None for a file of all people."""
    name = composed(name)  # one person, on whatever system the files were packed
    file = PurePosixPath(name[:-3] if name.lower().endswith(".gz") else name)
    is_person = file.stem != TOGETHER and not file.is_absolute()  # a file alone has any name
    if is_person:
        return file.stem
    return None


FORMAT = Format(
    TITLE,
    row,
    json_items(),
    files=r"\.jsonl?(\.gz)?$",
    choose="JSONL (or JSON)",
    same=lambda record: str(record["id"]),
    row_of_all=row_of_all,
    write=write,
    hides=("author", "votes", "verdicts", "corrections", "models", "metadata"),
    keeps=True,
)
