"""Adversarial NLI, version 1.0: `R1/train.jsonl` to `R3/test.jsonl`, and the verifiers' labels.

Layout: `src/dataset_tools/format_convert.py` of facebookresearch/anli, and `mds/verifier_labels.md`
there of `verifier_labels_R1-3.jsonl`, which joins by uid where it lies in the same folder.
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
from tasks.line_files import BadRow, strict_json

TITLE = "ANLI"
SHAPE = {"uid": str, "context": str, "hypothesis": str, "label": str, "model_label": str}
VERIFIER_LABELS = "verifier labels"
LABELS = {"e": "entailment", "n": "neutral", "c": "contradiction"}


def row(parts: Sequence[Part]) -> Record | None:
    """Return a statement with the labels of its author, the model in the loop and its verifiers.

    Verifiers are anonymous. The file name tells the round and the split.
    """
    votes: list[Record] = []
    of: Part | None = None
    # A uid has a line in `R1` to `R3`, and may have one with its verifiers' labels.
    for name, record in parts:
        if VERIFIER_LABELS in record:
            check_record(record, {"uid": str, VERIFIER_LABELS: list}, TITLE)
            votes = []
            for code in record[VERIFIER_LABELS]:
                votes.append(
                    build_vote(None, translate_value(code, LABELS, VERIFIER_LABELS, TITLE))
                )
        elif of:
            raise BadRow(f"the uid {record.get('uid')} stands in {of[0]} too; keep one of the two")
        else:
            of = name, record
    if of is None:
        return None
    name, record = of
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


def write(item: Item) -> Record | None:
    """Return a statement as in `R1/dev.jsonl`, where verifiers' labels are in a separate file."""
    codes = {label: code for code, label in LABELS.items()}
    row = strict_json(item.row_json)
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
    row,
    read_json_lines,
    files=r"(R[123]/(train|dev|test)|verifier_labels_R1-3)\.jsonl(\.gz)?$",
    same=lambda record: str(record["uid"]),
    write=write,
    needs=("premise", "hypothesis"),
    hides=("settled", "votes", "verdicts", "corrections", "metadata", "fields"),
    terms=Terms(
        "CC BY-NC 4.0",
        "Yixin Nie, Adina Williams, Emily Dinan, Mohit Bansal, Jason Weston and Douwe Kiela. "
        "2020. Adversarial NLI: A New Benchmark for Natural Language Understanding. ACL.",
    ),
)
