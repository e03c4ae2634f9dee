"""HatemojiBuild: `train.csv`, `validation.csv` and `test.csv` of rounds 5 to 7, with emoji.

Format: the columns in README.md of HannahKirk/Hatemoji. Neither the model's answers nor the
individual answers of the three annotators are published.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tasks.formats.base import Format, Item, Part, Record, Terms, check_record, translate_value
from tasks.formats.reading import make_table_reader
from tasks.line_files import parse_strict_json

TITLE = "HatemojiBuild"
SHAPE = {"entry_id": str, "text": str, "round.base": str, "label_gold": str}
LABELS = {"0": "not-hate", "1": "hate"}
ROUNDS = {number: number for number in ("5", "6", "7")}


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a text as a row with the label that most annotators gave. Raises BadRow."""
    name, record = parts[0]
    check_record(record, SHAPE, TITLE)
    metadata = {}
    for column, value in record.items():
        if column not in SHAPE:
            metadata[column.replace(".", "_")] = value
    return {
        "round": int(translate_value(record["round.base"], ROUNDS, "round.base", TITLE)),
        "uid": record["entry_id"],
        "input": {"text": record["text"]},
        "author_label": translate_value(record["label_gold"], LABELS, "label_gold", TITLE),
        "metadata": {"split": PurePosixPath(name).name.partition(".")[0], **metadata},
    }


def build_record(item: Item) -> Record | None:
    """Return a text with the settled label or, without one, its author's.

    Returns None if the label or the round is not in the format.
    """
    row = parse_strict_json(item.row_json)
    codes = {label: code for code, label in LABELS.items()}
    label, number = item.label or row["author_label"], str(row["round"])
    if label not in codes or number not in ROUNDS:
        return None
    values = (item.uid, item.texts["text"], number, codes[label])
    return dict(zip(SHAPE, values, strict=True))


FORMAT = Format(
    TITLE,
    parse_row,
    make_table_reader(),
    build_record=build_record,
    columns=tuple(SHAPE),
    required_fields=("text",),
    file_pattern=r"(train|validation|test)\.csv(\.gz)?$",
    hidden_parts=("author", "votes", "verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY 4.0",
        "Hannah Rose Kirk, Bertie Vidgen, Paul Röttger, Tristan Thrush and Scott A. Hale. "
        "2022. Hatemoji: A Test Suite and Adversarially-Generated Dataset for Benchmarking and "
        "Detecting Emoji-based Hate. NAACL.",
    ),
)
