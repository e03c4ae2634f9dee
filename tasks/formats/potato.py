"""Potato: the items of its data file, and people's answers in its output.

Format: docs/data-export/export_formats.md of davidjurgens/potato. Items are JSON lines with `id`
and `text`. Answers are in `annotations.jsonl` of its export `jsonl`, with one line per item and
person. In the first version they are in `<person>/annotated_instances.jsonl`, with the text. There,
a choice has its name as key. Its value is `<question>:::<name>` or the key on the keyboard that
chooses it (`potato/server_utils/schemas/radio.py`). A point of a scale is `scale_4`.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from io import BufferedReader
from pathlib import PurePosixPath
from typing import Any

from tasks.formats.base import (
    EMPTY_ANSWERS,
    FREE_TEXT_KEY,
    LEFT_OUT_KEY,
    QUESTIONS_KEY,
    ROW_KEY,
    Format,
    Item,
    LeftOutCounts,
    Numbered,
    Part,
    Record,
    build_vote,
    check_record,
    format_answer,
    omit_keys,
    parse_stored_row,
)
from tasks.formats.reading import looks_like_json, make_json_reader, make_table_reader
from tasks.line_files import BadRow, FileError

TITLE = "Potato"
LABEL_KEYS = ("labels", "label_annotations")
TEXT_KEYS = ("text", "displayed_text")
TEXT_INPUTS = ("text_box", "free_response")
"""Names of text inputs."""
VALUE_INPUTS = {"slider", "number", "select-one", "selection", "rank_order", "decision"}.union(
    TEXT_INPUTS
)
"""Names of inputs whose value is the answer."""
FIRST_VERSION_KEY = "label_annotations"
"""The key under which Potato's first version has answers."""
EXPORT_ADVICE = (
    "Export `jsonl` (python -m potato.export --config config.yaml --format jsonl --output .), or "
    "of Potato's first version give the output folder"
)
Question = tuple[str, str]
"""The key of the answers in a record, and the question's name."""
SPAN_KEYS = ("spans", "links", "span_annotations", "link_annotations")
"""Keys of answers that are not labels."""
ANSWER_FIELDS = {"behavioral_data", "instance_id", "user_id", "annotator_origin"}.union(
    LABEL_KEYS, SPAN_KEYS
)
_SCALE_POINT = re.compile("scale_([0-9]+)")
_HOUSEKEEPING_PATTERN = (
    "annotation_history|device_visits|phase_responses|typing_|agreement|keystroke|reliability"
)


def bind_row_parser(parts: Iterable[Part]) -> Callable[[Sequence[Part]], Record | None]:
    """Return `parse_row`, bound to the questions in which people enter values.

    These are the questions in which the value of an input differs between answers.
    """
    values: dict[tuple[Question, str], Any] = {}
    # Only all records together tell a choice from what was entered.
    entered_questions: set[Question] = set()
    for _, record in parts:
        key, answers = _find_answers(record)
        for question, inputs in answers.items():
            for name, value in inputs.items() if isinstance(inputs, dict) else ():
                # A choice has the same value whoever makes it. What differs was entered.
                if values.setdefault(((key, question), name), value) != value:
                    entered_questions.add((key, question))
    return partial(parse_row, entered_questions=entered_questions)


def parse_row(parts: Sequence[Part], entered_questions: Container[Question] = ()) -> Record:
    """Return an item as a row. Each answer is a vote; the item's other fields are metadata.

    entered_questions: the questions in which people enter values, such as a slider with a custom
    name.
    """
    item: Record = {}
    votes, left_out_counts, has_typed_answers, answered_questions = (
        [],
        LeftOutCounts(),
        False,
        dict[str, None](),
    )
    for name, record in _skip_repeats(parts):
        _refuse_other_exports(record)
        if any(key in record for key in LABEL_KEYS):
            new_votes = _read_votes(name, record, left_out_counts, entered_questions)
            votes += new_votes
            has_typed_answers = has_typed_answers or _has_typed_answer(record)
            answered_questions |= dict.fromkeys(_find_answers(record)[1] if new_votes else ())
        if not any(key in record for key in TEXT_KEYS + LABEL_KEYS):
            record = _rename_text(record)
        if any(key in record for key in TEXT_KEYS):
            if any(record[key] != item[key] for key in TEXT_KEYS if key in record and key in item):
                raise BadRow(
                    f"the id {find_item_id(item)} has another text in {name}; give one of them"
                )
            # The first file that has a field counts.
            item = {**record, **item}
    if not item:
        raise BadRow("nothing has its text; use a folder that contains Potato's data file, too")
    row_metadata = {
        LEFT_OUT_KEY: left_out_counts,
        FREE_TEXT_KEY: has_typed_answers,
        QUESTIONS_KEY: tuple(answered_questions),
    }
    kept_fields = parse_stored_row(item.get(ROW_KEY))
    if kept_fields:
        return {
            **kept_fields,
            "validations": list(kept_fields.get("validations", [])) + votes,
            **row_metadata,
        }
    text = item.get("text", item.get("displayed_text"))
    # Whatever is neither text nor answer tells of the item.
    item_keys = ANSWER_FIELDS.union(TEXT_KEYS, ["id"])
    return {
        "uid": find_item_id(item),
        "input": {"text": check_record({"text": text}, {"text": str}, TITLE)["text"]},
        "validations": votes,
        "metadata": omit_keys(item, item_keys),
        **row_metadata,
    }


