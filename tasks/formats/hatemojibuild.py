"""HatemojiBuild: `train.csv`, `validation.csv` and `test.csv` of rounds 5 to 7, with emoji.

Layout: the columns in README.md of HannahKirk/Hatemoji. Neither the model's answers nor what each
of the three annotators said are published.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tasks.formats.base import Format, Item, Part, Record, Terms, check_record, translate_value
from tasks.formats.reading import make_table_reader
from tasks.line_files import strict_json

TITLE = "HatemojiBuild"
SHAPE = {"entry_id": str, "text": str, "round.base": str, "label_gold": str}
LABELS = {"0": "not-hate", "1": "hate"}
ROUNDS = {number: number for number in ("5", "6", "7")}


def row(parts: Sequence[Part]) -> Record:
    """Return a text with the label given by most of its annotators."""
    name, record = parts[0]
    check_record(record, SHAPE, TITLE)
    metadata = {}
    for column, v in record.items():
        if column not in SHAPE:
            metadata[column.replace(".", "_")] = v
    return {
        "round": int(translate_value(record["round.base"], ROUNDS, "round.base", TITLE)),
        "uid": record["entry_id"],
        "input": {"text": record["text"]},
        "author_label": translate_value(record["label_gold"], LABELS, "label_gold", TITLE),
        "metadata": {"split": PurePosixPath(name).name.partition(".")[0], **metadata},
    }


def write(item: Item) -> Record | None:
    """Return a text with the settled label, or else its author's."""
    row = strict_json(item.row_json)
    codes = {label: code for code, label in LABELS.items()}
    label, number = item.label or row["author_label"], str(row["round"])
    if label not in codes or number not in ROUNDS:
        return None
    values = (item.uid, item.texts["text"], number, codes[label])
    return dict(zip(SHAPE, values, strict=True))


FORMAT = Format(
    TITLE,
    row,
    make_table_reader(),
    write=write,
    columns=tuple(SHAPE),
    needs=("text",),
    files=r"(train|validation|test)\.csv(\.gz)?$",
    hides=("author", "votes", "verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY 4.0",
        "Hannah Rose Kirk, Bertie Vidgen, Paul Röttger, Tristan Thrush and Scott A. Hale. "
        "2022. Hatemoji: A Test Suite and Adversarially-Generated Dataset for Benchmarking and "
        "Detecting Emoji-based Hate. NAACL.",
    ),
)
