"""What a layout is: how its files are read, what its records hold, and what becomes of them."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from typing import Any, NamedTuple

from core.text.words import gettext_noop, label_of, label_text
from tasks.line_files import BadRow, strict_json

Record = dict[str, Any]
Part = tuple[str, Record]
"""The name of a file and a record in it."""
Numbered = tuple[int, bytes]
"""The number of a record in its file, and the record as JSON."""
Shape = Mapping[str, type | tuple[type, ...]]
KINDS: Mapping[type, str] = {
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
"""Names of metadata that tell of people, as platforms of workers write them."""
ROW_KEY = "dynabench"
"""Where an export for a tool keeps the row itself, as JSON, so that it comes back whole."""
NOTES_KEY = "noted"
"""Where a layout's row counts what the reader should know of it. No field of the row itself."""
LEFT_OUT_KEY = "left_out"
"""Where a layout's row counts what it does not keep, by its name. No field of the row itself."""
FREE_TEXT_KEY = "is_free"
"""Where a layout's row says that people typed its answers. No field of the row itself."""
QUESTIONS_KEY = "asked"
"""Where a layout's row names the questions that its votes answer. No field of the row itself."""
PART_DESCRIPTIONS: Mapping[str, str] = {
    "author": gettext_noop("the author's answer"),
    "settled": gettext_noop("what votes have settled"),
    "votes": gettext_noop("votes for a label"),
    "verdicts": gettext_noop("votes such as “correct”"),
    "corrections": gettext_noop("corrections"),
    "models": gettext_noop("the answers of models"),
    "metadata": gettext_noop("metadata"),
    "fields": gettext_noop("fields that the layout does not have"),
}
"""What an item holds besides the texts that a layout has, in words."""
EMPTY_ANSWERS = "answers that are empty"
OTHER_PREDICTIONS = "predictions for other questions"
LeftOutCounts = Counter[str]
CHAT_ROLES = ("user", "assistant")
_encode_json = json.JSONEncoder(ensure_ascii=False).encode


class Terms(NamedTuple):
    """The terms of data: its licence, how to cite it, and its origin."""

    license: str = ""
    citation: str = ""
    origin: str = ""


UNKNOWN_TERMS = Terms()
ARRAY_FRAME = ("[", "]")


class RecordLine(NamedTuple):
    """A record: its position, its text, and its row or an error message.

    left: counts of what is not imported, by description. is_free: whether answers are free text
    rather than labels. questions: those that its votes answer. noted: counts of what the reader
    should know, by description.
    """

    place: str
    text: bytes
    row: Mapping[str, Any] | None
    wrong: str = ""
    left: Mapping[str, int] = {}
    is_free: bool = False
    questions: Sequence[str] = ()
    noted: Mapping[str, int] = {}


class Vote(NamedTuple):
    """A person's vote on a row: a label, or one of VERDICTS on the author's label."""

    who: str | None
    label: str
    is_verdict: bool = False
    correction: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A row for export to a tool.

    texts: what people read, by field. answer: the field that people fill. label: the settled label;
    None without one. model, prediction: a model's name and its answer. row_json: the row itself.
    is_choice: whether answers are labels.
    """

    uid: str
    texts: Mapping[str, str]
    answer: str
    label: str | None
    model: str | None
    prediction: str | None
    votes: Sequence[Vote]
    row_json: str
    is_choice: bool

    @property
    def text(self) -> str:
        """Return all texts as one; several are each prefixed with their field name."""
        # A single text needs no name in front.
        if len(self.texts) == 1:
            return next(iter(self.texts.values()))
        return "\n".join(f"{name}: {text}" for name, text in self.texts.items())


@dataclass(frozen=True, slots=True)
class Format:
    """A layout by its name.

    row: returns the imported row for all records of one item, each given with its file name. The
    row has the fields of docs/operators.md, "Importing history", with votes in the order in which
    people gave them, and under LEFT_OUT_KEY what is not imported, under NOTES_KEY what should be
    known, under FREE_TEXT_KEY whether people type and under QUESTIONS_KEY the questions. None if
    the records are only about items that the file lacks. Raises BadRow, or FileError if no record
    can be read.
    read: yields the numbered records of a file; raises FileError.
    files: pattern of the names of files with records, in a folder or an archive.
    choose: which export to choose in the tool, if a file must be JSON.
    answers, others: patterns of the names of files with answers that are read, and that are not.
    instead: what to do if a folder has only the latter.
    only: returns a record with the answers to one question.
    same: returns the id of a record's item, if several records belong to one item.
    row_of_all: returns `row`, given all records, if a record's meaning depends on the others;
    raises FileError.
    write: returns an item in this layout; None if the layout cannot express it.
    hides: the keys of PART_DESCRIPTIONS that are only in ROW_KEY, or not exported at all.
    keeps: whether ROW_KEY is written.
    frame: the text before and after all records of one JSON value; empty for a record per line.
    columns: those of a CSV table. needs: fields that a task must have for an export.
    """

    title: str
    row: Callable[[Sequence[Part]], Record | None]
    read: Callable[[BufferedReader], Iterator[Numbered]]
    files: str = r"\.jsonl(\.gz)?$"
    choose: str = ""
    answers: str = ""
    others: str = ""
    instead: str = ""
    hides: tuple[str, ...] = ()
    keeps: bool = False
    only: Callable[[Record, str], Record] | None = None
    same: Callable[[Record], str] | None = None
    row_of_all: Callable[[Iterable[Part]], Callable[[Sequence[Part]], Record | None]] | None = None
    write: Callable[[Item], Record | None] | None = None
    frame: tuple[str, str] = ("", "")
    columns: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    terms: Terms = UNKNOWN_TERMS

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return descriptions of what the layout does not show."""
        return tuple(PART_DESCRIPTIONS[name] for name in self.hides)


