"""The examples that a model receives, in random order, and the strict parser of its answers.

Pure. This module knows neither the set nor its right answers, so messages cannot reveal them.
"""

import json
import math
import os
import random
import secrets
import tempfile
from array import array
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import orjson

from core.text.words import compose, find_label
from evaluation.contract import MIN_LOGPROB, Answer, InvalidOutput
from evaluation.isolation.sandbox.limits import Limits
from evaluation.task_shape import get_labels
from tasks.config.field_types.chat import strip_secrets
from tasks.config.schema import TaskConfig
from tasks.config.values import find_answer_errors
from tasks.targets.endpoints.base import UNANSWERED_REASONS

MAX_MISSING_SHARE = 0.01  # at most this share may be missing, and counts as wrong
SUM_TOLERANCE = 1e-3  # for sums of probabilities, as in docs/targets.md
PROBABILITY_DIGITS = 4  # for probabilities; more could carry a hidden message
ANSWER_KEYS = ("id", "output", "prob", "logprob", "tokens", "unanswered")
REQUIRED_KEYS = {"id", "output"}
MAX_TOKENS = 10_000_000
MAX_QUOTED_CHARS = 40  # characters of the model's output that a message quotes
ITEMS_PER_REPORT = 500  # examples between two checks of the clock
_NO_ANSWER, _NO_USE = -1, -2  # in place of an answer
FILE_PREFIXES = ("data:image/", "data:audio/")
T = TypeVar("T")

ValueCheck = Callable[[Any], Sequence[str]]
"""A function that returns the problems of an answer's value as texts; empty if it is valid."""
ProgressCallback = Callable[[float, str], None]
"""A function called often with the progress (0-1) and a message. Its errors end the evaluation."""


class UnknownId(InvalidOutput):
    """Raised for an answer to an id outside the set. The second argument is the id."""

    def __str__(self) -> str:
        return str(self.args[0])


class SentExamples:
    """The examples of one run as its model reads them: with fresh ids and in random order.

    Ids and order reveal nothing about the set. Keeps eight bytes per example in memory. key: 16
    secret bytes from which the ids of `size` examples can be reproduced; without it, ids are
    random.
    """

    def __init__(self, path: Path, *, key: bytes | None = None, size: int = 0) -> None:
        self.path, self.size = path, size
        self._key = key or secrets.token_bytes(16)

    def write(
        self,
        inputs: Iterable[Mapping[str, Any]],
        fields: Iterable[str],
        report_progress: ProgressCallback,
    ) -> None:
        """Write the examples in random order, one `{"id": …, "inputs": …}` per line.

        fields: the names of the inputs to write.
        """
        names, offsets = tuple(fields), array("q", [0])
        # Written in the set's order, then copied in random order, so that lines stay on disk.
        scratch_path = self.path.with_suffix(".set")
        with scratch_path.open("wb") as file:
            for example_inputs in report_while_iterating(
                inputs, report_progress, "writing the examples"
            ):
                line = orjson.dumps(
                    {
                        name: strip_secrets(example_inputs[name])
                        for name in names
                        if name in example_inputs
                    }
                )
                offsets.append(offsets[-1] + file.write(line))
        self.size = len(offsets) - 1
        indices = array("q", range(self.size))
        # An unpredictable seed, because the set's order would reveal examples to a model.
        random.Random(secrets.randbits(128)).shuffle(indices)
        with scratch_path.open("rb") as source, self.path.open("wb") as target:
            for index in report_while_iterating(indices, report_progress, "writing the examples"):
                line = os.pread(
                    source.fileno(), offsets[index + 1] - offsets[index], offsets[index]
                )
                example_id = self._get_id(index).encode()
                target.write(b'{"id":"' + example_id + b'","inputs":' + line + b"}\n")
        scratch_path.unlink()
        self.path.chmod(0o644)  # so that the sandbox's user can read it

    def iterate_ids(self) -> Iterator[str]:
        """Yield the ids in the order of the set."""
        return map(self._get_id, range(self.size))

    def _get_id(self, index: int) -> str:
        return blake2b(index.to_bytes(8), key=self._key, digest_size=10).hexdigest()

    def iterate_texts(self) -> Iterator[str]:
        """Yield every text that the model read, except files.

        A log can never repeat a whole file, so files need no redaction.
        """
        with self.path.open("rb") as lines:
            for line in lines:
                texts = _iterate_texts(orjson.loads(line)["inputs"])
                yield from (text for text in texts if not text.startswith(FILE_PREFIXES))


