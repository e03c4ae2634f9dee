"""DynaSent, version 1.1: sentences of both rounds, and SST's dev set judged by the same people.

Format: "Data format" in README.md of cgpotts/dynasent.
"""

from collections.abc import Sequence
from typing import Any

from tasks.formats.base import Format, Item, Part, Record, Shape, Terms, build_vote, check_record
from tasks.formats.reading import read_json_lines
from tasks.line_files import BadRow, parse_strict_json

TITLE = "DynaSent"
SHAPE: Shape = {
    "sentence": str,
    "text_id": str,
    "label_distribution": dict,
    "gold_label": (str, type(None)),
}
MODELS = {"r1-": (1, "model_0"), "r2-": (2, "model_1"), "sst": (0, "")}
USED_FIELDS = {"sentence", "text_id", "label_distribution", "sentence_author", "prompt_data"}


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a sentence as a row with its votes. Raises BadRow.

    In round 2, the row also has the author and the sentence that the author edited.
    """
    record = check_record(parts[0][1], SHAPE, TITLE)
    if record["text_id"][:3] not in MODELS:
        raise BadRow(f"`text_id` is {record['text_id']}; DynaSent's begin with {', '.join(MODELS)}")
    round, model = MODELS[record["text_id"][:3]]
    model_shape = {}
    if model:
        model_shape = {f"{model}_label": str, f"{model}_probs": dict}
    check_record(record, model_shape, TITLE)
    votes = []
    for label, workers in record["label_distribution"].items():
        check_record(record["label_distribution"], {label: list}, TITLE, "label_distribution")
        votes += [build_vote(worker, label) for worker in workers]
    prompt = record.get("prompt_data") or {}
    check_record(prompt, {"prompt_sentence": str} if prompt else {}, TITLE, "prompt_data")
    used_names = USED_FIELDS.union(model_shape)
    metadata: dict[str, Any] = {
        name: value for name, value in record.items() if name not in used_names
    }
    return {
        "round": round,
        "uid": record["text_id"],
        "context": {"prompt": prompt["prompt_sentence"]} if prompt else {},
        "input": {"text": record["sentence"]},
        "author": record.get("sentence_author"),
        "model_prediction": {
            "model": model,
            "label": record[f"{model}_label"],
            "probs": record[f"{model}_probs"],
        }
        if model
        else None,
        "validations": votes,
        "metadata": {
            **metadata,
            **{name: value for name, value in prompt.items() if name != "prompt_sentence"},
        },
    }


def build_record(item: Item) -> Record | None:
    """Return a sentence with the people who gave each label, and the model's answer.

    Returns None if the format cannot express the item.
    """
    row = parse_strict_json(item.row_json)
    prefixes = []
    for prefix, (number, _) in MODELS.items():
        if number == row["round"]:
            prefixes.append(prefix)
    prediction = row["model_prediction"]
    # Sentences of SST were not written against a model, all others were.
    if not prefixes or (prediction is None) != (prefixes[0] == "sst"):
        return None
    model, votes = MODELS[prefixes[0]][1], [vote for vote in item.votes if not vote.is_verdict]
    labels = dict.fromkeys(vote.label for vote in votes)
    model_fields = {}
    if prediction:
        model_fields = {
            f"{model}_label": prediction["label"],
            f"{model}_probs": prediction["probs"] or {},
        }
    prompt = row["context"].get("prompt")
    return {
        "sentence": item.texts["text"],
        "text_id": item.uid if item.uid.startswith(prefixes[0]) else f"{prefixes[0]}{item.uid}",
        **model_fields,
        **({"prompt_data": {"prompt_sentence": prompt}} if prompt else {}),
        "sentence_author": row["author"],
        "label_distribution": {
            label: [vote.worker for vote in votes if vote.label == label] for label in labels
        },
        "gold_label": item.label,
    }


FORMAT = Format(
    TITLE,
    parse_row,
    read_json_lines,
    build_record=build_record,
    required_fields=("text",),
    hidden_parts=("author", "verdicts", "corrections", "metadata", "fields"),
    terms=Terms(
        "CC BY 4.0",
        "Christopher Potts, Zhengxuan Wu, Atticus Geiger and Douwe Kiela. 2020. DynaSent: A "
        "Dynamic Benchmark for Sentiment Analysis. arXiv:2012.15349.",
    ),
)
