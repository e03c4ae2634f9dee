"""SNLI 1.0: pairs with the labels of their author and of the people who judged them.

Format: README.txt of https://nlp.stanford.edu/projects/snli/. The first of `annotator_labels` is
the author's, the others are those of the people who judged the pair.
"""

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
from tasks.line_files import parse_strict_json

TITLE = "SNLI"
SHAPE = {
    "sentence1": str,
    "sentence2": str,
    "pairID": str,
    "annotator_labels": list,
    "captionID": str,  # MultiNLI, of another licence, has none
}
LABELS = {name: name for name in ("entailment", "neutral", "contradiction")}
PARSE_COLUMNS = {
    "sentence1_parse",
    "sentence1_binary_parse",
    "sentence2_parse",
    "sentence2_binary_parse",
}


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a pair as a row with its author's label and its votes, without syntax trees.

    Raises BadRow.
    """
    record = check_record(parts[0][1], SHAPE, TITLE)
    labels = []
    for label in record["annotator_labels"]:
        labels.append(translate_value(label, LABELS, "annotator_labels", TITLE))
    taken_columns = PARSE_COLUMNS.union(SHAPE) - {"captionID"}
    return {
        "uid": record["pairID"],
        "context": {"premise": record["sentence1"]},
        "input": {"hypothesis": record["sentence2"]},
        "author_label": labels[0] if labels else None,
        "validations": [build_vote(None, label) for label in labels[1:]],
        "metadata": omit_keys(record, taken_columns),
    }


def build_record(item: Item) -> Record | None:
    """Return a pair with the labels of its author and judges; None for a label that SNLI lacks."""
    row = parse_strict_json(item.row_json)
    labels = [row["author_label"]]
    for vote in item.votes:
        labels.append(vote.label)
    if not LABELS.keys() >= set(labels):
        return None
    return {
        "gold_label": item.label or "-",
        "sentence1": item.texts["premise"],
        "sentence2": item.texts["hypothesis"],
        "pairID": item.uid,
        "captionID": item.uid,
        "annotator_labels": labels,
    }


FORMAT = Format(
    TITLE,
    parse_row,
    read_json_lines,
    build_record=build_record,
    required_fields=("premise", "hypothesis"),
    hidden_parts=("verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY-SA 4.0",
        "Samuel R. Bowman, Gabor Angeli, Christopher Potts and Christopher D. Manning. 2015. "
        "A large annotated corpus for learning natural language inference. EMNLP.",
    ),
)
