"""Dynabench's own files, of all its versions, and rows of this platform's releases.

Formats: `get_round_data_for_export` of facebookresearch/dynabench, at first with `text`,
`target_pred` and `model_preds`, since Dynatask with `input_json` and `output_json`;
`download_all_created_examples` of mlcommons/dynabench, which packs the example and its context into
`example_info` and `context_info`; and the lines in docs/datasets.md, which use the same names.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.formats.base import (
    PRIVATE_NAMES,
    VERDICTS,
    Format,
    Item,
    Part,
    Record,
    build_vote,
    check_record,
    pop_correction,
)
from tasks.formats.reading import make_json_reader
from tasks.line_files import BadRow, parse_strict_json

TITLE = "Dynabench"
ANSWER_FIELDS = ("label", "answer")
"""Names of the answer field in tasks without a model's answer."""
AUTHOR_VERDICTS = {True: "incorrect", False: "correct"}
PLACEHOLDER_MODES = ("placeholder",)
"""Modes of votes that do not count: they only reserved an example."""
ROUND_PATTERN = re.compile(r"(?:round|rid|(?:^|[-_])r)[-_]?(\d{1,4})(?!\d)", re.I)
METADATA_FIELDS = ("tag", "split", "example_explanation", "model_explanation", "generated_datetime",
         "time_elapsed", "label", "parent_uid")  # fmt: skip


def parse_row(parts: Sequence[Part]) -> Record | None:
    """Return an example as a row; None if it was withdrawn, retracted or never finished.

    Raises BadRow.
    """
    name, record = parts[0]
    example = {**check_record(record.get("example_info", record), {}, TITLE, "example_info")}
    context = _read_context(record.get("context_info", example.get("context")))
    # Its author took it back.
    if example.get("withdrawn") or example.get("retracted") in (True, 1):
        return None
    inputs = _parse_object(example, "input_json")
    if "input_json" not in example:
        inputs = {"text": check_record(example, {"text": str}, TITLE)["text"]}
    field, answer = _find_answer(example, inputs)
    is_old = "input_json" not in example
    author_answer, start = _read_answer_and_start(
        example.get("target_pred") if is_old else inputs.pop(field, None)
    )
    is_model_wrong = example.get("model_wrong")
    is_model_wrong = (
        bool(is_model_wrong) if is_model_wrong in (True, False, 0, 1) and answer else None
    )
    history_row: Record = {
        "round": _find_round(name, example),
        "uid": _find_uid(example),
        "context": context,
        "input": inputs,
        "author": _read_text(example.get("anon_uid")),
        "author_label": author_answer,
        "model_prediction": answer,
        "model_wrong": is_model_wrong,
        "validations": list(_iter_votes(example)),
        "metadata": {
            **_build_metadata(example),
            **({} if start is None else {f"{field}_start": start}),
        },
    }
    if author_answer is None and is_model_wrong is not None:
        history_row["author_verdict"] = AUTHOR_VERDICTS[is_model_wrong]
    return history_row


def build_record(item: Item) -> Record:
    """Return an item in the format of Dynabench's own export."""
    row = parse_strict_json(item.row_json)
    prediction, author_answer = row["model_prediction"], row["author_label"]
    inputs = {
        **row["input"],
        **({} if author_answer is None else {item.answer_field: author_answer}),
    }
    output: Record = {item.answer_field: prediction["label"]} if prediction else {}
    if prediction and prediction["probs"]:
        output["prob"] = prediction["probs"]
    return {
        "uid": item.uid,
        "round": row["round"],
        "anon_uid": row["author"],
        "context": {"context_json": json.dumps(row["context"], ensure_ascii=False)},
        "input_json": json.dumps(inputs, ensure_ascii=False),
        "output_json": json.dumps(output, ensure_ascii=False) if output else None,
        "model_endpoint_name": prediction and prediction["model"],
        "model_wrong": None
        if author_answer is None or prediction is None
        else author_answer != prediction["label"],
        "validations": [
            [vote.get("verdict") or vote["label"], "user", vote["worker"]]
            for vote in row["validations"]
        ],
        "corrections": [
            {"answer": vote["correction"], "validator": vote["worker"]}
            for vote in row["validations"]
            if vote.get("correction")
        ],
        "metadata_json": json.dumps(row["metadata"], ensure_ascii=False),
    }


def _find_uid(example: Record) -> str:
    """Return the example's own id. Dynabench's `uid` is the author's id."""
    name = "uid"
    if "id" in example:
        name = "id"
    return str(check_record(example, {name: (int, str)}, TITLE)[name])


