"""Label Studio's JSON export: a list of tasks with annotations and predictions.

Formats: https://labelstud.io/guide/task_format.html for exports and .../guide/tasks.html for
imports.
"""

from collections.abc import Container, Sequence
from typing import Any

from tasks.formats.base import (
    ARRAY_FRAME,
    EMPTY_ANSWERS,
    FREE_TEXT_KEY,
    LEFT_OUT_KEY,
    OTHER_PREDICTIONS,
    QUESTIONS_KEY,
    ROW_KEY,
    VERDICTS,
    Format,
    Item,
    LeftOutCounts,
    Part,
    Record,
    build_vote,
    check_record,
    find_timestamp,
    format_answer,
    hash_record,
    parse_stored_row,
    split_fields,
)
from tasks.formats.reading import make_json_reader
from tasks.line_files import BadRow, FileError

TITLE = "Label Studio"
ANSWER_KEYS = {"choices": "choices", "textarea": "text", "rating": "rating", "number": "number"}
"""The key of the answer in each type of result that is a single answer."""
VERDICT_CONTROL = "verdict"
"""The name of the control in which people say whether an answer is correct."""


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a task as a row. Each annotation is a vote. Raises BadRow, FileError."""
    if "data" not in parts[0][1] and "annotation_id" in parts[0][1]:
        raise FileError("It is the export JSON-MIN, which lacks what was skipped. Choose JSON.")
    task = check_record(parts[0][1], {"data": dict, "annotations": list}, TITLE)
    data = dict(task["data"])
    kept_fields = parse_stored_row(data.pop(ROW_KEY, None))
    left_out_counts, answered_controls = LeftOutCounts(), dict[str, None]()
    votes = list(kept_fields.get("validations", []))
    votes += _read_votes(task["annotations"], votes, left_out_counts, answered_controls)
    has_typed_answers = any(_has_typed_answer(annotation) for annotation in task["annotations"])
    if drafts := task.get("drafts"):
        left_out_counts["drafts"] += len(drafts) if isinstance(drafts, list) else 1
    row_metadata = {
        LEFT_OUT_KEY: left_out_counts,
        FREE_TEXT_KEY: has_typed_answers,
        QUESTIONS_KEY: tuple(answered_controls),
    }
    if kept_fields:
        return {**kept_fields, "validations": votes, **row_metadata}
    return {
        "uid": str(task["id"]) if "id" in task else hash_record(data),
        **split_fields(data),
        "model_prediction": _find_prediction(
            task.get("predictions"), left_out_counts, answered_controls
        ),
        "validations": votes,
        "metadata": {name: task[name] for name in ("meta", "file_upload") if task.get(name)},
        **row_metadata,
    }


def build_record(item: Item) -> Record:
    """Return a task with a prediction, and with an annotation for each vote.

    Label Studio refuses people it does not know, so the voter is recorded in the result.
    """
    object_name = next(iter(item.texts), ROW_KEY)
    control, prediction = item.answer_field, item.prediction
    return {
        "data": {**item.texts, ROW_KEY: item.row_json},
        "annotations": [
            {
                "result": [
                    {
                        **_build_result(
                            VERDICT_CONTROL if vote.is_verdict else control,
                            object_name,
                            vote.label,
                            item,
                        ),
                        "meta": {"judge": vote.worker},
                    }
                ]
            }
            for vote in item.votes
        ],
        "predictions": [
            {
                "model_version": item.model,
                "result": [_build_result(control, object_name, prediction, item)],
            }
        ]
        if prediction is not None
        else [],
    }


def _build_result(control: str, object_name: str, answer: str, item: Item) -> Record:
    # A verdict is always chosen, whatever the answer is.
    is_choice = item.is_choice or control == VERDICT_CONTROL
    value = {"choices": [answer]} if is_choice else {"text": [answer]}
    result_type = "textarea"
    if is_choice:
        result_type = "choices"
    return {"from_name": control, "to_name": object_name, "type": result_type, "value": value}


def select_answers(task: Record, question: str) -> Record:
    """Return the task without the answers to other controls than `question`."""
    task = {**task}
    for key in ("annotations", "predictions"):
        if isinstance(task.get(key), list):
            task[key] = [_limit_annotation(entry, question) for entry in task[key]]
    return task


def _limit_annotation(annotation: Any, question: str) -> Any:
    if not (isinstance(annotation, dict) and isinstance(annotation.get("result"), list)):
        return annotation
    results = []
    for result in annotation["result"]:
        # What is malformed stays, so that reading it refuses it with its place.
        if not isinstance(result, dict) or result.get("from_name", question) in (
            question,
            VERDICT_CONTROL,
        ):
            results.append(result)
    return {**annotation, "result": results}


def _read_votes(
    annotations: list[Any],
    kept_votes: Sequence[Record],
    left_out_counts: LeftOutCounts,
    answered_controls: dict[str, None],
) -> list[Record]:
    """Return the votes, ordered by time. Skipped and empty annotations are left out.

    kept_votes: votes that came with our export; annotations that repeat them are left out, too.
    answered_controls: collects the controls in which people answered.
    """
    dated_votes = []
    for number, annotation in enumerate(annotations, 1):
        location = f"annotations[{number}]"
        if check_record(annotation, {}, TITLE, location).get("was_cancelled"):
            left_out_counts["skipped annotations"] += 1
        elif vote := _read_vote(
            annotation, location, kept_votes, left_out_counts, answered_controls
        ):
            dated_votes.append((find_timestamp(annotation, "updated_at", "created_at"), vote))
    # By time alone: votes cannot be compared, and those of one moment keep their order.
    return [vote for _, vote in sorted(dated_votes, key=lambda dated_vote: dated_vote[0])]


def _read_vote(
    annotation: Record,
    location: str,
    kept_votes: Sequence[Record],
    left_out_counts: LeftOutCounts,
    answered_controls: dict[str, None],
) -> Record | None:
    check_record(annotation, {"result": list}, TITLE, location)
    answer = _read_answer(annotation["result"], f"{location}.result")
    if answer is None:
        left_out_counts[EMPTY_ANSWERS] += 1
        return None
    control, text, result = answer
    meta = {}
    if isinstance(result.get("meta"), dict):
        meta = result["meta"]
    if meta.get("text"):
        left_out_counts["notes on answers"] += 1
    # A vote that an export took out, and that came back. It counts once, as it was exported.
    if "judge" in meta and kept_votes:
        if not any(_is_same(vote, meta["judge"], text) for vote in kept_votes):
            left_out_counts[
                "votes of an export that were changed in Label Studio; they are as exported"
            ] += 1
        return None
    is_verdict = control == VERDICT_CONTROL and text in VERDICTS
    if not is_verdict:
        answered_controls[control] = None
    worker = annotation.get("completed_by")
    if "judge" in meta:
        worker = meta["judge"]
    # Its newer versions send the person as an object.
    worker = worker.get("id") if isinstance(worker, dict) else worker
    return build_vote(worker, text, is_verdict=is_verdict)


def _is_same(vote: Record, worker: Any, text: str) -> bool:
    """Return whether a vote from our export equals a person's answer."""
    answer = (vote.get("label"), vote.get("verdict"))
    return vote["worker"] == worker and text.strip() in [word.strip() for word in answer if word]


