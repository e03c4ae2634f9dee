"""Argilla 2's records, as written by `to_json`, `to_list(flatten=True)` or `to_datasets`.

Formats: `Record.to_dict` in `argilla/src/argilla/records/_resource.py` of argilla-io/argilla, which
`dataset.records.from_json` reads, and `records/_io/_generic.py` for the flat form. Only the flat
form says which responses were submitted.
"""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from tasks.formats.base import (
    ARRAY_FRAME,
    EMPTY_ANSWERS,
    LEFT_OUT_KEY,
    NOTES_KEY,
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
    convert_turns,
    format_answer,
    hash_record,
    omit_keys,
    parse_stored_row,
    split_fields,
)
from tasks.formats.reading import make_json_reader
from tasks.line_files import BadRow

TITLE = "Argilla"
SUBMITTED_STATUS = "submitted"
VERDICT_QUESTION = "verdict"
"""The name of the question whether an answer is correct."""
EXPORT_ADVICE = "to_json or to_list(flatten=True) of the records"
NO_STATUS_NOTE = (
    "responses without a status, as to_json leaves it out: drafts and discarded ones count, too, "
    "but not where you write to_list(flatten=True) of the records into a JSON file"
)
_FLAT_COLUMN = re.compile(r"(.+)\.(responses|suggestion)(?:\.(users|status|score|agent))?")
_OWN_COLUMNS = ("id", "status", "_server_id", "score")
"""Columns of a flat record that are neither fields nor metadata nor vectors."""


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a record as a row. Each response is a vote. Raises BadRow."""
    record = _normalise_record(parts[0][1])
    metadata = dict(record.get("metadata") or {})
    kept_fields = parse_stored_row(metadata.pop(ROW_KEY, None))
    left_out_counts, note_counts = LeftOutCounts(), LeftOutCounts()
    questions = []
    for name, answers in record["responses"].items():
        if answers:
            questions.append(name)
    if len(questions) > 1:
        raise BadRow(f"`responses` answers {', '.join(questions)}; name one with --question")
    # Votes that an export took out come first, and those of Argilla after them.
    votes = list(kept_fields.pop("validations", []))
    for question in questions:
        votes += _read_votes(question, record["responses"][question], left_out_counts, note_counts)
    if vectors := record.get("vectors"):
        left_out_counts["vectors"] += len(vectors)
    answered_questions = tuple(
        question_name for question_name in questions if question_name != VERDICT_QUESTION
    )
    row_metadata = {
        LEFT_OUT_KEY: left_out_counts,
        NOTES_KEY: note_counts,
        QUESTIONS_KEY: answered_questions,
    }
    if kept_fields:
        return {**kept_fields, "validations": votes, **row_metadata}
    return {
        "uid": str(record.get("id") or hash_record(record["fields"])),
        **split_fields(record["fields"]),
        "model_prediction": _find_prediction(
            record.get("suggestions"), left_out_counts, answered_questions
        ),
        "validations": votes,
        "metadata": metadata,
        **row_metadata,
    }


def select_answers(record: Record, question: str) -> Record:
    """Return the record without the answers to other questions than `question` and the verdict."""
    record = {**record}
    for key in ("responses", "suggestions"):
        if isinstance(record.get(key), dict):
            record[key] = {
                name: answers
                for name, answers in record[key].items()
                if name in (question, VERDICT_QUESTION)
            }
    kept_columns = {}
    for name, value in record.items():
        match = _FLAT_COLUMN.fullmatch(name)
        if not match or match[1] in (question, VERDICT_QUESTION):
            kept_columns[name] = value
    return kept_columns


def _normalise_record(record: Record) -> Record:
    """Return the record in the form that `to_json` writes. Raises BadRow."""
    # Only the flat form has this column.
    if "fields" not in record and "_server_id" in record:
        record = _unflatten_record(record)
    if record.get("responses", {}) is None:  # as the server gives a record without any
        record = {**record, "responses": {}}
    try:
        return check_record(record, {"fields": dict, "responses": dict}, TITLE)
    except BadRow as error:
        raise BadRow(f"{error}; choose {EXPORT_ADVICE}") from None


def _unflatten_record(flat_record: Record) -> Record:
    """Return a flat record in the form that `to_json` writes.

    Texts and conversations become fields, other values metadata. A flat record does not distinguish
    texts in its metadata from fields.
    """
    answers: dict[str, dict[str, Any]] = {"responses": {}, "suggestion": {}}
    fields: Record = {}
    metadata: Record = {}
    vectors: Record = {}
    for name, value in flat_record.items():
        if match := _FLAT_COLUMN.fullmatch(name):
            answers[match[2]].setdefault(match[1], {})[match[3] or "value"] = value
        elif name == ROW_KEY or not (isinstance(value, str) or convert_turns(value)):
            # Without `isinstance`, since whole numbers and booleans are metadata.
            is_vector = isinstance(value, list) and all(type(values) is float for values in value)
            (vectors if value and is_vector else metadata)[name] = value
        elif name not in _OWN_COLUMNS:
            fields[name] = value
    return {
        "id": flat_record.get("id"),
        "fields": fields,
        "metadata": omit_keys(metadata, _OWN_COLUMNS),
        "vectors": vectors,
        "responses": {
            name: _combine_responses(name, values) for name, values in answers["responses"].items()
        },
        "suggestions": {
            name: {
                **values,
                "value": _read_suggestion(values["value"], answers["responses"].get(name, {})),
            }
            for name, values in answers["suggestion"].items()
            if values.get("value") is not None
        },
    }


def _read_suggestion(value: Any, responses: Mapping[str, Any]) -> Any:
    """Return the value of a suggestion; None if it may be the number of a label.

    `to_datasets` writes suggested labels as numbers, without their names.
    """
    is_rating = any(isinstance(answer, int) for answer in responses.get("value") or ())
    if isinstance(value, int) and not is_rating:
        return None
    return value


def _combine_responses(question: str, lists: Mapping[str, Any]) -> list[Record]:
    """Return the responses to a question from its lists of values, users and statuses.

    Raises BadRow.
    """
    values, users, statuses = (
        lists.get(list_name) or [] for list_name in ("value", "users", "status")
    )
    # The three lists belong together by place only.
    if not len(values) == len(users) == len(statuses):
        raise BadRow(f"`{question}.responses` has as many values as users and statuses in Argilla")
    responses = []
    for value, user, status in zip(values, users, statuses, strict=True):
        responses.append({"value": value, "user_id": user, "status": status})
    return responses


def build_record(item: Item) -> Record:
    """Return a record that suggests the settled label or, without one, the model's answer.

    Argilla refuses responses of people it does not know, so votes are only in the metadata.
    """
    # What people have settled goes before what a model said.
    answer, agent = item.label, None
    if item.label is None:
        answer, agent = item.prediction, item.model
    suggestion = {"value": answer, "score": None, "agent": agent}
    return {
        "id": item.uid,
        "fields": dict(item.texts),
        "metadata": {ROW_KEY: item.row_json},
        "suggestions": {} if answer is None else {item.answer_field: suggestion},
        "responses": {},
        "vectors": {},
    }


def _read_votes(
    question: str, responses: Any, left_out_counts: LeftOutCounts, note_counts: LeftOutCounts
) -> list[Record]:
    if not isinstance(responses, list):
        raise BadRow(f"`responses.{question}` is no list; {TITLE} has one there")
    votes = []
    for number, response in enumerate(responses, 1):
        location = f"responses.{question}[{number}]"
        check_record(response, {}, TITLE, location)
        status = response.get("status")
        # Drafts and discarded responses are no votes.
        if (status or SUBMITTED_STATUS) != SUBMITTED_STATUS:
            left_out_counts[f"responses that are {status}"] += 1
            continue
        # The default of 0 stands for a missing value, which `_read_answer` then refuses.
        if response.get("value", 0) in (None, "", []):
            left_out_counts[EMPTY_ANSWERS] += 1
            continue
        answer = _read_answer(response.get("value"), f"{location}.value")
        check_record(response, {"user_id": str}, TITLE, location)
        if not status:
            note_counts[NO_STATUS_NOTE] += 1
        is_verdict = question == VERDICT_QUESTION and answer in VERDICTS
        votes.append(build_vote(response["user_id"], answer, is_verdict=is_verdict))
    return votes


def _read_answer(value: Any, location: str) -> str:
    """Return the value as a single answer. Raises BadRow.

    location: the value's position in the record, for messages.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadRow(
            f"`{location}` is neither text nor number; Argilla's labels, ratings and texts come "
            "in, and several labels, rankings and spans do not"
        )
    return format_answer(value)