def _parse_object(record: Mapping[str, Any], name: str) -> Record:
    """Return the object in a field, which may be JSON text; {} if it is missing or null.

    Raises BadRow.
    """
    value = record.get(name)
    if isinstance(value, str) and value.strip():
        value = parse_strict_json(value)
    return dict(check_record(value or {}, {}, TITLE, name))


def _read_context(value: Any) -> Record:
    """Return the fields of a context. Before Dynatask a context was a single text."""
    row_metadata = check_record(value or {}, {}, TITLE, "context")
    if "context_json" in row_metadata:
        return _parse_object(row_metadata, "context_json")
    if isinstance(row_metadata.get("context"), str):
        return {"context": row_metadata["context"]}
    return {}


def _find_answer(example: Record, inputs: Record) -> tuple[str, Record | None]:
    """Return the name of the answer field, "" if unknown, and the model's prediction, if any."""
    model = (
        _read_text(example.get("model_endpoint_name") or example.get("target_model")) or "dynabench"
    )
    # Dynabench names endpoints by task and model.
    model = model.removeprefix(f"{example.get('task')}_")
    if "input_json" not in example:
        text = _read_text(example.get("model_preds"))
        return "", {"model": model, "label": text, "probs": None} if text else None
    output = _parse_object(example, "output_json")
    probs = output.get("prob")
    has_valid_probs = isinstance(probs, dict) and all(
        _is_probability(prob) for prob in probs.values()
    )
    likely_fields = []
    for name in output:
        if name in inputs:
            likely_fields.append(name)
    likely_fields += [name for name in ANSWER_FIELDS if name in inputs or name in output]
    field = ""
    if likely_fields:
        field = likely_fields[0]
    if field not in output:
        return field, None
    label = _read_answer_and_start(output[field])[0]
    return field, {
        "model": model,
        "label": label or "",
        "probs": probs if has_valid_probs else None,
    }


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _read_answer_and_start(value: Any) -> tuple[str | None, int | None]:
    """Return an answer as text, or None, and its start in the passage, if the file has it."""
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return value["text"], value.get("start")
    return _read_text(value), None


def _read_text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _find_round(name: str, example: Record) -> int:
    """Return the round that the row names, or else the one in its file's name, or else 1."""
    if isinstance(example.get("round"), int):
        return int(example["round"])
    match = ROUND_PATTERN.search(name.rpartition("/")[2])
    if match:
        return int(match[1])
    return 1


def _iter_votes(example: Record) -> Any:
    """Yield people's votes, without an owner's decision on this platform. Raises BadRow."""
    votes = example.get("validations") or []
    if not isinstance(votes, list):
        raise BadRow("`validations` is no list; each vote in it is one")
    corrections = _list_corrections(example)
    for number, vote in enumerate(votes, 1):
        if not isinstance(vote, list) or len(vote) < 3 or not isinstance(vote[0], str):
            raise BadRow(f"`validations[{number}]` must be a label, a mode and who gave it")
        answer, mode, worker = vote[:3]
        # An owner's decision of this platform is exported among the votes, without a person.
        if answer not in PLACEHOLDER_MODES and not (mode == "owner" and worker is None):
            cast_vote = build_vote(worker, answer, is_verdict=answer in VERDICTS)
            correction = ""
            if answer == "incorrect":
                correction = pop_correction(corrections, worker)
            yield {**cast_vote, "correction": correction} if correction else cast_vote


def _list_corrections(example: Record) -> list[tuple[Any, str]]:
    """Return the corrections of an example from one of our releases, each as (person, answer).

    Raises BadRow.
    """
    corrections = example.get("corrections") or []
    correction_list = corrections
    if not isinstance(corrections, list):
        correction_list = [corrections]
    for number, correction in enumerate(correction_list, 1):
        check_record(
            correction,
            {"answer": str, "validator": (str, type(None))},
            TITLE,
            f"corrections[{number}]",
        )
    return [(correction["validator"], correction["answer"]) for correction in correction_list]


def _build_metadata(example: Record) -> Record:
    """Return the remaining fields as metadata, without ids of workers, which old files leak."""
    metadata = _parse_object(example, "metadata_json")
    row_metadata = {}
    for name in METADATA_FIELDS:
        if example.get(name) not in (None, ""):
            row_metadata[name] = example[name]
    return {
        name: value
        for name, value in {**row_metadata, **metadata}.items()
        if not PRIVATE_NAMES.search(name)
    }


FORMAT = Format(
    TITLE,
    parse_row,
    make_json_reader(),
    file_pattern=r"(^|/)(?!croissant\.|benchmark_card\.|task\.)(?![^/]*unlabelled)[^/]*\.jsonl?(\.gz)?$",
    build_record=build_record,
    hidden_parts=("settled",),
)