def check_record(record: Any, shape: Shape, title: str, location: str = "") -> Record:
    """Return the record if it has these fields with these types; else raise BadRow.

    location: the position of the record within a larger one, for messages.
    """
    if not isinstance(record, dict):
        raise BadRow(
            f"{location or 'the record'} is {_describe_kind(record)}; {title} has an object there"
        )
    for name, kind in shape.items():
        at = name
        if location:
            at = f"{location}.{name}"
        kinds = kind if isinstance(kind, tuple) else (kind,)
        # Several kinds may share a word, which is said once.
        expected_words = " or ".join(dict.fromkeys(KINDS[expected_kind] for expected_kind in kinds))
        if name not in record:
            raise BadRow(f"there is no `{at}`; {title} has {expected_words} there")
        # To Python True is a number, so it is refused where no boolean is expected.
        if not isinstance(record[name], kinds) or (
            isinstance(record[name], bool) and bool not in kinds
        ):
            raise BadRow(
                f"`{at}` is {_describe_kind(record[name])}; {title} has {expected_words} there"
            )
    return record


def translate_value(value: Any, words: Mapping[str, str], name: str, title: str) -> str:
    """Translate a value of the layout to our term for it. Raises BadRow."""
    code = label_of(value, tuple(words))
    if code is None:
        raise BadRow(f"`{name}` is {json.dumps(value)}; {title} has {', '.join(words)}")
    return words[code]


def omit_keys(record: Record, names: Container[str]) -> Record:
    """Return the record without these names."""
    return {name: value for name, value in record.items() if name not in names}


def parse_stored_row(text: Any) -> Record:
    """Return the row that an export stored as JSON, {} without one. Raises BadRow."""
    if not text:
        return {}
    row = None
    if isinstance(text, str):
        row = strict_json(text)
    if not isinstance(row, dict) or "uid" not in row:
        raise BadRow(f"`{ROW_KEY}` is not as it was exported; export again, or delete it")
    return row


def split_given(data: Record) -> Record:
    """Split what people read of a record: conversations are context, other values are input.

    Other lists and objects become JSON text.
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
    """Convert a conversation from the form of chat models to ours; return [] for other values."""
    turns = []
    if isinstance(value, list):
        turns = value
    for place, turn in enumerate(turns):
        is_turn = isinstance(turn, dict) and turn.keys() == {"role", "content"}
        roles: tuple[str, ...] = CHAT_ROLES
        # Only a conversation's first turn may be the instruction.
        if place == 0:
            roles = ("system", "user", "assistant")
        if not (is_turn and turn["role"] in roles and isinstance(turn["content"], str)):
            return []
        # An empty turn cannot be stored, and then the whole value stays JSON.
        if not turn["content"].strip():
            return []
    return [{"role": turn["role"], "text": turn["content"]} for turn in turns]


def hash_record(record: Record) -> str:
    """Return an id for a record without one: 32 hex digits, the same for equal records."""
    # Sorted, because tools write the keys of equal records in any order.
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]


def format_answer(value: Any) -> str:
    """Return an answer in the form of a label; a whole number loses its `.0`."""
    return label_text(value) or str(value)


def build_vote(worker: Any, answer: str, *, is_verdict: bool = False) -> Record:
    """Return a vote in the form of a row of imported history."""
    worker_name = None
    if worker not in (None, ""):
        worker_name = str(worker)
    return {"worker": worker_name, "verdict" if is_verdict else "label": answer}


def pop_correction(corrections: list[tuple[Any, str]], worker: Any) -> str:
    """Remove and return the first correct answer that a person typed; "" without one."""
    own_entry = next((entry for entry in corrections if entry[0] == worker), None)
    if own_entry is None:
        return ""
    # Each correction belongs to one vote, and a person may have typed several.
    corrections.remove(own_entry)
    return own_entry[1]


def find_timestamp(record: Record, *names: str) -> float:
    """Return the time of the first field with a date and time, in seconds; 0 without one."""
    for name in names:
        try:
            return datetime.fromisoformat(record[name]).timestamp()
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return 0.0


def _describe_kind(value: Any) -> str:
    return KINDS.get(type(value), "something else")
