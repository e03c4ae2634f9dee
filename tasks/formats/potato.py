"""Potato: the items of its data file, and what people said of them in its output.

Layout: docs/data-export/export_formats.md of davidjurgens/potato. Items are JSON lines with `id`
and `text`. Answers are `annotations.jsonl` of its export `jsonl`, one line for each item and
person, or, of its first version, `<person>/annotated_instances.jsonl`, which have the text too.
The first version's page sends a choice by its name, with `<question>:::<name>` or the key that
chooses it as value (`potato/server_utils/schemas/radio.py`), and a point of a scale as `scale_4`.
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
"""Inputs for text."""
VALUE_INPUTS = {"slider", "number", "select-one", "selection", "rank_order", "decision"}.union(
    TEXT_INPUTS
)
"""Inputs whose value is the answer, whatever it is."""
FIRST_VERSION_KEY = "label_annotations"
"""Where the first version has answers."""
EXPORT_ADVICE = (
    "Export `jsonl` (python -m potato.export --config config.yaml --format jsonl --output .), or "
    "of Potato's first version give the output folder"
)
Question = tuple[str, str]
"""Where answers stand in a record, and the question's name."""
SPAN_KEYS = ("spans", "links", "span_annotations", "link_annotations")
"""Answers that are no labels."""
ANSWER_FIELDS = {"behavioral_data", "instance_id", "user_id", "annotator_origin"}.union(
    LABEL_KEYS, SPAN_KEYS
)
_SCALE_POINT = re.compile("scale_([0-9]+)")
_HOUSEKEEPING = (
    "annotation_history|device_visits|phase_responses|typing_|agreement|keystroke|reliability"
)


def row_of_all(parts: Iterable[Part]) -> Callable[[Sequence[Part]], Record | None]:
    """Return `row`, bound to the questions whose values differ between answers."""
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
    return partial(row, entered_questions=entered_questions)


def row(parts: Sequence[Part], entered_questions: Container[Question] = ()) -> Record:
    """Return an item. Each person's answer is a vote; other fields of the item are metadata.

    entered_questions: those in which people enter values, such as a slider with a custom name.
    """
    item: Record = {}
    votes, left_out_counts, is_free, answered_questions = (
        [],
        LeftOutCounts(),
        False,
        dict[str, None](),
    )
    for name, record in _skip_repeats(parts):
        _refuse_others(record)
        if any(key in record for key in LABEL_KEYS):
            new_votes = _read_votes(name, record, left_out_counts, entered_questions)
            votes += new_votes
            is_free = is_free or _is_typed(record)
            answered_questions |= dict.fromkeys(_find_answers(record)[1] if new_votes else ())
        if not any(key in record for key in TEXT_KEYS + LABEL_KEYS):
            record = _rename_text(record)
        if any(key in record for key in TEXT_KEYS):
            if any(record[key] != item[key] for key in TEXT_KEYS if key in record and key in item):
                raise BadRow(f"the id {same(item)} has another text in {name}; give one of them")
            # The first file that has a field counts.
            item = {**record, **item}
    if not item:
        raise BadRow("nothing has its text; give a folder that holds Potato's data file, too")
    about = {
        LEFT_OUT_KEY: left_out_counts,
        FREE_TEXT_KEY: is_free,
        QUESTIONS_KEY: tuple(answered_questions),
    }
    kept_fields = parse_stored_row(item.get(ROW_KEY))
    if kept_fields:
        return {
            **kept_fields,
            "validations": list(kept_fields.get("validations", [])) + votes,
            **about,
        }
    text = item.get("text", item.get("displayed_text"))
    # Whatever is neither text nor answer tells of the item.
    item_keys = ANSWER_FIELDS.union(TEXT_KEYS, ["id"])
    return {
        "uid": same(item),
        "input": {"text": check_record({"text": text}, {"text": str}, TITLE)["text"]},
        "validations": votes,
        "metadata": omit_keys(item, item_keys),
        **about,
    }


def only(record: Record, question: str) -> Record:
    """Return the record without answers to other questions."""
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