def _has_typed_answer(annotation: Record) -> bool:
    """Return whether the annotation has a free-text answer. A verdict does not count."""
    results = []
    if not annotation.get("was_cancelled"):
        results = annotation["result"]
    return any(
        result["type"] == "textarea" and result["from_name"] != VERDICT_CONTROL
        for result in results
    )


def _find_prediction(
    predictions: Any, left_out_counts: LeftOutCounts, answered_controls: Container[str]
) -> Record | None:
    """Return the first prediction that is included in full, or None.

    Exports may contain only the ids of predictions. If people answered, the prediction must be for
    their control. left_out_counts: counts the predictions that are left out.
    """
    first_prediction = None
    for number, prediction in enumerate(predictions if isinstance(predictions, list) else [], 1):
        # Exports may hold only the ids of predictions.
        if not (isinstance(prediction, dict) and "result" in prediction):
            left_out_counts["predictions of which the file has only the id"] += 1
            continue
        location = f"predictions[{number}]"
        check_record(prediction, {"result": list}, TITLE, location)
        answer = _read_answer(prediction["result"], f"{location}.result")
        # For a control in which nobody answered, it would look like an answer to theirs.
        if answer and answered_controls and answer[0] not in answered_controls:
            left_out_counts[OTHER_PREDICTIONS] += 1
            continue
        if first_prediction or not answer:
            left_out_counts["predictions beside the first, or empty"] += 1
            continue
        model = str(prediction.get("model_version") or "label-studio")
        first_prediction = {"model": model, "label": answer[1], "probs": None}
    return first_prediction


def _read_answer(results: list[Any], location: str) -> tuple[str, str, Record] | None:
    """Return the control, the answer and the result that contains it; None without an answer.

    Raises BadRow for several answers. location: the position of the results, for messages.
    """
    shape = {"type": str, "from_name": str, "value": dict}
    for number, result in enumerate(results, 1):
        check_record(result, shape, TITLE, f"{location}[{number}]")
        if result["type"] not in ANSWER_KEYS:
            raise BadRow(
                f"`{location}[{number}]` is of the type {result['type']}; of Label Studio's "
                f"answers come in {', '.join(ANSWER_KEYS)}"
            )
    # Several controls answered: nobody knows which one is the vote.
    if len(results) > 1:
        controls = ", ".join(result["from_name"] for result in results)
        raise BadRow(f"`{location}` has several answers ({controls}); name one with --question")
    for result in results:
        value = result["value"].get(ANSWER_KEYS[result["type"]])
        values = value
        if not isinstance(value, list):
            values = [value]
        if not values or (isinstance(values[0], str) and not "".join(map(str, values)).strip()):
            return None
        if len(values) != 1 or values[0] is None:
            raise BadRow(f"`{location}` has {len(values)} answers; a person gives one here")
        return result["from_name"], format_answer(values[0]), result
    return None


FORMAT = Format(
    TITLE,
    parse_row,
    make_json_reader(),
    file_pattern=r"\.json$",
    export_advice="JSON",
    select_answers=select_answers,
    build_record=build_record,
    frame=ARRAY_FRAME,
    hidden_parts=("author", "settled", "corrections", "metadata"),
    keeps_rows=True,
)