def select_answers(record: Record, question: str) -> Record:
    """Return the record with only the answers to `question`. Its other fields are kept."""
    answers = {}
    for key in LABEL_KEYS + SPAN_KEYS:
        if isinstance(record.get(key), dict):
            answers[key] = record[key]
    own_answers = {}
    for key, answers_by_question in answers.items():
        own_answers[key] = {
            name: answer for name, answer in answers_by_question.items() if name == question
        }
    return {**record, **own_answers}


def find_item_id(record: Record) -> str:
    """Return the id of the item that a record describes."""
    for key in ("instance_id", "id"):
        if key in record:
            return str(record[key])
    return str(record[_find_id_key(record)])


def _find_id_key(record: Record) -> str:
    """Return the only field whose name ends in "id", which is Potato's `id_key`. Raises BadRow."""
    keys = []
    for name in record:
        if name.lower().endswith("id"):
            keys.append(name)
    # With several nobody knows which one Potato counts by.
    if len(keys) != 1:
        raise BadRow("there is no `id`; call the field that Potato has as `id_key` so")
    return keys[0]


def _rename_text(record: Record) -> Record:
    """Return an item with its text under `text`. Raises BadRow.

    Potato's `text_key` may give the text another name.
    """
    if "instance_id" in record:
        raise BadRow("it has no answers as Potato's export `jsonl` has them; choose that one")
    key = "id"
    if "id" not in record:
        key = _find_id_key(record)
    text_names = []
    for name, value in record.items():
        if isinstance(value, str) and name not in (key, ROW_KEY):
            text_names.append(name)
    # With several it would be a guess which one people read.
    if len(text_names) != 1:
        hint = ""
        if text_names:
            hint = f", and any of {', '.join(text_names)} may be it"
        raise BadRow(f"there is no `text`{hint}; call the field with the text `text`")
    other_fields = omit_keys(record, {key, text_names[0]})
    return {"id": record[key], "text": record[text_names[0]], **other_fields}


def build_record(item: Item) -> Record:
    """Return an item of a data file. Potato's `pre_annotation` can show its settled label."""
    predictions = {}
    if item.label is not None:
        predictions = {item.answer_field: item.label}
    return {"id": item.uid, "text": item.text, "predictions": predictions, ROW_KEY: item.row_json}


