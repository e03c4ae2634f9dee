"""Adversarial NLI, version 1.0: `R1/train.jsonl` to `R3/test.jsonl`, and the verifiers' labels.

Format: `src/dataset_tools/format_convert.py` of facebookresearch/anli. The verifiers' labels are in
`verifier_labels_R1-3.jsonl`, described in `mds/verifier_labels.md`; if the file is in the same
folder, they are joined by uid.
"""

import re
from collections.abc import Sequence

from tasks.formats.base import (
    Format,
    Item,
    Part,
    Record,
    Terms,
    build_vote,
    check_record,
    omit_keys,
    translate_value,
)
from tasks.formats.reading import read_json_lines
from tasks.line_files import BadRow, parse_strict_json

TITLE = "ANLI"
SHAPE = {"uid": str, "context": str, "hypothesis": str, "label": str, "model_label": str}
VERIFIER_LABELS = "verifier labels"
LABELS = {"e": "entailment", "n": "neutral", "c": "contradiction"}


def parse_row(parts: Sequence[Part]) -> Record | None:
    """Return a statement as a row, with the labels of author, model in the loop and verifiers.

    Returns None if there are only verifiers' labels. Verifiers are anonymous. The file name
    contains the round and the split.
    """
    votes: list[Record] = []
    statement_part: Part | None = None
    # A uid has a line in `R1` to `R3`, and may have one with its verifiers' labels.
    for name, record in parts:
        if VERIFIER_LABELS in record:
            check_record(record, {"uid": str, VERIFIER_LABELS: list}, TITLE)
            votes = []
            for code in record[VERIFIER_LABELS]:
                votes.append(
                    build_vote(None, translate_value(code, LABELS, VERIFIER_LABELS, TITLE))
                )
        elif statement_part:
            uid, other_file = record.get("uid"), statement_part[0]
            raise BadRow(f"the uid {uid} appears in {other_file} too; keep one of the two")
        else:
            statement_part = name, record
    if statement_part is None:
        return None
    name, record = statement_part
    check_record(record, SHAPE, TITLE)
    match = re.search(r"R([123])/(train|dev|test)\.", name)
    if not match:
        raise BadRow("the file's name does not tell the round; call it R1/dev.jsonl, as ANLI does")
    model = translate_value(record["model_label"], LABELS, "model_label", TITLE)
    return {
        "round": int(match[1]),
        "uid": record["uid"],
        "context": {"premise": record["context"]},
        "input": {"hypothesis": record["hypothesis"]},
        "author_label": translate_value(record["label"], LABELS, "label", TITLE),
        "model_prediction": {"model": f"anli-r{match[1]}", "label": model, "probs": None},
        "validations": votes,
        "metadata": {"split": match[2], **omit_keys(record, SHAPE)},
    }


def build_record(item: Item) -> Record | None:
    """Return a statement in the form of `R1/dev.jsonl`. Verifiers' labels are in a separate file.

    Returns None if a label is unknown or missing.
    """
    codes = {label: code for code, label in LABELS.items()}
    row = parse_strict_json(item.row_json)
    label, prediction = row["author_label"], item.prediction
    if label not in codes or prediction not in codes:
        return None
    return {
        "uid": item.uid,
        "context": item.texts["premise"],
        "hypothesis": item.texts["hypothesis"],
        "label": codes[label],
        "model_label": codes[prediction],
    }


FORMAT = Format(
    TITLE,
    parse_row,
    read_json_lines,
    file_pattern=r"(R[123]/(train|dev|test)|verifier_labels_R1-3)\.jsonl(\.gz)?$",
    find_item_id=lambda record: str(record["uid"]),
    build_record=build_record,
    required_fields=("premise", "hypothesis"),
    hidden_parts=("settled", "votes", "verdicts", "corrections", "metadata", "fields"),
    terms=Terms(
        "CC BY-NC 4.0",
        "Yixin Nie, Adina Williams, Emily Dinan, Mohit Bansal, Jason Weston and Douwe Kiela. "
        "2020. Adversarial NLI: A New Benchmark for Natural Language Understanding. ACL.",
    ),
)
