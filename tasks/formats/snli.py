"""SNLI 1.0: pairs with the labels of their author and of people who judged them.

Layout: README.txt of https://nlp.stanford.edu/projects/snli/. The first of `annotator_labels` is
the author's, the others are of people who judged the pair.
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
from tasks.line_files import strict_json

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


def row(parts: Sequence[Part]) -> Record:
    """Return a pair with its author's label and the votes on it, without syntax trees."""
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


def write(item: Item) -> Record | None:
    """Return a pair with the labels of its author and of the judges, in SNLI's layout."""
    row = strict_json(item.row_json)
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
    row,
    read_json_lines,
    write=write,
    needs=("premise", "hypothesis"),
    hides=("verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY-SA 4.0",
        "Samuel R. Bowman, Gabor Angeli, Christopher Potts and Christopher D. Manning. 2015. "
        "A large annotated corpus for learning natural language inference. EMNLP.",
    ),
)
