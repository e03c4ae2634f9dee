"""One line of imported history: a checked row, or the reason why it is none.

docs/operators.md, “Importing history”, describes the format.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

FIELDS = (
    *("task", "round", "uid", "context", "input", "author", "author_label"),
    *("model_prediction", "model_wrong", "validations", "metadata"),
)
VERDICTS = ("correct", "incorrect", "flagged")
LONGEST = 200  # characters of a uid and of a vote
LAST_ROUND = 2**31 - 1
_TASK = re.compile(r"[a-z0-9][a-z0-9-]*")
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")

ImportedVote = tuple[str | None, str, str]
"""Who (None: an unknown person), label, verdict; exactly one of the last two is filled."""


class BadRow(ValueError):
    """A line cannot be imported; the message names the field and says how to mend it."""


@dataclass(frozen=True, slots=True)
class ModelPrediction:
    """What the model in the loop answered; probs: label to probability (0-1)."""

    model: str
    label: str
    probs: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One example with its votes. What the source does not tell is None."""

    task: str
    round: int
    uid: str
    context: Mapping[str, Any]
    input: Mapping[str, Any]
    author: str | None
    author_label: str | None
    answer: ModelPrediction | None
    votes: tuple[ImportedVote, ...]
    metadata: Mapping[str, Any]

    @property
    def fooled(self) -> bool | None:
        """Whether the author's label is not the model's; None where either is unknown."""
        if self.answer is None or self.author_label is None:
            return None
        return self.author_label != self.answer.label


def parse_line(line: bytes) -> HistoryRow:
    """The row that a line of JSON in UTF-8 holds. Raises BadRow."""
    data = _read(line)
    if data.keys() != set(FIELDS):
        _wrong_keys("the line", data, FIELDS)
    task, number, uid = data["task"], data["round"], data["uid"]
    if not isinstance(task, str) or not _TASK.fullmatch(task):
        _refuse("task", "a code of lower-case letters, digits and hyphens", task)
    if type(number) is not int or not 0 <= number <= LAST_ROUND:
        _refuse("round", "a whole number from 0 (0: not known)", number)
    if not isinstance(uid, str) or not 0 < len(uid) <= LONGEST:
        _refuse("uid", f"a text of 1 to {LONGEST} characters", uid)
    for name in ("context", "input", "metadata"):
        if not isinstance(data[name], dict):
            _refuse(name, "an object (it may be empty: {})", data[name])
    for name in ("author", "author_label"):
        if not (data[name] is None or isinstance(data[name], str)):
            _refuse(name, "a text, or null where it is not known", data[name])
    if data["author"] == "":
        _refuse("author", "an id, or null where it is not known", "")
    row = HistoryRow(
        task,
        number,
        uid,
        data["context"],
        data["input"],
        data["author"],
        data["author_label"],
        _answer(data["model_prediction"]),
        _votes(data["validations"]),
        data["metadata"],
    )
    _check_model_wrong(data["model_wrong"], row)
    return row


def _read(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8-sig").strip()
        data = _decoder.decode(text)
    except UnicodeDecodeError as error:
        raise BadRow(f"byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON at column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise BadRow("the values are nested too deeply; flatten them") from None
    except BadRow:
        raise
    except ValueError:  # a whole number of thousands of digits
        raise BadRow("a number has too many digits; write it as a text") from None
    if not isinstance(data, dict):
        _refuse("the line", "an object with one example", data)
    if _SUSPECT.search(text):
        _check_storable(data)
    return data


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        _no_number(text)
    return value


def _no_number(text: str) -> NoReturn:
    raise BadRow(f"{text} is no number that can be kept; write null instead")


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)


def _check_storable(data: Mapping[str, Any]) -> None:
    """Refuse what no database stores: the null character, and half of a surrogate pair."""
    for name, value in data.items():
        text = json.dumps([name, value], ensure_ascii=False).replace("\\\\", "")
        if "\\u0000" in text:
            raise BadRow(f"{name} holds the null character (U+0000); delete it")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadRow(f"{name} holds half of a surrogate pair; write the character") from None


def _answer(data: Any) -> ModelPrediction | None:
    if data is None:
        return None
    at = "model_prediction"
    if not isinstance(data, dict):
        _refuse(at, "an object, or null where no model took part", data)
    if data.keys() != {"model", "label", "probs"}:
        _wrong_keys(at, data, ("model", "label", "probs"))
    if not isinstance(data["model"], str) or not data["model"]:
        _refuse(f"{at}.model", "the model's name", data["model"])
    if not isinstance(data["label"], str):
        _refuse(f"{at}.label", "a text", data["label"])
    probs = data["probs"]
    if probs is not None:
        if not isinstance(probs, dict):
            _refuse(f"{at}.probs", "an object of label to probability, or null", probs)
        for label, value in probs.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value <= 1:
                _refuse(f"{at}.probs.{label}", "a number from 0 to 1", value)
    return ModelPrediction(data["model"], data["label"], probs)


def _votes(data: Any) -> tuple[ImportedVote, ...]:
    if not isinstance(data, list):
        _refuse("validations", "a list (it may be empty: [])", data)
    return tuple(_vote(f"validations[{index}]", vote) for index, vote in enumerate(data))


def _vote(at: str, vote: Any) -> ImportedVote:
    if not isinstance(vote, dict):
        _refuse(at, "an object with worker, and label or verdict", vote)
    kind = "verdict" if "verdict" in vote and "label" not in vote else "label"
    if vote.keys() != {"worker", kind}:
        if {"label", "verdict"} <= vote.keys():
            raise BadRow(f"{at} has both a label and a verdict; leave one out")
        _wrong_keys(at, vote, ("worker", kind))
    worker, choice = vote["worker"], vote[kind]
    if not (worker is None or (isinstance(worker, str) and worker)):
        _refuse(f"{at}.worker", "an id, or null for an unknown person", worker)
    if kind == "verdict":
        if choice not in VERDICTS:
            _refuse(f"{at}.verdict", f"one of {', '.join(VERDICTS)}", choice)
        return worker, "", choice
    if not isinstance(choice, str) or not 0 < len(choice) <= LONGEST:
        _refuse(f"{at}.label", f"a text of 1 to {LONGEST} characters", choice)
    return worker, choice, ""


def _check_model_wrong(said: Any, row: HistoryRow) -> None:
    """Null is always right: the source need not say it."""
    if said is None or said is row.fooled:
        return
    if not isinstance(said, bool):
        _refuse("model_wrong", "true, false or null", said)
    if row.fooled is None:
        raise BadRow(
            "model_wrong must be null where the author's or the model's label is not known; "
            "give both labels, or write null"
        )
    raise BadRow(
        f"model_wrong is {json.dumps(said)}, but author_label and model_prediction.label are "
        f"{'different' if row.fooled else 'the same'}; mend one of the three"
    )


def _wrong_keys(at: str, data: Mapping[str, Any], known: Iterable[str]) -> NoReturn:
    known = tuple(known)
    for name in data:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else "put it into metadata"
            raise BadRow(f"{at} has no field `{name}`; {hint}")
    missing = next(name for name in known if name not in data)
    raise BadRow(f"{at} lacks `{missing}`; add it")


def _refuse(field: str, wanted: str, value: Any) -> NoReturn:
    shown = json.dumps(value, ensure_ascii=False)
    shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
    raise BadRow(f"{field} must be {wanted}, not {shown}")
