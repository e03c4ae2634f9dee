"""Lines of imported history: each becomes a checked row or raises BadRow.

docs/operators.md, “Importing history”, describes the format.
"""

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, NoReturn, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from core.text.names import remove_invisible_characters
from core.text.words import compose_start, compose_value, find_label, format_label
from tasks.line_files import NOT_UTF8, BadRow, refuse_repeated_names

# A quick search: only a line that contains it is checked value by value.
_SUSPECT_PATTERN = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
OTHER_LAYOUT = "other layout"
"""The pydantic context of rows that the reader of another layout has built."""
IdText = Annotated[str, Field(min_length=1)]
ShortText = Annotated[str, Field(min_length=1, max_length=200)]
Answer = Annotated[str, Field(min_length=1, max_length=5000)]


def _format_answer_text(value: Any) -> Any:
    """Return an answer as text, in the form of a label: both 1 and 1.0 become "1".

    Values of other types are returned unchanged, to be refused.
    """
    text = format_label(value)
    return value if text is None else text


AnswerText = Annotated[str, BeforeValidator(_format_answer_text)]


class _JsonObject(BaseModel):
    """A JSON object in a line. All its fields are required, and others are not allowed."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ModelPrediction(_JsonObject):
    """The answer of the model in the loop. probs: the probability of each label."""

    model: IdText
    label: AnswerText
    probs: dict[str, Annotated[float, Field(ge=0, le=1)]] | None


class ImportedVote(_JsonObject):
    """A vote of a worker (None: an unknown person), with either a label or a verdict."""

    worker: IdText | None
    label: Annotated[Answer, BeforeValidator(_format_answer_text)] = ""
    verdict: str = Field("", pattern="^(correct|incorrect|flagged|cannot_tell)$")
    correction: Annotated[str, BeforeValidator(compose_value), Field(max_length=5000)] = ""
    """The right answer, given with the verdict that a free-text answer is incorrect."""
    steps: dict[str, Answer] = {}
    """The labels of the steps of a conversation, by the number of the turn."""

    @model_validator(mode="after")
    def _check_one_choice(self) -> Self:
        if bool(self.label) == bool(self.verdict):
            raise PydanticCustomError("choice", "needs either a label or a verdict")
        if self.correction and self.verdict != "incorrect":
            raise PydanticCustomError("choice", "has a correction, so its verdict is `incorrect`")
        return self


class HistoryRow(_JsonObject):
    """One example with its votes. Values that the source does not contain are None."""

    task: str = Field(pattern="^[a-z0-9][a-z0-9-]*$")
    # Up to the largest number that the database column can store.
    round: int = Field(ge=0, le=2**31 - 1)
    uid: ShortText
    context: dict[str, Any]
    input: dict[str, Any]
    author: IdText | None
    author_label: AnswerText | None
    answer: ModelPrediction | None = Field(alias="model_prediction")
    model_wrong: bool | None
    votes: list[ImportedVote] = Field(alias="validations")
    metadata: dict[str, Any]
    author_verdict: str | None = Field(None, pattern="^(correct|incorrect)$")
    """The author's verdict on the model's answer, in tasks whose authors give no answer."""

    @property
    def is_fooled(self) -> bool | None:
        """Return whether the model was wrong, by the source or by the labels; None if unknown."""
        if self.answer is None or self.model_wrong is None:
            return self._is_model_wrong
        return self.model_wrong

    @property
    def _is_model_wrong(self) -> bool | None:
        """Return whether the author's label differs from the model's.

        None if either is unknown.
        """
        if self.answer is None:
            return None
        if self.author_label is None:
            return None if self.author_verdict is None else self.author_verdict == "incorrect"
        return self.author_label != self.answer.label

    @model_validator(mode="after")
    def _check_model_wrong(self, info: ValidationInfo) -> Self:
        """Check that `model_wrong` agrees with the labels.

        Null is always valid, since the source need not state it. Another layout's source has its
        own rule.
        """
        if self.model_wrong in (None, self._is_model_wrong) or info.context == OTHER_LAYOUT:
            return self
        if self._is_model_wrong is None:
            message = (
                "model_wrong must be null where the author's or the model's label is not known; "
                "give both labels, or write null"
            )
        else:
            message = (
                f"model_wrong is {json.dumps(self.model_wrong)}, but author_label and "
                f"model_prediction.label are {'different' if self._is_model_wrong else 'the same'}"
                "; correct one of the three"
            )
        raise PydanticCustomError("model_wrong", "{words}", {"words": message})


REQUIRED_NAMES = ("task", "uid", "author", "validations")
DEFAULT_VALUES: Mapping[str, Any] = {
    "round": 1, "context": {}, "input": {}, "author": None, "author_label": None,
    "model_prediction": None, "model_wrong": None, "validations": [], "metadata": {},
}  # fmt: skip
"""The default values of a row, except its task and uid."""


def parse_line(line: bytes, task: str = "", context: Collection[str] = ()) -> HistoryRow:
    """Parse a line of JSON in UTF-8 as a row. Raises BadRow.

    task: the code of the task in which people judge the rows. There a row may also be plain: it
    contains no objects and no lists, and its fields are what people read. context: the fields of a
    plain row that belong to the task's contexts.
    """
    data = _parse_record(line)
    if task and not any(isinstance(value, dict | list) for value in data.values()):
        data = _complete_plain_row(data, task, context)
    return _validate_row(data)


def read_row(record: Mapping[str, Any], task: str) -> HistoryRow:
    """Build a row from a record in another layout, with None for missing values. Raises BadRow."""
    return _validate_row({"task": task, **DEFAULT_VALUES, **record}, OTHER_LAYOUT)


def drop_repeated_votes(row: HistoryRow) -> tuple[HistoryRow, list[str]]:
    """Return the row with only each named person's last vote, and a worker id per removed vote."""
    # Later votes replace earlier ones.
    last_places = {vote.worker: location for location, vote in enumerate(row.votes)}
    votes, repeated_workers = [], []
    for location, vote in enumerate(row.votes):
        if vote.worker is None or last_places[vote.worker] == location:
            votes.append(vote)
        else:
            repeated_workers.append(vote.worker)
    return (row.model_copy(update={"votes": votes}) if repeated_workers else row), repeated_workers


