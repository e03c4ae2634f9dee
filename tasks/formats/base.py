"""Format definitions: how files are read, what records contain, and what they become."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BufferedReader
from typing import Any, NamedTuple

from core.text.words import find_label, format_label, gettext_noop
from tasks.config.field_types.tool_calls import find_call_error, read_message
from tasks.line_files import BadRow, parse_strict_json

Record = dict[str, Any]
Part = tuple[str, Record]
"""A file's name and a record in it."""
Numbered = tuple[int, bytes]
"""A record's number in its file, and the record as JSON."""
Shape = Mapping[str, type | tuple[type, ...]]
TYPE_DESCRIPTIONS: Mapping[type, str] = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
VERDICTS = ("correct", "incorrect", "flagged", "cannot_tell")
PRIVATE_NAMES = re.compile(
    "annotator|worker|assignment|hit_?id|agent|mephisto|prolific|user|e-?mail", re.I
)
"""Names of metadata about people, as crowd-working platforms write them."""
ROW_KEY = "dynabench"
"""The key under which an export stores the whole row as JSON, for reimport."""
NOTES_KEY = "noted"
"""The key of a row under which a format counts facts that the reader should know.

Not a field of the stored row.
"""
LEFT_OUT_KEY = "left_out"
"""The key of a row under which a format counts what it leaves out, by description.

Not a field of the stored row.
"""
FREE_TEXT_KEY = "is_free"
"""The key of a row under which a format says that people typed the answers.

Not a field of the stored row.
"""
QUESTIONS_KEY = "asked"
"""The key of a row under which a format names the questions that its votes answer.

Not a field of the stored row.
"""
PART_DESCRIPTIONS: Mapping[str, str] = {
    "author": gettext_noop("the author's answer"),
    "settled": gettext_noop("the decision of the votes"),
    "votes": gettext_noop("votes for a label"),
    "verdicts": gettext_noop("votes such as “correct”"),
    "corrections": gettext_noop("corrections"),
    "models": gettext_noop("the models' answers"),
    "metadata": gettext_noop("metadata"),
    "fields": gettext_noop("fields that this format doesn't have"),
}
"""Descriptions of what an item may have in addition to its texts."""
EMPTY_ANSWERS = "answers that are empty"
OTHER_PREDICTIONS = "predictions for other questions"
LeftOutCounts = Counter[str]
CHAT_ROLES = ("user", "assistant", "tool")
MESSAGE_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    # The name of a tool stands in its call, too. A person's name would be lost.
    "tool": {"role", "content", "tool_call_id", "name"},
}
"""The keys that a chat model's message of each role may have."""
_encode_json = json.JSONEncoder(ensure_ascii=False).encode


class Terms(NamedTuple):
    """The terms of data: licence, citation and origin."""

    license: str = ""
    citation: str = ""
    origin: str = ""


UNKNOWN_TERMS = Terms()
ARRAY_FRAME = ("[", "]")


class RecordLine(NamedTuple):
    """A record of a file, with its position, its text, and its row or an error message.

    left_out_counts: counts of what is not imported, by description. has_free_text: whether answers
    are free text instead of labels. questions: the questions that its votes answer. note_counts:
    counts of facts that the reader should know, by description.
    """

    position: str
    text: bytes
    row: Mapping[str, Any] | None
    error: str = ""
    left_out_counts: Mapping[str, int] = {}
    has_free_text: bool = False
    questions: Sequence[str] = ()
    note_counts: Mapping[str, int] = {}