def same(record: Record) -> str:
    """Return the id of the item that a record describes."""
    for key in ("instance_id", "id"):
        if key in record:
            return str(record[key])
    return str(record[_find_id_key(record)])


def _find_id_key(record: Record) -> str:
    """Return the only field whose name ends in "id": Potato's `id_key`. Raises BadRow."""
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
    texts = []
    for name, value in record.items():
        if isinstance(value, str) and name not in (key, ROW_KEY):
            texts.append(name)
    # With several it would be a guess which one people read.
    if len(texts) != 1:
        hint = ""
        if texts:
            hint = f", and any of {', '.join(texts)} may be it"
        raise BadRow(f"there is no `text`{hint}; call the field with the text `text`")
    rest = omit_keys(record, {key, texts[0]})
    return {"id": record[key], "text": record[texts[0]], **rest}


def write(item: Item) -> Record:
    """Return an item of a data file. `pre_annotation` can show the settled label."""
    predictions = {}
    if item.label is not None:
        predictions = {item.answer: item.label}
    return {"id": item.uid, "text": item.text, "predictions": predictions, ROW_KEY: item.row_json}


def _skip_repeats(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the records, with each answer of a person only once.

    The first version writes one file for everybody and one per person, and a folder may contain
    several exports.
    """
    seen_answers = set()
    for name, record in parts:
        key, answers = _find_answers(record)
        who = _find_person(name, record)
        if key and who:
            answer = who, json.dumps(answers, sort_keys=True)
            # The same person with the same answer: another file of the output.
            if answer in seen_answers:
                continue
            seen_answers.add(answer)
        yield name, record


def _find_answers(record: Record) -> tuple[str, Record]:
    """Return the key of a record's answers, and the answers by question; ("", {}) without any."""
    key = next((key for key in LABEL_KEYS if isinstance(record.get(key), dict)), "")
    return key, record[key] if key else {}


def _find_person(name: str, record: Record) -> str | None:
    return record.get("user_id") or _parse_person(name)


def _refuse_others(record: Record) -> None:
    """Raise BadRow for answers that mark or link text, FileError for other exports.

    Potato's tables have a column for each choice.
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
    """Return a person's vote: the chosen label or the entered value of one question."""
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


def _is_typed(record: Record) -> bool:
    """Return whether the answers are in text inputs."""
    names: list[str] = []
    for inputs in _find_answers(record)[1].values():
        names += inputs
    return any(name in TEXT_INPUTS for name in names)


def _read_answer(question: str, name: str, value: Any, *, is_entered: bool) -> str:
    """Return the answer in an input of this name; "" without one.

    A choice has as value its own name or true. In Potato's first version the value may be the name
    prefixed by the question, or the key that chooses it. Other inputs contain what people entered:
    `slider`, `number`, `select-one`, `free_response`, `text_box`, the rows of a multirate.
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
    """Return the person in whose folder a file of Potato's first version is."""
    file = PurePosixPath(name)
    is_answers = file.name.startswith("annotated_instances")
    if is_answers:
        # The first version names each folder after the person who annotated.
        return file.parent.name or None
    return None


def read(file: BufferedReader) -> Iterator[Numbered]:
    """Yield the records of JSON lines, a JSON list, or a data file that is a table."""
    yield from (make_json_reader() if looks_like_json(file) else make_table_reader())(file)


FORMAT = Format(
    TITLE,
    row,
    read,
    files=rf"^(?!(.*/)?[^/]*({_HOUSEKEEPING})[^/]*$).*"
    r"(\.jsonl(\.gz)?|(^|/)annotated_instances\.json"
    r"|(^|/)(?![^/]*(annotat|config|state|schema|survey|package))[^/]+\.(csv|tsv|json))$",
    answers=r"(^|/)(annotations\.jsonl|annotated_instances\.jsonl?)(\.gz)?$",
    others=r"(^|/)((annotations|annotated_instances)\.(csv|tsv|parquet)|user_state\.json)$",
    instead=EXPORT_ADVICE,
    only=only,
    same=same,
    row_of_all=row_of_all,
    write=write,
    hides=("author", "votes", "verdicts", "corrections", "models", "metadata"),
    keeps=True,
)