def _find_prediction(
    suggestions: Any, left_out_counts: LeftOutCounts, answered_questions: Container[str]
) -> Record | None:
    """Return an agent's suggestion as prediction, for the question that people answered.

    If they answered none, the only question with a suggestion counts. Returns None if several
    remain, because it is unclear which one counts.
    """
    suggestions_by_question = {}
    if isinstance(suggestions, dict):
        suggestions_by_question = dict(suggestions)
    if answered_questions:
        other_questions = []
        for name in suggestions_by_question:
            if name not in answered_questions:
                other_questions.append(name)
        if other_questions:
            left_out_counts[OTHER_PREDICTIONS] += len(other_questions)
        suggestions_by_question = {
            name: suggestion
            for name, suggestion in suggestions_by_question.items()
            if name in answered_questions
        }
    if len(suggestions_by_question) > 1:
        left_out_counts["suggestions for several questions"] += len(suggestions_by_question)
        return None
    for question, suggestion in suggestions_by_question.items():
        value = check_record(suggestion, {}, TITLE, f"suggestions.{question}").get("value")
        if isinstance(value, bool) or not isinstance(value, str | int):
            left_out_counts["suggestions that are neither a text nor a rating"] += 1
            continue
        model = suggestion.get("agent") or "argilla"
        return {"model": model, "label": format_answer(value), "probs": None}
    return None


FORMAT = Format(
    TITLE,
    parse_row,
    make_json_reader(),
    file_pattern=r"^(?!(.*/)?(\.argilla/|dataset_info\.json$|state\.json$)).*\.jsonl?$",
    export_advice=EXPORT_ADVICE,
    select_answers=select_answers,
    build_record=build_record,
    hidden_parts=("author", "votes", "verdicts", "corrections", "models", "metadata"),
    keeps_rows=True,
    frame=ARRAY_FRAME,
)
