"""doccano's JSONL for text classification and sequence to sequence, in one file or one per person.

Format: `backend/data_export/pipeline` and `backend/data_import` of doccano/doccano: `id`, `text`
(and any columns of the uploaded file), `label`, a list, and `Comments`. If people work separately,
doccano writes a file `<person>.jsonl` for each, otherwise `all.jsonl`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import PurePosixPath

from core.text.words import compose
from tasks.formats.base import (
    EMPTY_ANSWERS,
    LEFT_OUT_KEY,
    ROW_KEY,
    Format,
    Item,
    LeftOutCounts,
    Part,
    Record,
    Shape,
    build_vote,
    check_record,
    omit_keys,
    parse_stored_row,
)
from tasks.formats.reading import make_json_reader
from tasks.line_files import BadRow, FileError

TITLE = "doccano"
SHAPE: Shape = {"id": (int, str), "label": list}
SHARED_FILE = "all"
ONE_PROJECT_ADVICE = "import each project of doccano by itself, into a round of its own"
EXPORTED_LABEL = "dynabench_label"
"""The key of a label that came with our export. doccano credits it to the uploader."""
OTHER_KINDS = ("cats", "entities", "relations", "bbox", "segmentation")
"""Keys that records of other kinds of projects have instead of labels."""
TEXT_COLUMNS = ("text", "data")
"""Names of the text column in versions of doccano. A project may use another name."""
OWN_COLUMNS = {"Comments", "comments", ROW_KEY, EXPORTED_LABEL}.union(SHAPE)


def parse_row(parts: Sequence[Part], uploader: str | None = None) -> Record:
    """Return a text as a row. Each person's label is a vote; other columns are metadata.

    uploader: the person to whom doccano credits the labels that came with our export. Raises
    BadRow.
    """
    left_out_counts = LeftOutCounts()
    votes: list[Record] = []
    for name, record in parts:
        votes += _read_votes(name, record, uploader, left_out_counts)
    first_record = parts[0][1]
    column, text = _find_text(first_record)
    for name, record in parts:
        if _find_text(record)[1] != text:
            raise BadRow(
                f"the id {first_record['id']} has another text in {name}; {ONE_PROJECT_ADVICE}"
            )
    kept_fields = parse_stored_row(first_record.get(ROW_KEY))
    if kept_fields:
        return {
            **kept_fields,
            "validations": list(kept_fields.get("validations", [])) + votes,
            LEFT_OUT_KEY: left_out_counts,
        }
    return {
        "uid": str(first_record["id"]),
        "input": {"text": text},
        "validations": votes,
        "metadata": omit_keys(first_record, OWN_COLUMNS | {column}),
        LEFT_OUT_KEY: left_out_counts,
    }


def build_record(item: Item) -> Record:
    """Return a text with its settled label, which people can confirm or change."""
    label = []
    if item.label is not None:
        label = [item.label]
    return {
        "text": item.text,
        "label": label,
        ROW_KEY: item.row_json,
        EXPORTED_LABEL: item.label or "",
    }


def bind_row_parser(parts: Iterable[Part]) -> Callable[[Sequence[Part]], Record | None]:
    """Return `parse_row`, bound to the person who uploaded our export. Raises FileError."""
    return partial(parse_row, uploader=_find_uploader(parts))


def _find_uploader(parts: Iterable[Part]) -> str | None:
    """Return the person who uploaded our export to doccano, or None if it is not known.

    This person has a label at every text that we exported with a label. If this is true of several
    people, those with other labels are left out. Raises FileError if several people remain.
    """
    columns_by_uploader: defaultdict[str, set[str]] = defaultdict(set)
    texts: set[str] = set()
    other_people: set[str] = set()
    for name, record in parts:
        person, label = _parse_person(name), record.get("label")
        if person is None or not isinstance(label, list):
            continue
        if record.get(EXPORTED_LABEL):
            texts.add(str(record.get("id")))
            if label:
                columns_by_uploader[person].add(str(record.get("id")))
        if label and label != [record.get(EXPORTED_LABEL)]:
            other_people.add(person)
    # Whoever uploaded the texts has a label at every text that came with one.
    likely_people = [
        person for person, ids in columns_by_uploader.items() if len(ids) == len(texts)
    ]
    if len(likely_people) > 1:
        likely_people = [
            person for person in likely_people if person not in other_people
        ] or likely_people
    if len(likely_people) > 1:
        raise FileError(
            f"{', '.join(sorted(likely_people))} have each a label wherever `{EXPORTED_LABEL}` "
            "has one, and doccano gave it to whoever uploaded the texts. Take that person's file "
            "out."
        )
    if likely_people:
        return likely_people[0]
    return None


def _read_votes(
    name: str, record: Record, uploader: str | None, left_out_counts: LeftOutCounts
) -> list[Record]:
    if "label" not in record and any(key in record for key in OTHER_KINDS):
        raise BadRow("it has no `label`; doccano's intents, spans and relations do not come in")
    check_record(record, SHAPE, TITLE)
    for key in ("Comments", "comments"):
        if isinstance(record.get(key), list) and record[key]:
            left_out_counts["comments"] += len(record[key])
    labels = record["label"]
    if len(labels) > 1 or any(not isinstance(label, str) for label in labels):
        raise BadRow(
            f"`label` has {len(labels)} entries, and here a person gives one text; doccano's spans "
            "and several labels do not come in"
        )
    person = _parse_person(name)
    if not labels:
        return []
    if not labels[0].strip():
        left_out_counts[EMPTY_ANSWERS] += 1
        return []
    # doccano gave it to the uploader, who may never have looked at the text.
    if labels[0] == record.get(EXPORTED_LABEL) and person in (None, uploader):
        left_out_counts["labels that the texts came to doccano with"] += 1
        return []
    return [build_vote(person, labels[0])]


def _find_text(record: Record) -> tuple[str, str]:
    """Return the name of the text column, and the text. Raises BadRow."""
    columns = []
    for name in TEXT_COLUMNS:
        if isinstance(record.get(name), str):
            columns.append(name)
    columns = columns or [
        name for name, value in record.items() if isinstance(value, str) and name not in OWN_COLUMNS
    ]
    if not columns or (len(columns) > 1 and columns[0] not in TEXT_COLUMNS):
        hint = ""
        if columns:
            hint = f", and any of {', '.join(columns)} may be it"
        raise BadRow(f"there is no `text`{hint}; call the column of the text `text`")
    return columns[0], record[columns[0]]


def _parse_person(name: str) -> str | None:
    """Return the person whose file this is; None for the file with everybody's labels."""
    name = compose(name)  # one person, on whatever system the files were packed
    file = PurePosixPath(name[:-3] if name.lower().endswith(".gz") else name)
    is_person = file.stem != SHARED_FILE and not file.is_absolute()  # a file alone has any name
    if is_person:
        return file.stem
    return None


FORMAT = Format(
    TITLE,
    parse_row,
    make_json_reader(),
    file_pattern=r"\.jsonl?(\.gz)?$",
    export_advice="JSONL (or JSON)",
    find_item_id=lambda record: str(record["id"]),
    bind_row_parser=bind_row_parser,
    build_record=build_record,
    hidden_parts=("author", "votes", "verdicts", "corrections", "models", "metadata"),
    keeps_rows=True,
)
