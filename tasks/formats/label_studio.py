"""Label Studio's JSON export: a list of tasks with annotations and predictions.

Layout: https://labelstud.io/guide/task_format.html and, of what comes in, .../guide/tasks.html.
"""

from collections.abc import Sequence
from typing import Any

from tasks.formats.base import (
    ARRAY,
    KEPT,
    VERDICTS,
    Format,
    Item,
    Part,
    Record,
    checked,
    digest_of,
    kept_row,
    said_of,
    vote_of,
)
from tasks.formats.reading import json_items
from tasks.line_files import BadRow

TITLE = "Label Studio"
ANSWERS = {"choices": "choices", "textarea": "text", "rating": "rating", "number": "number"}
"""Types of results that are one answer, and the key of it."""
VERDICT = "verdict"
"""The control in which people say whether an answer is correct."""


def row(parts: Sequence[Part]) -> Record:
    """A task: its data is what people read, each annotation a vote."""
    task = checked(parts[0][1], {"data": dict, "annotations": list}, TITLE)
    data = dict(task["data"])
    kept = kept_row(data.pop(KEPT, None))
    votes = list(kept.pop("validations", []))
    for number, annotation in enumerate(task["annotations"], 1):
        votes += _votes(annotation, f"annotations[{number}]")
    if kept:
        return {**kept, "validations": votes}
    return {
        "uid": str(task["id"]) if "id" in task else digest_of(data),
        "input": data,
        "model_prediction": _prediction(task.get("predictions")),
        "validations": votes,
        "metadata": {name: task[name] for name in ("meta", "file_upload") if task.get(name)},
    }


def write(item: Item) -> Record:
    """A task with a prediction, and an annotation for each vote.

    Label Studio refuses people whom it does not know, so a vote's author stands in its result.
    """
    to = next(iter(item.texts))
    control, said = item.answer, item.prediction
    return {
        "data": {**item.texts, KEPT: item.kept},
        "annotations": [
            {
                "result": [
                    {
                        **_result(VERDICT if vote.is_verdict else control, to, vote.label, item),
                        "meta": {"judge": vote.who},
                    }
                ]
            }
            for vote in item.votes
        ],
        "predictions": [{"model_version": item.model, "result": [_result(control, to, said, item)]}]
        if said is not None
        else [],
    }


def _result(control: str, to: str, said: str, item: Item) -> Record:
    is_choice = item.is_choice or control == VERDICT
    value = {"choices": [said]} if is_choice else {"text": [said]}
    kind = "choices" if is_choice else "textarea"
    return {"from_name": control, "to_name": to, "type": kind, "value": value}


def _votes(annotation: Any, where: str) -> list[Record]:
    """The vote of an annotation; none where it was skipped, is empty or was a vote before."""
    checked(annotation, {"result": list}, TITLE, where)
    found = _answer(annotation["result"], f"{where}.result")
    if annotation.get("was_cancelled") or found is None:
        return []
    control, said, result = found
    if isinstance(result.get("meta"), dict) and "judge" in result["meta"]:
        return []
    who = annotation.get("completed_by")
    who = who.get("id") if isinstance(who, dict) else who
    return [vote_of(who, said, is_verdict=control == VERDICT and said in VERDICTS)]


def _prediction(given: Any) -> Record | None:
    """The first prediction that is written out; exports may hold ids alone."""
    for number, one in enumerate(given if isinstance(given, list) else [], 1):
        if isinstance(one, dict) and "result" in one:
            where = f"predictions[{number}]"
            checked(one, {"result": list}, TITLE, where)
            found = _answer(one["result"], f"{where}.result")
            if found:
                model = str(one.get("model_version") or "label-studio")
                return {"model": model, "label": found[1], "probs": None}
    return None


def _answer(results: list[Any], where: str) -> tuple[str, str, Record] | None:
    """The control, the answer and the result that holds it. Raises BadRow if there are several."""
    shape = {"type": str, "from_name": str, "value": dict}
    for number, result in enumerate(results, 1):
        checked(result, shape, TITLE, f"{where}[{number}]")
        if result["type"] not in ANSWERS:
            raise BadRow(
                f"`{where}[{number}]` is of the type {result['type']}; of Label Studio's answers "
                f"come in {', '.join(ANSWERS)}"
            )
    if len(results) > 1:
        controls = ", ".join(result["from_name"] for result in results)
        raise BadRow(f"`{where}` has several answers ({controls}); keep one of them")
    for result in results:
        value = result["value"].get(ANSWERS[result["type"]])
        values = value if isinstance(value, list) else [value]
        if len(values) != 1 or values[0] is None:
            raise BadRow(f"`{where}` has {len(values)} answers; a person gives one here")
        return result["from_name"], said_of(values[0]), result
    return None


FORMAT = Format(TITLE, row, json_items(), files=r"\.json$", write=write, frame=ARRAY)