class Vote(NamedTuple):
    """A person's vote on a row: a label or, if `is_verdict`, one of VERDICTS on the author's label.

    worker: the person; None if unknown. correction: the right answer that they typed, or "".
    steps: their answers about the steps of a trace, by the number of the turn.
    """

    worker: str | None
    label: str
    is_verdict: bool = False
    correction: str = ""
    steps: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Item:
    """A row for export to a tool.

    texts: what people read, by field. answer_field: the name of the field that people fill in.
    label: the settled label, or None. model, prediction: a model's name and its answer. row_json:
    the row itself. is_choice: whether answers are labels. spans: of an imported trace, the id of
    the span of each turn. step_labels: the decisions about its steps, by the number of the turn.
    """

    uid: str
    texts: Mapping[str, str]
    answer_field: str
    label: str | None
    model: str | None
    prediction: str | None
    votes: Sequence[Vote]
    row_json: str
    is_choice: bool
    spans: Sequence[str] = ()
    step_labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return all texts as one; if there are several, each is prefixed with its field name."""
        # A single text needs no name in front.
        if len(self.texts) == 1:
            return next(iter(self.texts.values()))
        return "\n".join(f"{name}: {text}" for name, text in self.texts.items())


@dataclass(frozen=True, slots=True)
class Format:
    """A data format. Its name is that of its module.

    parse_row: returns the imported row for all records of one item, each given with its file name.
    The row has the fields of docs/operators.md, "Importing history", with votes in the order of
    voting. It may also have LEFT_OUT_KEY, NOTES_KEY, FREE_TEXT_KEY and QUESTIONS_KEY. Returns None
    if the records are only about items that the file lacks. Raises BadRow, or FileError if no
    record can be read.
    read_records: yields the numbered records of a file; raises FileError.
    file_pattern: a pattern for the names of files with records, in a folder or an archive.
    export_advice: which export to choose in the tool, if a file must be JSON.
    answer_file_pattern: a pattern for the names of files with answers that are read.
    unread_file_pattern: a pattern for the names of files with answers that are not read.
    missing_answers_advice: what to do if a folder has only files that match `unread_file_pattern`.
    select_answers: returns a record with only the answers to one question.
    find_item_id: returns the id of a record's item, if several records may belong to one item.
    bind_row_parser: returns `parse_row`, given all records, if a record's meaning depends on the
    others; raises FileError.
    build_record: returns an item in this format, or several records about it; None if the format
    cannot express it.
    hidden_parts: the keys of PART_DESCRIPTIONS that are only in ROW_KEY, or not exported at all.
    keeps_rows: whether ROW_KEY is written.
    frame: the text before and after all records, if they form one JSON value; empty for one record
    per line.
    columns: the columns of a CSV table.
    required_fields: the fields that a task must have for an export.
    """

    title: str
    parse_row: Callable[[Sequence[Part]], Record | None]
    read_records: Callable[[BufferedReader], Iterator[Numbered]]
    file_pattern: str = r"\.jsonl(\.gz)?$"
    export_advice: str = ""
    answer_file_pattern: str = ""
    unread_file_pattern: str = ""
    missing_answers_advice: str = ""
    hidden_parts: tuple[str, ...] = ()
    keeps_rows: bool = False
    select_answers: Callable[[Record, str], Record] | None = None
    find_item_id: Callable[[Record], str] | None = None
    bind_row_parser: (
        Callable[[Iterable[Part]], Callable[[Sequence[Part]], Record | None]] | None
    ) = None
    build_record: Callable[[Item], Record | Sequence[Record] | None] | None = None
    frame: tuple[str, str] = ("", "")
    columns: tuple[str, ...] = ()
    required_fields: tuple[str, ...] = ()
    terms: Terms = UNKNOWN_TERMS

    @property
    def hidden_descriptions(self) -> tuple[str, ...]:
        """Return descriptions of what an export in this format does not show."""
        return tuple(PART_DESCRIPTIONS[name] for name in self.hidden_parts)


def check_record(record: Any, shape: Shape, title: str, location: str = "") -> Record:
    """Return the record if it has these fields with these types. Raises BadRow.

    title: the format's title. location: the position of the record within a larger one. Both are
    for messages.
    """
    if not isinstance(record, dict):
        raise BadRow(
            f"{location or 'the record'} is {_describe_type(record)}; {title} has an object there"
        )
    for name, expected in shape.items():
        path = name
        if location:
            path = f"{location}.{name}"
        expected_types = expected if isinstance(expected, tuple) else (expected,)
        # Several kinds may share a word, which is said once.
        expected_words = " or ".join(
            dict.fromkeys(TYPE_DESCRIPTIONS[expected_type] for expected_type in expected_types)
        )
        if name not in record:
            raise BadRow(f"there is no `{path}`; {title} has {expected_words} there")
        # To Python True is a number, so it is refused where no boolean is expected.
        if not isinstance(record[name], expected_types) or (
            isinstance(record[name], bool) and bool not in expected_types
        ):
            raise BadRow(
                f"`{path}` is {_describe_type(record[name])}; {title} has {expected_words} there"
            )
    return record


def translate_value(value: Any, words: Mapping[str, str], name: str, title: str) -> str:
    """Return our term for a value of the format. Raises BadRow.

    words: our terms by value. name, title: the field and the format, for messages.
    """
    code = find_label(value, tuple(words))
    if code is None:
        raise BadRow(f"`{name}` is {json.dumps(value)}; {title} has {', '.join(words)}")
    return words[code]


def omit_keys(record: Record, names: Container[str]) -> Record:
    """Return the record without the keys in `names`."""
    return {name: value for name, value in record.items() if name not in names}


def parse_stored_row(text: Any) -> Record:
    """Return the row that an export stored as JSON; {} if there is none. Raises BadRow."""
    if not text:
        return {}
    row = None
    if isinstance(text, str):
        row = parse_strict_json(text)
    if not isinstance(row, dict) or "uid" not in row:
        raise BadRow(f"`{ROW_KEY}` is not as it was exported; export again, or delete it")
    return row


def split_fields(data: Record) -> Record:
    """Return a record's fields as context and input: conversations are context, others are input.

    Lists and objects that are not conversations become JSON text.
    """
    context: Record = {}
    inputs: Record = {}
    for name, value in data.items():
        if turns := convert_turns(value):
            context[name] = turns
        else:
            # Fields hold texts and numbers, so that nested values are kept as JSON.
            inputs[name] = _encode_json(value) if isinstance(value, list | dict) else value
    return {"context": context, "input": inputs}


def convert_turns(value: Any) -> list[Record]:
    """Return a conversation in the format of chat models as our turns; [] for other values."""
    if not isinstance(value, list):
        return []
    turns: list[Record] = []
    for index, message in enumerate(value):
        roles: tuple[str, ...] = CHAT_ROLES
        # Only a conversation's first turn may be the instruction.
        if index == 0:
            roles = ("system", *CHAT_ROLES)
        if not isinstance(message, dict) or message.get("role") not in roles:
            return []
        if not {"role", "content"} <= message.keys() <= MESSAGE_KEYS[message["role"]]:
            return []
        turn = read_message(message)
        if turn is None:
            return []
        # An empty turn cannot be stored, and then the whole value stays JSON.
        if not turn["text"].strip() and turn["role"] != "tool" and "calls" not in turn:
            return []
        turns.append(turn)
    if find_call_error(turns):
        return []
    return turns


def hash_record(record: Record) -> str:
    """Return an id for a record that has none: 32 hex digits, the same for equal records."""
    # Sorted, because tools write the keys of equal records in any order.
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]


def format_answer(value: Any) -> str:
    """Return an answer in the form of a label, so that a whole number has no `.0`."""
    return format_label(value) or str(value)


def build_vote(worker: Any, answer: str, *, is_verdict: bool = False) -> Record:
    """Return a vote in the form of a row of imported history.

    worker: the person; None or "" if unknown. is_verdict: whether the answer is a verdict.
    """
    worker_name = None
    if worker not in (None, ""):
        worker_name = str(worker)
    return {"worker": worker_name, "verdict" if is_verdict else "label": answer}


def pop_correction(corrections: list[tuple[Any, str]], worker: Any) -> str:
    """Remove and return the person's first correction; "" if there is none.

    corrections: pairs of a person and the answer that this person typed.
    """
    own_entry = next((entry for entry in corrections if entry[0] == worker), None)
    if own_entry is None:
        return ""
    # Each correction belongs to one vote, and a person may have typed several.
    corrections.remove(own_entry)
    return own_entry[1]


def find_timestamp(record: Record, *names: str) -> float:
    """Return the first valid time in these fields, in seconds since 1970; 0 if there is none."""
    for name in names:
        try:
            return datetime.fromisoformat(record[name]).timestamp()
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return 0.0


def _describe_type(value: Any) -> str:
    return TYPE_DESCRIPTIONS.get(type(value), "something else")