def spell_row(row: HistoryRow, labels: Sequence[str]) -> HistoryRow:
    """Return the row with labels spelled as in the task; other answers are unchanged."""

    def find_spelling(label: str) -> str:
        return find_label(label, labels) or label

    answer = row.answer
    if answer is not None:
        probs = answer.probs and {
            find_spelling(label_name): share for label_name, share in answer.probs.items()
        }
        answer = answer.model_copy(update={"label": find_spelling(answer.label), "probs": probs})
    votes = [vote.model_copy(update={"label": find_spelling(vote.label)}) for vote in row.votes]
    label = None if row.author_label is None else find_spelling(row.author_label)
    return row.model_copy(update={"author_label": label, "answer": answer, "votes": votes})


def _compose_texts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with its texts in NFC, and its spans adjusted to these.

    Its uid and the ids of authors and validators are unchanged, because other systems know the row
    by them.
    """
    context, metadata = data.get("context"), data.get("metadata")
    values = context.values() if isinstance(context, Mapping) else ()
    texts = [text for text in values if isinstance(text, str)]
    values_in_nfc = {
        name: value if name in REQUIRED_NAMES else compose_value(value, texts)
        for name, value in data.items()
    }
    if isinstance(metadata, Mapping):
        offsets = {
            name: offset for name, offset in metadata.items() if str(name).endswith("_start")
        }
        new_offsets = {
            name: compose_start(data.get("author_label"), text_index, texts)
            for name, text_index in offsets.items()
        }
        values_in_nfc["metadata"] |= {
            name: offset for name, offset in new_offsets.items() if offset is not None
        }
    return values_in_nfc


def _validate_row(data: Mapping[str, Any], source_layout: str = "") -> HistoryRow:
    try:
        return HistoryRow.model_validate(_compose_texts(data), context=source_layout)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        # A misspelt field is also missing, but the misspelling is the more useful message.
        first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
        raise BadRow(_describe_reason(first)) from None


def _complete_plain_row(
    plain_row: Mapping[str, Any], task: str, context: Collection[str]
) -> dict[str, Any]:
    """Convert a plain row to a history row without votes.

    `label` is the author's. Without `uid`, one is derived from the row, so that importing it again
    adds nothing.
    """
    text = {name: value if isinstance(value, str) else json.dumps(value)
            for name, value in plain_row.items() if value is not None}  # fmt: skip
    # Sorted, so that the order of the columns does not matter.
    digest = hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()[:32]
    uid, label = text.pop("uid", digest), text.pop("label", "")
    if not any(
        any(map(str.isalnum, value)) or remove_invisible_characters(value)
        for value in text.values()
    ):
        raise BadRow("the line has nothing to judge; add a field with a text")
    context_values = {name: text.pop(name) for name in context if name in text}
    row = {"uid": uid, "context": context_values, "input": text, "author_label": label or None}
    return {"task": task, **DEFAULT_VALUES, **row}


def _describe_reason(problem: ErrorDetails) -> str:
    """Describe the invalid field, the error in it, and how to fix it."""
    kind, message, location = problem["type"], problem["msg"], problem["loc"]
    parent = ".".join(map(str, location[:-1])) or "the line"
    if kind == "missing":
        return f"{parent} lacks `{location[-1]}`; add it"
    if kind == "extra_forbidden":
        field_names = [field.alias or name for name, field in HistoryRow.model_fields.items()]
        similar_name = get_close_matches(str(location[-1]), field_names, n=1)
        hint = f"did you mean `{similar_name[0]}`?" if similar_name else "put it into metadata"
        return f"{parent} has no field `{location[-1]}`; {hint}"
    position = ".".join(map(str, location))
    if kind in ("choice", "model_wrong"):
        return f"{position} {message}".strip()
    expectation = "Input should be an object" if kind == "model_type" else message
    input_text = json.dumps(problem["input"], ensure_ascii=False)
    shown_text = input_text if len(input_text) <= 40 else f"{input_text[:39]}…"
    return f"{position}: {expectation}, not {shown_text}"


def _parse_record(line: bytes) -> dict[str, Any]:
    try:
        # Some editors start a file with a byte order mark.
        text = line.decode("utf-8-sig").strip()
        data = _decoder.decode(text)
    except UnicodeDecodeError as error:
        raise BadRow(f"byte {error.start + 1} is {NOT_UTF8}") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON at column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise BadRow("the values are nested too deeply; flatten them") from None
    # Also a ValueError, which the next clause would describe incorrectly.
    except BadRow:
        raise
    except ValueError:  # an integer with thousands of digits
        raise BadRow("a number has too many digits; write it as a text") from None
    if not isinstance(data, dict):
        raise BadRow("the line must be an object with one example")
    if _SUSPECT_PATTERN.search(text):
        _check_storable(data)
    return data


def _read_finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        _refuse_number(text)
    return value


def _refuse_number(text: str) -> NoReturn:
    raise BadRow(f"{text} is no number that can be kept; write null instead")


_decoder = json.JSONDecoder(
    parse_float=_read_finite, parse_constant=_refuse_number, object_pairs_hook=refuse_repeated_names
)


def _check_storable(data: Mapping[str, Any]) -> None:
    """Raise BadRow for what no database stores: the null character and unpaired surrogates."""
    for name, value in data.items():
        # An escaped backslash does not start an escape.
        text = json.dumps([name, value], ensure_ascii=False).replace("\\\\", "")
        if "\\u0000" in text:
            raise BadRow(f"{name} contains the null character (U+0000); delete it")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadRow(f"{name} contains half of a surrogate pair; write the character") from None