def _skip_repeats(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the records, without repeats of a person's answer.

    The first version writes one file for everybody and one per person, and a folder may contain
    several exports.
    """
    seen_answers = set()
    for name, record in parts:
        key, answers = _find_answers(record)
        person = _find_person(name, record)
        if key and person:
            answer = person, json.dumps(answers, sort_keys=True)
            # The same person with the same answer: another file of the output.
            if answer in seen_answers:
                continue
            seen_answers.add(answer)
        yield name, record


def _find_answers(record: Record) -> tuple[str, Record]:
    """Return the key of a record's answers and the answers by question, or ("", {})."""
    key = next((key for key in LABEL_KEYS if isinstance(record.get(key), dict)), "")
    return key, record[key] if key else {}


def _find_person(name: str, record: Record) -> str | None:
    return record.get("user_id") or _parse_person(name)


def _refuse_other_exports(record: Record) -> None:
    """Raise BadRow for answers that mark or link text, and FileError for other exports.

    Other exports are, for example, Potato's tables, which have a column for each choice.
    """
    for key in SPAN_KEYS:
        if record.get(key):
            raise BadRow(f"`{key}` has answers; Potato's spans and links do not come in here")
    is_answer = "instance_id" in record and ("user_id" in record or "user" in record)
    if is_answer and not any(key in record for key in LABEL_KEYS):
        raise FileError(f"It is another of Potato's exports. {EXPORT_ADVICE}.")


def _read_votes(
    name: str,
    record: Record,
    left_out_counts: LeftOutCounts,
    entered_questions: Container[Question],
) -> list[Record]:
    """Return a person's vote, the chosen label or the entered value; [] without an answer.

    Raises BadRow if several questions are answered.
    """
    key = next(key for key in LABEL_KEYS if key in record)
    check_record(record, {key: dict}, TITLE)
    origin = record.get("annotator_origin")
    # Potato can let language models annotate, too.
    if isinstance(origin, dict) and origin.get("kind", "human") != "human":
        left_out_counts["answers of machines"] += 1
        return []
    if len(record[key]) > 1:
        raise BadRow(f"`{key}` answers {', '.join(record[key])}; name one with --question")
    answers: list[str] = []
    for question, inputs in record[key].items():
        check_record(record[key], {question: dict}, TITLE, key)
        is_entered = (
            key != FIRST_VERSION_KEY or question == "slider" or (key, question) in entered_questions
        )
        answers = []
        for input_name, value in inputs.items():
            answer = _read_answer(question, input_name, value, is_entered=is_entered)
            if answer:
                answers.append(answer)
        if len(answers) > 1:
            raise BadRow(
                f"`{key}.{question}` has {len(answers)} answers ({', '.join(inputs)}); a person "
                "gives one here"
            )
    if not answers:
        left_out_counts[EMPTY_ANSWERS] += 1
    return [build_vote(_find_person(name, record), answer) for answer in answers]


def _has_typed_answer(record: Record) -> bool:
    """Return whether the answers are in text inputs."""
    names: list[str] = []
    for inputs in _find_answers(record)[1].values():
        names += inputs
    return any(name in TEXT_INPUTS for name in names)


def _read_answer(question: str, name: str, value: Any, *, is_entered: bool) -> str:
    """Return the answer in an input of this name; "" if it is empty.

    The value of a choice is its own name or true. In Potato's first version it may be the name
    prefixed with the question, or the key that chooses it. Other inputs contain what people
    entered: `slider`, `number`, `select-one`, `free_response`, `text_box`, the rows of a multirate.
    Raises BadRow. is_entered: whether people enter values in this question.
    """
    if value in (False, None, ""):
        return ""
    if name not in VALUE_INPUTS:
        if not is_entered and (point := _SCALE_POINT.fullmatch(name)):
            return point[1]
        is_key = not is_entered and isinstance(value, str) and len(value) == 1
        if value is True or value in ("true", f"{question}:::{name}") or is_key:
            return name
    # Inputs of other kinds hold lists and objects, which are no single answer.
    if not isinstance(value, str | int | float):
        raise BadRow(f"the value of `{name}` is neither text, number, true nor false")
    return format_answer(value).strip()


def _parse_person(name: str) -> str | None:
    """Return the person whose folder contains this file, in Potato's first version; else None."""
    file = PurePosixPath(name)
    is_answer_file = file.name.startswith("annotated_instances")
    if is_answer_file:
        # The first version names each folder after the person who annotated.
        return file.parent.name or None
    return None


def read_records(file: BufferedReader) -> Iterator[Numbered]:
    """Yield the numbered records of JSON lines, a JSON list or a table."""
    yield from (make_json_reader() if looks_like_json(file) else make_table_reader())(file)


FORMAT = Format(
    TITLE,
    parse_row,
    read_records,
    file_pattern=rf"^(?!(.*/)?[^/]*({_HOUSEKEEPING_PATTERN})[^/]*$).*"
    r"(\.jsonl(\.gz)?|(^|/)annotated_instances\.json"
    r"|(^|/)(?![^/]*(annotat|config|state|schema|survey|package))[^/]+\.(csv|tsv|json))$",
    answer_file_pattern=r"(^|/)(annotations\.jsonl|annotated_instances\.jsonl?)(\.gz)?$",
    unread_file_pattern=r"(^|/)((annotations|annotated_instances)\.(csv|tsv|parquet)|user_state\.json)$",
    missing_answers_advice=EXPORT_ADVICE,
    select_answers=select_answers,
    find_item_id=find_item_id,
    bind_row_parser=bind_row_parser,
    build_record=build_record,
    hidden_parts=("author", "votes", "verdicts", "corrections", "models", "metadata"),
    keeps_rows=True,
)
