"""Validate the responses of targets: JSON, labels, probabilities and answer spans."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from core.files.damage import describe_damage
from core.text.words import compose, find_label
from tasks.config.passage_spans import find_spans
from tasks.config.values import find_answer_errors
from tasks.targets.endpoints.base import QA_KIND, EndpointConfig, build_rubbish_error

MAX_DEPTH = 20
SUM_TOLERANCE = 1e-3
_UNSTORABLE_PATTERN = re.compile("[\x00\ud800-\udfff]")


def _refuse_constant(name: str) -> NoReturn:
    raise build_rubbish_error(f"The answer is not JSON: {name} is not a JSON number.")


def parse_strict_json(body: bytes) -> Any:
    """Return parsed JSON. Raises EndpointError with the reason `rubbish`.

    NaN, infinities, nesting that is too deep, and texts that cannot be stored are refused.
    """
    try:
        # A mark of UTF-8 before the text is none of it.
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except RecursionError:
        raise build_rubbish_error(f"The answer nests deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:
        raise build_rubbish_error(f"The answer is not JSON: {describe_damage(error)}.") from None
    # Level by level, without recursion: nested brackets of a server cannot exhaust the stack.
    level = [value]
    for _ in range(MAX_DEPTH):
        next_level: list[Any] = []
        for parent in level:
            next_level += _get_children(parent)
        if not next_level:
            return value
        level = next_level
    raise build_rubbish_error(f"The answer nests deeper than {MAX_DEPTH} levels.")


def _get_children(value: Any) -> list[Any]:
    """Return the items of a container. For a scalar, check that it can be stored and return [].

    Raises EndpointError.
    """
    if isinstance(value, dict):
        return list(value.keys()) + list(value.values())
    if isinstance(value, list):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise build_rubbish_error("The answer contains a number that is too large.")
    if isinstance(value, str) and _UNSTORABLE_PATTERN.search(value):
        raise build_rubbish_error("The answer contains a NUL or half of a surrogate pair.")
    return []


def expect_object(value: Any, subject: str) -> dict[str, Any]:
    """Return the value if it is an object. Raises EndpointError with the reason `rubbish`.

    subject: what the value is, for the message.
    """
    if not isinstance(value, dict):
        raise build_rubbish_error(f"{subject} must be a JSON object, not {type(value).__name__}.")
    return value


def expect_list(value: Any, count: int, subject: str) -> list[Any]:
    """Return the value if it is a list of `count` entries. Raises EndpointError otherwise.

    subject: what the value is, for the message.
    """
    if not isinstance(value, list) or len(value) != count:
        actual = len(value) if isinstance(value, list) else type(value).__name__
        raise build_rubbish_error(f"{subject} must be a list of {count}, not {actual}.")
    return value


def expect_number(value: Any, subject: str) -> float:
    """Return the value as a finite float. Raises EndpointError for other values.

    subject: what the value is, for the message.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise build_rubbish_error(f"{subject} must be a number, not {type(value).__name__}.")
    if abs(value) > 1e300 or not math.isfinite(value):
        raise build_rubbish_error(f"{subject} must be finite.")
    return float(value)


def read_output(
    config: EndpointConfig,
    item: Mapping[str, Any],
    output: Any,
    *,
    use_first_occurrence: bool = False,
) -> dict[str, Any]:
    """Return the validated output for one example. Raises EndpointError.

    use_first_occurrence: whether an extractive answer without offsets is located at its first
    occurrence in the passage, for servers that can answer only with text. Otherwise it must occur
    exactly once.
    """
    values = expect_object(output, "The output")
    if config.output not in values:
        raise build_rubbish_error(
            f"The output lacks the field {config.output!r}; it has {sorted(values)}."
        )
    answer = values[config.output]
    # 1. A label, in whatever case the model writes it.
    if config.labels is not None:
        label = find_label(answer, config.labels)
        if label is None:
            raise build_rubbish_error(
                f"{answer!r:.80} is not one of the labels {list(config.labels)}."
            )
        return {config.output: label}
    # 2. A span, which must stand in the passage.
    if config.kind == QA_KIND:
        return _read_span(config, str(item[config.passage_field]), values, use_first_occurrence)
    # 3. Anything else, by the checks of its field type.
    if answer is None:
        raise build_rubbish_error(f"The output field {config.output!r} is null.")
    for problem in find_answer_errors(config.answer, answer, item) if config.answer else ():
        raise build_rubbish_error(f"The output field {config.output!r}: {problem}.")
    return {**values, config.output: compose(answer) if isinstance(answer, str) else answer}


def _read_span(
    config: EndpointConfig, passage: str, output: Mapping[str, Any], use_first_occurrence: bool
) -> dict[str, Any]:
    answer, start, end = output[config.output], output.get("start"), output.get("end")
    if not isinstance(answer, str) or not answer.strip():
        raise build_rubbish_error("The answer must be a text that is not empty.")
    # Only a text: it is searched for, and must be unambiguous unless the server can say no more.
    if start is None and end is None:
        spans = find_spans(answer, passage)
        if not spans:
            raise build_rubbish_error(f"The answer {answer!r:.80} is not in the passage.")
        if len(spans) > 1 and not use_first_occurrence:
            raise build_rubbish_error("The answer occurs more than once: send its start and end.")
        start, end = spans[0]
        answer = passage[start:end]
    # `type` and not isinstance: to Python True is a number.
    if type(start) is not int or type(end) is not int or start < 0:
        raise build_rubbish_error("start and end must be whole numbers, 0 or more.")
    if passage[start:end] != answer or end - start != len(answer):
        raise build_rubbish_error(f"passage[{start}:{end}] is not the answer {answer!r:.80}.")
    return {config.output: answer, "start": start, "end": end}


def read_prob(config: EndpointConfig, prob: Any) -> dict[str, float] | None:
    """Return the validated probabilities, or None if there are none. Raises EndpointError.

    Probabilities of labels sum to 1. Without labels, an answer's confidence is at most 1.
    """
    if prob is None:
        return None
    values = {
        key: expect_number(probability, f"prob[{key!r:.80}]")
        for key, probability in expect_object(prob, "prob").items()
    }
    if any(not 0 <= probability <= 1 for probability in values.values()):
        raise build_rubbish_error("Every probability must lie in 0 to 1.")
    total = sum(values.values())
    if config.labels is None:
        if total > 1 + SUM_TOLERANCE:
            raise build_rubbish_error(f"The probabilities sum to {total:.6g}, more than 1.")
        return values
    for name in sorted(values):
        if find_label(name, config.labels) is None:
            raise build_rubbish_error(
                f"prob names {name!r:.80}, not one of the labels {list(config.labels)}."
            )
    # In our spelling of the labels.
    values = {
        str(find_label(name, config.labels)): probability for name, probability in values.items()
    }
    if abs(total - 1) > SUM_TOLERANCE:
        raise build_rubbish_error(f"The probabilities sum to {total:.6g}, not to 1.")
    return values