def _iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        values = value.values() if isinstance(value, dict) else value
        for item in values:
            yield from _iterate_texts(item)


def report_while_iterating(
    items: Iterable[T], report_progress: ProgressCallback, message: str, progress: float = 0.0
) -> Iterator[T]:
    """Yield the items, and call `report_progress` every ITEMS_PER_REPORT items."""
    for number, item in enumerate(items):
        if number % ITEMS_PER_REPORT == 0:
            report_progress(progress, message)
        yield item


class CollectedAnswers:
    """The answers of one run. Checked answers go to a temporary file; memory holds their offsets.

    output: the field that the model answers. labels: the possible answers; None for texts and
    spans. ids: the examples' ids, in the order in which `iterate_in_order` yields the answers.
    check: finds problems of values that are neither labels nor texts, such as numbers; None if
    there are no such values. A million answers take about 170 MB of memory, mostly for ids.
    """

    def __init__(
        self,
        output: str,
        labels: Sequence[str] | None,
        ids: Iterable[str],
        *,
        check: ValueCheck | None = None,
        line_bytes: int = Limits.line_bytes,
    ) -> None:
        self.output, self.labels, self.line_bytes = output, labels, line_bytes
        self._check = check
        self._shape = f'Write {{"id": "…", "output": {{"{output}": …}}}}.'
        self._label_set = frozenset(labels or ())
        self._position_by_id = {example_id: position for position, example_id in enumerate(ids)}
        # The position of each answer: arrays take 16 bytes per example, objects many more.
        self._starts = array("q", [_NO_ANSWER]) * len(self._position_by_id)
        self._lengths = array("q", [0]) * len(self._position_by_id)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as long as this object)
        self._end = 0
        self.line_count = 0
        self.answered_count = 0
        self.unanswered_counts: Counter[str] = Counter()  # lines without an output, by their reason

    def take(self, line: bytes) -> None:
        """Store the answer in a line without line break; ignore an empty line.

        Raises InvalidOutput, which names the line's number and how to correct the line.
        """
        self.line_count += 1
        # Windows programs often start a file with this mark, which JSON does not allow.
        if self.line_count == 1:
            line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return
        position, answer = self._parse_answer(line)
        if answer is None:
            self._starts[position] = _NO_USE
            return
        try:
            data = orjson.dumps([answer.value, answer.prob, answer.logprob, answer.tokens])
        except TypeError:
            self._refuse("it contains half of a surrogate pair.")
        self._file.write(data)
        self._starts[position], self._lengths[position] = self._end, len(data)
        self._end += len(data)
        self.answered_count += 1

    def count_missing(self) -> int:
        """Return the number of examples without an answer."""
        return len(self._position_by_id) - self.answered_count

    def check_missing(self) -> str:
        """Return the warning about missing answers, or "". The rule is the same for every model.

        A line without an output counts as a wrong answer. Raises InvalidOutput if the share of
        missing answers is MAX_MISSING_SHARE or more, or if no example has an answer.
        """
        unanswered_count = self.unanswered_counts.total()
        missing_count, size = self.count_missing() - unanswered_count, len(self._position_by_id)
        if unanswered_count and not self.answered_count:
            raise InvalidOutput(
                f"No example has an answer: {_describe_unanswered(self.unanswered_counts)}."
            )
        if unanswered_count and missing_count < MAX_MISSING_SHARE * size:
            return (
                f"{unanswered_count} of {size} examples have no answer and count as wrong: "
                f"{_describe_unanswered(self.unanswered_counts)}."
            )
        if not missing_count:
            return ""
        message = f"{missing_count} of {size} answers are missing"
        if missing_count >= MAX_MISSING_SHARE * size:
            raise InvalidOutput(
                f"{message}. Write one line for each example; "
                "a program does so before it ends with exit code 0."
            )
        return f"{message}; they count as wrong."

    def iterate_in_order(self) -> Iterator[Answer | None]:
        """Yield every example's answer in the order of the ids; None where it is missing."""
        self._file.flush()
        for start, length in zip(self._starts, self._lengths, strict=True):
            if start < 0:
                yield None
            else:
                yield Answer(*orjson.loads(os.pread(self._file.fileno(), length, start)))

    def _parse_answer(self, line: bytes) -> tuple[int, Answer | None]:
        """Return the example's position and the answer; None for an answer with a null output."""
        # Cheap checks first: an untrusted line is parsed only once its length is known.
        if len(line) > self.line_bytes:
            self._refuse(f"it is longer than {self.line_bytes} bytes. Answer more briefly.")
        answer = self._check_object(self._parse_json(line), ANSWER_KEYS, "the line", REQUIRED_KEYS)
        position = self._find_position(answer.get("id"))
        reason = answer.get("unanswered")
        if reason is not None and reason not in UNANSWERED_REASONS:
            self._refuse(f'"unanswered" must be one of {", ".join(UNANSWERED_REASONS)}.')
        if "output" in answer and answer["output"] is None:
            self.unanswered_counts[reason or "declined"] += 1
            return position, None
        if reason is not None:
            self._refuse('"unanswered" goes with an output that is null. Leave it out.')
        allowed_fields = [self.output]
        if not self.labels:  # a text may be a span with its position
            allowed_fields += ["start", "end"]
        output = self._check_object(answer.get("output"), allowed_fields, '"output"', {self.output})
        if self.output not in output:
            self._refuse(f'"output" lacks the field "{self.output}". {self._shape}')
        value = self._check_value(output[self.output])
        self._check_span(value, output.get("start"), output.get("end"))
        if isinstance(value, str):
            value = compose(value)
        prob, logprob = (
            self._check_prob(answer.get("prob")),
            self._check_logprob(answer.get("logprob")),
        )
        return position, Answer(value, prob, logprob, self._check_tokens(answer.get("tokens")))

    def _parse_json(self, line: bytes) -> Any:
        """Parse one JSON line. Uses the fast parser if duplicate keys are impossible."""
        try:
            value = orjson.loads(line)
            # As many keys as colons, so no key was repeated; orjson keeps only the last.
            if _count_keys(value) == line.count(b":"):
                return value
        except orjson.JSONDecodeError:
            pass  # the slow parser describes the error for the submitter
        try:
            return json.loads(
                line.decode(),
                parse_constant=_refuse_constant,
                object_pairs_hook=_refuse_repeated_keys,
            )
        except UnicodeDecodeError as error:
            self._refuse(f"it is not UTF-8 (byte {error.start + 1}). Write UTF-8.")
        except RecursionError:
            self._refuse("it is nested too deeply. An answer has three levels.")
        except json.JSONDecodeError as error:
            self._refuse(
                f"it is not JSON ({error.msg}, character {error.pos + 1}). Write one JSON object "
                "a line; a program writes everything else to standard error."
            )
        except ValueError as error:
            self._refuse(f"{error}.")

    def _check_object(
        self, value: Any, fields: Sequence[str], subject: str, required_fields: AbstractSet[str]
    ) -> dict[str, Any]:
        """Return the value if it is an object without unknown fields. Raises InvalidOutput.

        required_fields: if the value has all of them, the message asks to leave out the unknown
        one. Otherwise it shows the expected shape.
        """
        if not isinstance(value, dict):
            self._refuse(
                f"{subject} must be a JSON object, not {_get_json_type(value)}. {self._shape}"
            )
        for key in value:
            if key not in fields:
                advice = self._shape
                if required_fields <= value.keys():
                    advice = "Leave it out."
                self._refuse(f"{subject} has the unknown field {_quote(key)}. {advice}")
        return value

    def _find_position(self, example_id: Any) -> int:
        """Return the position of the answered example. Raises InvalidOutput.

        Refuses ids outside the set (UnknownId) and a second answer to the same example.
        """
        if not isinstance(example_id, str):
            self._refuse(
                f'"id" must be the example\'s id, a text, not {_get_json_type(example_id)}.'
            )
        position = self._position_by_id.get(example_id, _NO_ANSWER)
        if position == _NO_ANSWER:
            message = f'Line {self.line_count}: no example has this "id". Copy the ids as they are.'
            raise UnknownId(message, example_id)
        if self._starts[position] != _NO_ANSWER:
            self._refuse('this "id" was answered before. Answer each example once.')
        return position

    def _check_value(self, value: Any) -> Any:
        if self._check:
            for problem in self._check(value):
                self._refuse(f'"{self.output}": {problem}.')
            return value
        if self.labels and (label := find_label(value, self.labels)) is not None:
            return label
        if not isinstance(value, str):
            self._refuse(f'"{self.output}" must be a text, not {_get_json_type(value)}.')
        if self.labels:
            self._refuse(f"{_quote(value)} is not one of the labels: {', '.join(self.labels)}.")
        if "\0" in value:
            self._refuse(f'"{self.output}" contains a NUL.')
        return value

    def _check_span(self, value: Any, start: Any, end: Any) -> None:
        """Check that the offsets, if given, match the length of the answer.

        Raises InvalidOutput.
        """
        if start is None and end is None:
            return
        if type(start) is not int or type(end) is not int or start < 0:
            self._refuse(
                '"start" and "end" must be whole numbers, 0 or more. They may be left out.'
            )
        if end - start != len(value):
            self._refuse(
                f'"end" − "start" is {end - start}, but the answer has {len(value)} characters.'
            )

    def _check_prob(self, prob: Any) -> dict[str, float] | None:
        """Return the checked and rounded probabilities; None if there are none.

        They are keyed by label, or for free-text answers by text. In the latter case they are
        confidences. Raises InvalidOutput.
        """
        if prob is None:
            return None
        if not isinstance(prob, Mapping):
            self._refuse(
                f'"prob" must be an object of numbers or null, not {_get_json_type(prob)}.'
            )
        if self.labels:
            prob = {find_label(key, self.labels) or key: p for key, p in prob.items()}
        for key, p in prob.items():
            if self.labels and key not in self._label_set:
                self._refuse(f'"prob" names {_quote(key)}, which is not one of the labels.')
            if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
                self._refuse('every number of "prob" must lie in 0 to 1.')
        total = math.fsum(prob.values())
        if self.labels and not self._check and abs(total - 1) > SUM_TOLERANCE:
            self._refuse(f'the numbers of "prob" sum to {total:.4g}, not to 1.')
        # Rounded, because the last digits could smuggle out examples of a sealed set.
        return {key: round(float(p), PROBABILITY_DIGITS) for key, p in prob.items()}

    def _check_logprob(self, logprob: Any) -> float | None:
        """Return the checked log-probability, rounded like probabilities; None if there is none.

        Raises InvalidOutput.
        """
        if logprob is None:
            return None
        is_number = isinstance(logprob, int | float) and not isinstance(logprob, bool)
        if not is_number or not MIN_LOGPROB <= logprob <= 0:
            self._refuse(f'"logprob" must be a number from {MIN_LOGPROB} to 0, or null.')
        return round(float(logprob), PROBABILITY_DIGITS)

    def _check_tokens(self, tokens: Any) -> tuple[int, int] | None:
        if tokens is None:
            return None
        if not isinstance(tokens, list) or [type(n) for n in tokens] != [int, int]:
            self._refuse('"tokens" must be two whole numbers, read and written, or null.')
        if not all(0 <= n <= MAX_TOKENS for n in tokens):
            self._refuse(f'the numbers of "tokens" must lie in 0 to {MAX_TOKENS}.')
        return tokens[0], tokens[1]

    def _refuse(self, problem: str) -> NoReturn:
        raise InvalidOutput(f"Line {self.line_count}: {problem}") from None


