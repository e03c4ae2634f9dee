"""Argilla 2's `dataset.records.to_json`: a list of records with suggestions and responses.

Layout: `Record.to_dict` in `argilla/src/argilla/records/_resource.py` of argilla-io/argilla, which
`dataset.records.from_json` reads.
"""

from collections.abc import Sequence
from typing import Any

from tasks.formats.base import (
    ARRAY,
    KEPT,
    LEFT,
    UNANSWERED,
    VERDICTS,
    Format,
    Item,
    Left,
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

TITLE = "Argilla"
SUBMITTED = "submitted"
VERDICT = "verdict"
"""The question whether an answer is correct."""


def row(parts: Sequence[Part]) -> Record:
    """A record: its fields are what people read, each response a vote."""
    record = checked(parts[0][1], {"fields": dict, "responses": dict}, TITLE)
    metadata = dict(record.get("metadata") or {})
    kept = kept_row(metadata.pop(KEPT, None))
    votes, left = list(kept.pop("validations", [])), Left()
    if len(record["responses"]) > 1:
        questions = ", ".join(record["responses"])
        raise BadRow(f"`responses` answers several questions ({questions}); keep one of them")
    for question, responses in record["responses"].items():
        votes += _votes(question, responses, left)
    if kept:
        return {**kept, "validations": votes, LEFT: left}
    return {
        "uid": str(record.get("id") or digest_of(record["fields"])),
        "input": record["fields"],
        "model_prediction": _prediction(record.get("suggestions"), left),
        "validations": votes,
        "metadata": metadata,
        LEFT: left,
    }


def write(item: Item) -> Record:
    """A record that suggests what is settled, else what the model said.

    Argilla refuses responses of people whom it does not know, so votes are in the metadata alone.
    """
    said = item.prediction if item.label is None else item.label
    agent = item.model if item.label is None else None
    suggestion = {"value": said, "score": None, "agent": agent}
    return {
        "id": item.uid,
        "fields": dict(item.texts),
        "metadata": {KEPT: item.kept},
        "suggestions": {} if said is None else {item.answer: suggestion},
        "responses": {},
        "vectors": {},
    }


def _votes(question: str, responses: Any, left: Left) -> list[Record]:
    if not isinstance(responses, list):
        raise BadRow(f"`responses.{question}` is no list; {TITLE} has one there")
    votes = []
    for number, response in enumerate(responses, 1):
        where = f"responses.{question}[{number}]"
        checked(response, {}, TITLE, where)
        status = response.get("status") or SUBMITTED
        if status != SUBMITTED:
            left[f"responses that are {status}"] += 1
            continue
        if response.get("value", 0) in (None, ""):
            left[UNANSWERED] += 1
            continue
        checked(response, {"value": (str, int), "user_id": str}, TITLE, where)
        said = said_of(response["value"])
        is_verdict = question == VERDICT and said in VERDICTS
        votes.append(vote_of(response["user_id"], said, is_verdict=is_verdict))
    return votes


def _prediction(suggestions: Any, left: Left) -> Record | None:
    """What one agent suggests to one question; with several of them nobody knows which counts."""
    if not isinstance(suggestions, dict) or len(suggestions) != 1:
        if suggestions:
            left["suggestions to several questions"] += len(suggestions)
        return None
    [(question, said)] = suggestions.items()
    checked(said, {"value": (str, int)}, TITLE, f"suggestions.{question}")
    return {"model": said.get("agent") or "argilla", "label": said_of(said["value"]), "probs": None}


FORMAT = Format(
    TITLE,
    row,
    json_items(),
    files=r"\.json$",
    choose="to_json of the records",
    write=write,
    hides="votes",
    frame=ARRAY,
)