def build_collected_answers(config: TaskConfig, ids: Iterable[str]) -> CollectedAnswers:
    """Return an empty collection of answers to the task's answer field."""
    return CollectedAnswers(
        config.answer_field, get_labels(config), ids, check=_choose_value_check(config)
    )


def _choose_value_check(config: TaskConfig) -> ValueCheck | None:
    """Return the check for values other than labels and texts; None if it is not needed."""
    component = config.get_component(config.answer_field)
    if component.type in ("multiclass", "text", "long_text", "span"):
        return None
    return lambda value: find_answer_errors(component, value)


def _count_keys(value: Any) -> int:
    """Count the keys in a value, at any depth."""
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    if isinstance(value, list):
        return sum(map(_count_keys, value))
    return 0


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return values


def _describe_unanswered(reason_counts: Counter[str]) -> str:
    """Return a phrase that says how many examples have no answer, by reason."""
    phrases = {str(reason): phrase for reason, phrase in UNANSWERED_REASONS.items()}
    return ", ".join(
        f"{count} {phrases[reason]}" for reason, count in sorted(reason_counts.items())
    )


def _get_json_type(value: Any) -> str:
    """Return JSON's name for the type of a value, for messages."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    if value is None:
        return "null"
    return names.get(type(value), "a number")


def _quote(text: str) -> str:
    """Return the model's text for use in a message: shortened and on one line."""
    if len(text) > MAX_QUOTED_CHARS:
        text = text[:MAX_QUOTED_CHARS] + "…"
    return json.dumps(text)
